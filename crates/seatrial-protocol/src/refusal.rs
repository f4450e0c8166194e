//! How refusals are worded: a client's words are quoted, shortened and made printable before they are echoed.

use std::fmt::Write as _;

use seatrial_types::{Code, Error};

/// An error on its way out. Boxed, so that results on the hot path stay small.
pub(crate) struct Refusal(Box<Error>);

/// What the inner functions return; `?` turns a refusal into the public error.
pub(crate) type Checked<T> = Result<T, Refusal>;

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        *refusal.0
    }
}

/// The most characters of a client's text that a message repeats.
const ECHO_CHARS: usize = 80;

#[cold]
pub(crate) fn refuse(message: impl Into<String>) -> Refusal {
    Refusal(Box::new(Error::invalid(message)))
}

#[cold]
pub(crate) fn unimplemented(message: impl Into<String>) -> Refusal {
    Refusal(Box::new(Error::new(Code::Unimplemented, message)))
}

/// The text in backticks, cut to a length that is safe to log, with control characters escaped.
#[cold]
pub(crate) fn quote(text: impl AsRef<[u8]>) -> String {
    format!("`{}`", shorten(text.as_ref(), ECHO_CHARS))
}

fn shorten(text: &[u8], most: usize) -> String {
    let head = text.get(..most.saturating_mul(4)).unwrap_or(text);
    let head = String::from_utf8_lossy(head);
    let mut out = String::new();
    for (n, c) in head.chars().enumerate() {
        if n == most {
            out.push('…');
            break;
        }
        if c.is_control() {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
    out
}

/// Names that a client sent and nobody knows, kept short however many there are.
#[derive(Default)]
pub(crate) struct Names {
    text: String,
    chars_left: Option<usize>,
    unlisted: usize,
    count: usize,
}

impl Names {
    pub(crate) fn add(&mut self, name: &str) {
        self.count += 1;
        let left = self.chars_left.unwrap_or(ECHO_CHARS);
        if left == 0 {
            self.unlisted += 1;
            return;
        }
        let short = shorten(name.as_bytes(), left);
        self.chars_left = Some(left.saturating_sub(short.chars().count().max(1)));
        let comma = if self.text.is_empty() { "" } else { ", " };
        let _ = write!(self.text, "{comma}`{short}`");
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub(crate) fn count(&self) -> usize {
        self.count
    }
}

impl std::fmt::Display for Names {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)?;
        if self.unlisted > 0 {
            write!(f, " and {} more", self.unlisted)?;
        }
        Ok(())
    }
}

/// The sizes of a shape that a client sent, the first eight if there are more.
#[cold]
pub(crate) fn show_sizes(shape: &[usize]) -> String {
    match shape.get(..8).filter(|_| shape.len() > 8) {
        Some(first) => format!("{first:?} and {} more", shape.len() - 8),
        None => format!("{shape:?}"),
    }
}

/// `a, b, c`, at most 20 of a model's own names.
#[cold]
pub(crate) fn own_names<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.collect();
    let shown = names.get(..20).unwrap_or(&names);
    match names.len() - shown.len() {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}
