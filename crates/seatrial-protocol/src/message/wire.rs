//! The wire format of protocol buffers: fields out of bytes, and bytes out of fields. Nothing is allocated to read,
//! and nothing nests, so that a hostile message costs no more than one pass over it.

use bytes::Bytes;

use crate::refusal::{Checked, refuse};

/// What a field holds. Groups, which no message here has, are refused.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Value<'a> {
    Varint(u64),
    Fixed64([u8; 8]),
    Chunk(&'a [u8]),
    Fixed32([u8; 4]),
}

/// The fields of one message, in the order in which they stand.
pub(super) struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    pub(super) const fn new(message: &'a [u8]) -> Self {
        Self { rest: message }
    }

    /// Number and value of the next field; `None` at the end.
    pub(super) fn next(&mut self) -> Checked<Option<(u64, Value<'a>)>> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let key = self.varint()?;
        let value = match key & 7 {
            0 => Value::Varint(self.varint()?),
            1 => Value::Fixed64(self.fixed()?),
            2 => {
                let length = usize::try_from(self.varint()?).unwrap_or(usize::MAX);
                let (chunk, rest) = self.rest.split_at_checked(length).ok_or_else(cut)?;
                self.rest = rest;
                Value::Chunk(chunk)
            }
            5 => Value::Fixed32(self.fixed()?),
            other => return Err(refuse(format!("the protobuf message has a field of wire type {other}"))),
        };
        match key >> 3 {
            0 => Err(refuse("the protobuf message has a field with number 0")),
            number => Ok(Some((number, value))),
        }
    }

    /// The next number of a packed list; `None` at the end.
    pub(super) fn packed_varint(&mut self) -> Checked<Option<u64>> {
        if self.rest.is_empty() { Ok(None) } else { self.varint().map(Some) }
    }

    fn varint(&mut self) -> Checked<u64> {
        let mut value = 0;
        for (place, byte) in self.rest.iter().take(10).enumerate() {
            value |= u64::from(byte & 0x7f).checked_shl(7 * place as u32).unwrap_or(0);
            if *byte < 0x80 {
                self.rest = self.rest.get(place + 1..).unwrap_or_default();
                return Ok(value);
            }
        }
        Err(cut())
    }

    fn fixed<const SIZE: usize>(&mut self) -> Checked<[u8; SIZE]> {
        let (value, rest) = self.rest.split_first_chunk().ok_or_else(cut)?;
        self.rest = rest;
        Ok(*value)
    }
}

#[cold]
fn cut() -> crate::refusal::Refusal {
    refuse("the protobuf message is malformed: a field passes its end")
}

/// The text of a field, which proto3 promises to be UTF-8.
pub(super) fn text<'a>(what: &str, value: Value<'a>) -> Checked<&'a str> {
    std::str::from_utf8(chunk(what, value)?)
        .map_err(|_| refuse(format!("`{what}` of the protobuf message is not UTF-8")))
}

/// The bytes of a field.
pub(super) fn chunk<'a>(what: &str, value: Value<'a>) -> Checked<&'a [u8]> {
    if let Value::Chunk(chunk) = value { Ok(chunk) } else { Err(mistyped(what)) }
}

#[cold]
pub(super) fn mistyped(what: &str) -> crate::refusal::Refusal {
    refuse(format!("`{what}` of the protobuf message has another type than it should"))
}

/// The part of `whole` that `part` borrows, without a copy.
pub(super) fn shared(whole: &Bytes, part: &[u8]) -> Bytes {
    if part.is_empty() { Bytes::new() } else { whole.slice_ref(part) }
}

pub(super) fn push_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Bytes that a varint takes.
pub(super) fn varint_size(value: u64) -> usize {
    (64 - (value | 1).leading_zeros() as usize).div_ceil(7)
}

/// Appends a length-delimited field. Empty ones are left out, as proto3 does for single fields.
pub(super) fn push_text(out: &mut Vec<u8>, number: u64, text: &str) {
    if !text.is_empty() {
        push_chunk(out, number, text.as_bytes());
    }
}

pub(super) fn push_chunk(out: &mut Vec<u8>, number: u64, chunk: &[u8]) {
    push_head(out, number, chunk.len());
    out.extend_from_slice(chunk);
}

/// The start of a length-delimited field whose content follows.
pub(super) fn push_head(out: &mut Vec<u8>, number: u64, length: usize) {
    push_varint(out, number << 3 | 2);
    push_varint(out, length as u64);
}
