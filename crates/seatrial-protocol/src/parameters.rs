//! The `parameters` of a request, an input and an output: those with a meaning are read, others pass unread.

use crate::{
    decode::set_once,
    json::{Reader, Scalar},
    refusal::{Checked, quote, refuse, unimplemented},
};

/// What a whole request may ask for.
#[derive(Default)]
pub(crate) struct RequestParameters {
    pub(crate) binary_output: bool,
    /// Microseconds; 0 when not given.
    pub(crate) timeout_us: u64,
    pub(crate) priority: u64,
}

impl RequestParameters {
    pub(crate) fn read(reader: &mut Reader<'_>) -> Checked<Self> {
        let (mut binary, mut timeout, mut priority) = (None, None, None);
        each(reader, |key, value| match key {
            "binary_data_output" => set_once(&mut binary, key, flag(key, &value)?),
            "timeout" => set_once(&mut timeout, key, count(key, &value)?),
            "priority" => set_once(&mut priority, key, count(key, &value)?),
            "sequence_id" | "sequence_start" | "sequence_end" if is_set(&value) => {
                Err(unimplemented(format!("parameter `{key}`: sequences are not served here; leave it out")))
            }
            _ if key.starts_with("triton_") => {
                Err(refuse(format!("parameter {}: names that begin with `triton_` are reserved", quote(key))))
            }
            _ => Ok(()),
        })?;
        Ok(Self {
            binary_output: binary.unwrap_or(false),
            timeout_us: timeout.unwrap_or(0),
            priority: priority.unwrap_or(0),
        })
    }
}

/// What is said about an input.
#[derive(Default)]
pub(crate) struct InputParameters {
    pub(crate) binary_size: Option<usize>,
}

impl InputParameters {
    pub(crate) fn read(reader: &mut Reader<'_>) -> Checked<Self> {
        let mut size = None;
        each(reader, |key, value| match key {
            "binary_data_size" => {
                let bytes = usize::try_from(count(key, &value)?).unwrap_or(usize::MAX);
                set_once(&mut size, key, bytes)
            }
            _ => shared_memory(key),
        })?;
        Ok(Self { binary_size: size })
    }
}

/// What is asked of an output.
#[derive(Default)]
pub(crate) struct OutputParameters {
    pub(crate) binary: Option<bool>,
    pub(crate) classification: Option<usize>,
}

impl OutputParameters {
    pub(crate) fn read(reader: &mut Reader<'_>) -> Checked<Self> {
        let (mut binary, mut classes) = (None, None);
        each(reader, |key, value| match key {
            "binary_data" => set_once(&mut binary, key, flag(key, &value)?),
            "classification" => {
                let most = usize::try_from(count(key, &value)?).unwrap_or(usize::MAX);
                set_once(&mut classes, key, most)
            }
            _ => shared_memory(key),
        })?;
        Ok(Self { binary, classification: classes.filter(|most| *most > 0) })
    }
}

/// Calls `meaning` with every parameter. `null` in place of the object is no parameter at all.
fn each(reader: &mut Reader<'_>, mut meaning: impl FnMut(&str, Scalar<'_>) -> Checked<()>) -> Checked<()> {
    if reader.literal("null") {
        return Ok(());
    }
    reader.object("an object for `parameters`", |reader, key| meaning(key, reader.scalar()?))
}

fn shared_memory(key: &str) -> Checked<()> {
    if key.starts_with("shared_memory_") {
        return Err(unimplemented(format!("parameter {}: shared memory is not served here", quote(key))));
    }
    Ok(())
}

fn flag(key: &str, value: &Scalar<'_>) -> Checked<bool> {
    match value {
        Scalar::Bool(flag) => Ok(*flag),
        _ => Err(refuse(format!("parameter `{key}` is {}, expected true or false", show(value)))),
    }
}

fn count(key: &str, value: &Scalar<'_>) -> Checked<u64> {
    let number = if let Scalar::Number(number) = value { number.to_u64() } else { None };
    number.ok_or_else(|| {
        refuse(format!("parameter `{key}` is {}, expected a whole number from 0", show(value)))
    })
}

/// Whether a sequence parameter asks for anything.
fn is_set(value: &Scalar<'_>) -> bool {
    match value {
        Scalar::Null | Scalar::Bool(false) => false,
        Scalar::Number(number) => number.to_u64() != Some(0),
        Scalar::Text(text) => !text.is_empty(),
        Scalar::Bool(true) | Scalar::Nested => true,
    }
}

fn show(value: &Scalar<'_>) -> String {
    match value {
        Scalar::Null => quote("null"),
        Scalar::Bool(flag) => quote(flag.to_string()),
        Scalar::Number(number) => quote(number.text),
        Scalar::Text(text) => format!("the string {}", quote(&**text)),
        Scalar::Nested => "a list or an object".to_owned(),
    }
}
