//! Writing JSON straight into one buffer: strings, and the values of a tensor in the shortest digits that give the
//! same bits back.

use seatrial_types::{DataType, Error, Result, Tensor, byte_strings};

use crate::half::{BF16, FP16};

/// Appends a JSON string. Only what must be escaped is.
pub(crate) fn push_string(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    let mut rest = text.as_bytes();
    while let Some(at) = rest.iter().position(|b| matches!(b, b'"' | b'\\' | 0..0x20)) {
        let (plain, tail) = rest.split_at(at);
        out.extend_from_slice(plain);
        let Some((special, tail)) = tail.split_first() else { break };
        push_escape(out, *special);
        rest = tail;
    }
    out.extend_from_slice(rest);
    out.push(b'"');
}

#[cold]
fn push_escape(out: &mut Vec<u8>, byte: u8) {
    let digit = |n: u8| if n < 10 { b'0' + n } else { b'a' + n - 10 };
    match byte {
        b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
        b'\n' => out.extend_from_slice(b"\\n"),
        b'\r' => out.extend_from_slice(b"\\r"),
        b'\t' => out.extend_from_slice(b"\\t"),
        _ => out.extend_from_slice(&[b'\\', b'u', b'0', b'0', digit(byte >> 4), digit(byte & 15)]),
    }
}

pub(crate) fn push_integer(out: &mut Vec<u8>, value: impl itoa::Integer) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

/// Appends `[1,2,3]`.
pub(crate) fn push_shape(out: &mut Vec<u8>, shape: &[usize]) {
    push_list(out, shape.iter(), |out, size| push_integer(out, *size));
}

/// Appends the values as one flat list. `name` is the output's, for errors.
pub(crate) fn push_data(out: &mut Vec<u8>, name: &str, tensor: &Tensor) -> Result<()> {
    let data = &tensor.data;
    match tensor.datatype {
        DataType::Bool => push_list(out, data.iter(), |out, byte| {
            out.extend_from_slice(if *byte == 0 { b"false" } else { b"true" });
        }),
        DataType::U8 => push_list(out, values(data, u8::from_le_bytes), push_integer),
        DataType::U16 => push_list(out, values(data, u16::from_le_bytes), push_integer),
        DataType::U32 => push_list(out, values(data, u32::from_le_bytes), push_integer),
        DataType::U64 => push_list(out, values(data, u64::from_le_bytes), push_integer),
        DataType::I8 => push_list(out, values(data, i8::from_le_bytes), push_integer),
        DataType::I16 => push_list(out, values(data, i16::from_le_bytes), push_integer),
        DataType::I32 => push_list(out, values(data, i32::from_le_bytes), push_integer),
        DataType::I64 => push_list(out, values(data, i64::from_le_bytes), push_integer),
        DataType::F16 => push_list(out, values(data, |b| FP16.widen(u16::from_le_bytes(b))), push_float),
        DataType::BF16 => push_list(out, values(data, |b| BF16.widen(u16::from_le_bytes(b))), push_float),
        DataType::F32 => push_list(out, values(data, f32::from_le_bytes), push_float),
        DataType::F64 => push_list(out, values(data, f64::from_le_bytes), push_double),
        DataType::Bytes => return push_strings(out, name, tensor),
    }
    Ok(())
}

/// About how many characters the values take.
pub(crate) fn estimate(tensor: &Tensor) -> usize {
    let each = match tensor.datatype {
        DataType::Bytes => return tensor.data.len().saturating_mul(2),
        DataType::Bool | DataType::U16 | DataType::I16 => 6,
        DataType::U8 | DataType::I8 => 5,
        DataType::U32 | DataType::I32 => 11,
        DataType::F16 | DataType::BF16 | DataType::F32 => 14,
        DataType::U64 | DataType::I64 | DataType::F64 => 21,
    };
    let width = tensor.datatype.size().unwrap_or(1);
    (tensor.data.len() / width).saturating_mul(each)
}

pub(crate) fn values<'a, const SIZE: usize, T>(
    data: &'a [u8],
    read: impl Fn([u8; SIZE]) -> T + 'a,
) -> impl Iterator<Item = T> + 'a {
    data.as_chunks::<SIZE>().0.iter().map(move |bytes| read(*bytes))
}

fn push_list<T>(out: &mut Vec<u8>, values: impl Iterator<Item = T>, push: impl Fn(&mut Vec<u8>, T)) {
    out.push(b'[');
    for (n, value) in values.enumerate() {
        if n > 0 {
            out.push(b',');
        }
        push(out, value);
    }
    out.push(b']');
}

fn push_float(out: &mut Vec<u8>, value: f32) {
    if value.is_finite() {
        out.extend_from_slice(zmij::Buffer::new().format_finite(value).as_bytes());
    } else {
        push_non_finite(out, value.into());
    }
}

fn push_double(out: &mut Vec<u8>, value: f64) {
    if value.is_finite() {
        out.extend_from_slice(zmij::Buffer::new().format_finite(value).as_bytes());
    } else {
        push_non_finite(out, value);
    }
}

#[cold]
fn push_non_finite(out: &mut Vec<u8>, value: f64) {
    let text: &[u8] = match value {
        f64::INFINITY => b"\"Infinity\"",
        f64::NEG_INFINITY => b"\"-Infinity\"",
        _ => b"\"NaN\"",
    };
    out.extend_from_slice(text);
}

fn push_strings(out: &mut Vec<u8>, name: &str, tensor: &Tensor) -> Result<()> {
    out.push(b'[');
    for (n, item) in byte_strings(&tensor.data).enumerate() {
        if n > 0 {
            out.push(b',');
        }
        let text = std::str::from_utf8(item).map_err(|_| {
            Error::invalid(format!(
                "output `{name}`: string {n} is not UTF-8 and has no JSON form; ask for it with `binary_data`: true"
            ))
        })?;
        push_string(out, text);
    }
    out.push(b']');
    Ok(())
}
