//! Why a feature spec was not taken, and how a value that does not fit is worded.

use std::fmt::{self, Write as _};

use seatrial_types::Error;

use crate::raw::Raw;

/// The most characters of a client's text that a message repeats.
const ECHO_CHARS: usize = 80;

/// What is wrong with a feature spec or a file that it names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpecError(String);

impl SpecError {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The same, led by the feature it belongs to.
    pub(crate) fn of_feature(self, number: usize, field: Option<&str>) -> Self {
        match field {
            Some(field) => Self(format!("feature {number} (field `{field}`): {}", self.0)),
            None => Self(format!("feature {number}: {}", self.0)),
        }
    }
}

impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for SpecError {}

/// What a step expected of a value and did not get. Boxed, so that results of the kernels stay small.
#[derive(Debug)]
pub(crate) struct Fault {
    pub(crate) expected: Box<str>,
    /// What came, when it is not the field's value as a whole.
    pub(crate) got: Option<Box<str>>,
}

impl Fault {
    #[cold]
    pub(crate) fn new(expected: impl Into<Box<str>>) -> Self {
        Self { expected: expected.into(), got: None }
    }

    #[cold]
    pub(crate) fn with(mut self, got: impl Into<Box<str>>) -> Self {
        self.got.get_or_insert(got.into());
        self
    }

    /// The client's error: which instance, which field, what came, what was expected.
    #[cold]
    pub(crate) fn at(self, row: usize, field: &str, raw: &Raw<'_>) -> Error {
        let got = self.got.unwrap_or_else(|| show(raw).into());
        Error::invalid(format!("instance {row}, field `{field}`: got {got}, expected {}", self.expected))
    }
}

/// The text in backticks, cut to a length that is safe to log, with control characters escaped.
pub(crate) fn quote(text: &str) -> String {
    let mut out = String::from("`");
    for (n, c) in text.chars().enumerate() {
        if n == ECHO_CHARS {
            out.push('…');
            break;
        }
        if c.is_control() {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
    out.push('`');
    out
}

/// A raw value as a message shows it.
pub(crate) fn show(raw: &Raw<'_>) -> String {
    match raw {
        Raw::Null => "nothing".to_owned(),
        Raw::Bool(value) => format!("`{value}`"),
        Raw::Int(value) => format!("`{value}`"),
        Raw::Float(value) => format!("`{value:?}`"),
        Raw::Text(text) => format!("the string {}", quote(text)),
        Raw::List(items) => {
            let mut out = format!("a list of {}", items.len());
            if let Some(first) = items.first() {
                let _ = write!(out, " beginning with {}", show_item(first));
            }
            out
        }
        Raw::Object => "an object".to_owned(),
    }
}

fn show_item(raw: &Raw<'_>) -> String {
    if matches!(raw, Raw::List(_)) { "a list".to_owned() } else { show(raw) }
}
