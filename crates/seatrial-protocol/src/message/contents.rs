//! The typed values of `InferTensorContents`: a field for each width, straight into the tensor's buffer and back.

use bytes::Bytes;
use seatrial_types::{DataType, Tensor, TensorSpec, byte_strings};

use super::wire::{Fields, Value, chunk, mistyped, push_chunk, push_head, push_varint, varint_size};
use crate::{
    elements::count,
    refusal::{Checked, Refusal, refuse, show_sizes},
    text::values,
};

/// A type's field of the message: number and name. `None` for types that have none.
const fn field(datatype: DataType) -> Option<(u64, &'static str)> {
    Some(match datatype {
        DataType::Bool => (1, "bool_contents"),
        DataType::I8 | DataType::I16 | DataType::I32 => (2, "int_contents"),
        DataType::I64 => (3, "int64_contents"),
        DataType::U8 | DataType::U16 | DataType::U32 => (4, "uint_contents"),
        DataType::U64 => (5, "uint64_contents"),
        DataType::F32 => (6, "fp32_contents"),
        DataType::F64 => (7, "fp64_contents"),
        DataType::Bytes => (8, "bytes_contents"),
        DataType::F16 | DataType::BF16 => return None,
    })
}

/// Whether values of this type can be sent typed.
pub(super) const fn has_field(datatype: DataType) -> bool {
    field(datatype).is_some()
}

/// Reads the values of one input. The buffer never outgrows what the shape takes.
pub(super) fn read(spec: &TensorSpec, shape: &[usize], contents: &[u8]) -> Checked<Bytes> {
    let Some((number, name)) = field(spec.datatype) else {
        return Err(refuse(format!(
            "input `{}`: {} has no typed contents; send it in raw_input_contents",
            spec.name, spec.datatype
        )));
    };
    let due = count(shape).ok_or_else(|| miscounted(spec, shape, None))?;
    // A value takes at least one byte of the message.
    let room = due.min(contents.len()).saturating_mul(spec.datatype.size().unwrap_or(4));
    let mut values = Values { spec, name, shape, due, found: 0, out: Vec::with_capacity(room) };
    let mut fields = Fields::new(contents);
    while let Some((found, value)) = fields.next()? {
        if found == number {
            values.field(value)?;
        } else if (1..=8).contains(&found) {
            return Err(refuse(format!(
                "input `{}`: {} travels in {name}, the contents have another field",
                spec.name, spec.datatype
            )));
        }
    }
    if values.found == due { Ok(values.out.into()) } else { Err(miscounted(spec, shape, Some(values.found))) }
}

#[cold]
fn miscounted(spec: &TensorSpec, shape: &[usize], found: Option<usize>) -> Refusal {
    let sizes = show_sizes(shape);
    let due = count(shape).map_or("more values than can be counted".to_owned(), |n| format!("{n} values"));
    let found = found.map_or(String::new(), |n| format!(", contents has {n}"));
    refuse(format!("input `{}`: shape {sizes} takes {due}{found}", spec.name))
}

struct Values<'a> {
    spec: &'a TensorSpec,
    name: &'static str,
    shape: &'a [usize],
    due: usize,
    found: usize,
    out: Vec<u8>,
}

