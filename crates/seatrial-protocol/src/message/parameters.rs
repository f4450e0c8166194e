//! The `parameters` maps of a message: those with a meaning are read, others pass unread, as in JSON.

use bytes::Bytes;

use super::wire::{Fields, Value, chunk, text};
use crate::refusal::{Checked, quote, refuse, unimplemented};

/// An `InferParameter`. A double has no meaning anywhere yet.
#[derive(Clone, Copy)]
enum Parameter<'a> {
    Bool(bool),
    Signed(i64),
    Text(&'a str),
    Double(f64),
    Unsigned(u64),
    Unset,
}

/// What a whole request may ask for.
#[derive(Default)]
pub(super) struct RequestParameters {
    /// Microseconds; 0 when not given.
    pub(super) timeout_us: u64,
    pub(super) priority: u64,
}

impl RequestParameters {
    pub(super) fn read(entries: &[Bytes]) -> Checked<Self> {
        let mut found = Self::default();
        for entry in entries {
            let (key, value) = entry_of(entry)?;
            match key {
                "timeout" => found.timeout_us = count(key, value)?,
                "priority" => found.priority = count(key, value)?,
                "sequence_id" | "sequence_start" | "sequence_end" if is_set(value) => {
                    return Err(unimplemented(format!(
                        "parameter `{key}`: sequences are not served here; leave it out"
                    )));
                }
                // Triton's clients ask for it on streams, where every answer here is the final one.
                "triton_enable_empty_final_response" => {}
                _ if key.starts_with("triton_") => {
                    return Err(refuse(format!(
                        "parameter {}: names that begin with `triton_` are reserved",
                        quote(key)
                    )));
                }
                _ => {}
            }
        }
        Ok(found)
    }
}

/// What is said about an input.
pub(super) struct InputParameters;

impl InputParameters {
    pub(super) fn check(entry: &[u8]) -> Checked<()> {
        let (key, _) = entry_of(entry)?;
        shared_memory(key)
    }
}

/// What is asked of an output.
#[derive(Default)]
pub(super) struct OutputParameters {
    pub(super) classification: Option<usize>,
}

impl OutputParameters {
    pub(super) fn take(&mut self, entry: &[u8]) -> Checked<()> {
        let (key, value) = entry_of(entry)?;
        if key == "classification" {
            let most = usize::try_from(count(key, value)?).unwrap_or(usize::MAX);
            self.classification = Some(most).filter(|most| *most > 0);
        }
        shared_memory(key)
    }
}

fn shared_memory(key: &str) -> Checked<()> {
    if key.starts_with("shared_memory_") {
        return Err(unimplemented(format!("parameter {}: shared memory is not served here", quote(key))));
    }
    Ok(())
}

/// Key and value of a map's entry.
fn entry_of(entry: &[u8]) -> Checked<(&str, Parameter<'_>)> {
    let (mut key, mut parameter) = ("", Parameter::Unset);
    let mut fields = Fields::new(entry);
    while let Some((number, value)) = fields.next()? {
        match number {
            1 => key = text("parameters.key", value)?,
            2 => parameter = parameter_of(chunk("parameters.value", value)?)?,
            _ => {}
        }
    }
    Ok((key, parameter))
}

fn parameter_of(message: &[u8]) -> Checked<Parameter<'_>> {
    let mut parameter = Parameter::Unset;
    let mut fields = Fields::new(message);
    while let Some((number, value)) = fields.next()? {
        parameter = match (number, value) {
            (1, Value::Varint(value)) => Parameter::Bool(value != 0),
            (2, Value::Varint(value)) => Parameter::Signed(value.cast_signed()),
            (3, value) => Parameter::Text(text("string_param", value)?),
            (4, Value::Fixed64(bytes)) => Parameter::Double(f64::from_le_bytes(bytes)),
            (5, Value::Varint(value)) => Parameter::Unsigned(value),
            (1..=5, _) => return Err(super::wire::mistyped("parameters.value")),
            _ => parameter,
        };
    }
    Ok(parameter)
}

fn count(key: &str, value: Parameter<'_>) -> Checked<u64> {
    let number = match value {
        Parameter::Signed(number) => u64::try_from(number).ok(),
        Parameter::Unsigned(number) => Some(number),
        _ => None,
    };
    number.ok_or_else(|| {
        refuse(format!("parameter `{key}` is {}, expected a whole number from 0", show(value)))
    })
}

fn is_set(value: Parameter<'_>) -> bool {
    match value {
        Parameter::Unset => false,
        Parameter::Bool(flag) => flag,
        Parameter::Signed(number) => number != 0,
        Parameter::Unsigned(number) => number != 0,
        Parameter::Double(number) => number != 0.0,
        Parameter::Text(text) => !text.is_empty(),
    }
}

fn show(value: Parameter<'_>) -> String {
    match value {
        Parameter::Bool(flag) => quote(flag.to_string()),
        Parameter::Signed(number) => quote(number.to_string()),
        Parameter::Unsigned(number) => quote(number.to_string()),
        Parameter::Double(number) => quote(number.to_string()),
        Parameter::Text(text) => format!("the string {}", quote(text)),
        Parameter::Unset => "not set".to_owned(),
    }
}