impl Values<'_> {
    /// One occurrence of the field: a packed list, or a single value.
    fn field(&mut self, value: Value<'_>) -> Checked<()> {
        match self.spec.datatype {
            DataType::Bytes => self.string(chunk(self.name, value)?),
            DataType::F32 => self.floats::<4>(match value {
                Value::Fixed32(ref bytes) => bytes,
                other => chunk(self.name, other)?,
            }),
            DataType::F64 => self.floats::<8>(match value {
                Value::Fixed64(ref bytes) => bytes,
                other => chunk(self.name, other)?,
            }),
            _ => match value {
                Value::Varint(value) => self.whole(value),
                other => self.packed(chunk(self.name, other)?),
            },
        }
    }

    fn packed(&mut self, list: &[u8]) -> Checked<()> {
        let mut fields = Fields::new(list);
        while let Some(value) = fields.packed_varint()? {
            self.whole(value)?;
        }
        Ok(())
    }

    fn whole(&mut self, value: u64) -> Checked<()> {
        self.count(1)?;
        // `int32` and `uint32` fields are cut to their width by every reader; `int64` is two's complement.
        let (signed, unsigned) = (i64::from(value as i32), u64::from(value as u32));
        let out = &mut self.out;
        let fits = match self.spec.datatype {
            DataType::Bool => push(out, Some([u8::from(value != 0)])),
            DataType::I8 => push(out, i8::try_from(signed).ok().map(i8::to_le_bytes)),
            DataType::I16 => push(out, i16::try_from(signed).ok().map(i16::to_le_bytes)),
            DataType::I32 => push(out, Some((value as i32).to_le_bytes())),
            DataType::U8 => push(out, u8::try_from(unsigned).ok().map(u8::to_le_bytes)),
            DataType::U16 => push(out, u16::try_from(unsigned).ok().map(u16::to_le_bytes)),
            DataType::U32 => push(out, Some((value as u32).to_le_bytes())),
            _ => push(out, Some(value.to_le_bytes())),
        };
        if fits { Ok(()) } else { Err(self.out_of_range(value)) }
    }

    #[cold]
    fn out_of_range(&self, value: u64) -> Refusal {
        let signed = matches!(self.spec.datatype, DataType::I8 | DataType::I16);
        let shown = if signed { i64::from(value as i32).to_string() } else { (value as u32).to_string() };
        let (name, index, datatype) = (&self.spec.name, self.found - 1, self.spec.datatype);
        refuse(format!("input `{name}`: value {index} is {shown}, which is out of range for {datatype}"))
    }

    fn floats<const SIZE: usize>(&mut self, list: &[u8]) -> Checked<()> {
        if !list.len().is_multiple_of(SIZE) {
            return Err(mistyped(self.name));
        }
        self.count(list.len() / SIZE)?;
        self.out.extend_from_slice(list);
        Ok(())
    }

    fn string(&mut self, item: &[u8]) -> Checked<()> {
        self.count(1)?;
        let length =
            u32::try_from(item.len()).map_err(|_| refuse("a string is at most 4294967295 bytes long"))?;
        self.out.extend_from_slice(&length.to_le_bytes());
        self.out.extend_from_slice(item);
        Ok(())
    }

    fn count(&mut self, more: usize) -> Checked<()> {
        self.found += more;
        if self.found > self.due {
            return Err(refuse(format!(
                "input `{}`: shape {} takes {} values, contents has more",
                self.spec.name,
                show_sizes(self.shape),
                self.due
            )));
        }
        Ok(())
    }
}

fn push<const SIZE: usize>(out: &mut Vec<u8>, bytes: Option<[u8; SIZE]>) -> bool {
    bytes.inspect(|bytes| out.extend_from_slice(bytes)).is_some()
}

/// Appends the values of a tensor as the body of `InferTensorContents`.
pub(super) fn push_contents(out: &mut Vec<u8>, tensor: &Tensor) {
    let Some((number, _)) = field(tensor.datatype) else { return };
    let data = &tensor.data;
    match tensor.datatype {
        DataType::Bytes => byte_strings(data).for_each(|item| push_chunk(out, number, item)),
        // A bool takes one byte as a varint, as in the tensor; floats are little-endian on both sides.
        DataType::Bool | DataType::F32 | DataType::F64 => push_chunk(out, number, data),
        DataType::I8 => push_whole(out, number, || values(data, |b| i64::from(i8::from_le_bytes(b)) as u64)),
        DataType::I16 => {
            push_whole(out, number, || values(data, |b| i64::from(i16::from_le_bytes(b)) as u64));
        }
        DataType::I32 => {
            push_whole(out, number, || values(data, |b| i64::from(i32::from_le_bytes(b)) as u64));
        }
        DataType::U8 => push_whole(out, number, || values(data, |b| u8::from_le_bytes(b).into())),
        DataType::U16 => push_whole(out, number, || values(data, |b| u16::from_le_bytes(b).into())),
        DataType::U32 => push_whole(out, number, || values(data, |b| u32::from_le_bytes(b).into())),
        _ => push_whole(out, number, || values(data, u64::from_le_bytes)),
    }
}

fn push_whole<I: Iterator<Item = u64>>(out: &mut Vec<u8>, number: u64, values: impl Fn() -> I) {
    push_head(out, number, values().map(varint_size).sum());
    values().for_each(|value| push_varint(out, value));
}
