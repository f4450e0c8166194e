//! The tensors of a call while they grow row by row, and as they go on: in one piece, or by length of their rows.

use std::collections::BTreeMap;

use bytes::Bytes;
use seatrial_types::{DataType, Tensor};

use crate::{
    error::{Fault, SpecError},
    numeric::Num,
    spec::TensorTarget,
};

/// How one tensor is laid out.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    pub(crate) name: String,
    datatype: DataType,
    size: usize,
    /// Sizes behind the batch axis; empty for a tensor of rank 1.
    inner: Vec<usize>,
    /// Elements of a row; `None` for rows of any length.
    pub(crate) width: Option<usize>,
    range: Option<(f64, f64)>,
    /// What fills up a short row.
    pub(crate) pad: i64,
}

impl Layout {
    pub(crate) fn compile(target: &TensorTarget) -> Result<Self, SpecError> {
        let TensorTarget { name, datatype, inner, range } = target;
        let size = match datatype {
            DataType::F16 | DataType::BF16 | DataType::Bytes => None,
            other => other.size(),
        };
        let size = size.ok_or_else(|| {
            SpecError::new(format!(
                "tensor `{name}` is {datatype}: features make integers, FP32, FP64 and BOOL"
            ))
        })?;
        let fixed: Option<Vec<usize>> = inner.iter().copied().collect();
        let (inner, width) = match (fixed, inner.as_slice()) {
            (Some(fixed), _) => {
                let width = fixed.iter().try_fold(1_usize, |n, size| n.checked_mul(*size));
                let width = width.filter(|n| *n > 0 && *n <= 1 << 24).ok_or_else(|| {
                    SpecError::new(format!("tensor `{name}` has a shape of {fixed:?}: too large or empty"))
                })?;
                (fixed, Some(width))
            }
            (None, [None]) => (Vec::new(), None),
            _ => {
                return Err(SpecError::new(format!(
                    "tensor `{name}` has a free axis beside others: expected [batch, tokens]"
                )));
            }
        };
        Ok(Self { name: name.clone(), datatype: *datatype, size, inner, width, range: *range, pad: 0 })
    }

    /// Bytes of a row of fixed width; 0 for rows of any length.
    pub(crate) fn row_bytes(&self) -> usize {
        self.width.unwrap_or(0) * self.size
    }

    pub(crate) fn is_whole(&self) -> bool {
        !matches!(self.datatype, DataType::F32 | DataType::F64)
    }

    /// Appends the number's bytes.
    fn encode(&self, number: Num) -> Result<([u8; 8], usize), Fault> {
        let (value, bytes) = match self.datatype {
            DataType::F32 => {
                let narrow = number.to_f64() as f32;
                if narrow.is_infinite() {
                    return Err(self.outside(number));
                }
                (f64::from(narrow), wide(narrow.to_le_bytes()))
            }
            DataType::F64 => (number.to_f64(), number.to_f64().to_le_bytes()),
            _ => {
                let Num::Int(whole) = number.settled() else {
                    let text = format!("a whole number for tensor `{}`", self.name);
                    return Err(Fault::new(text).with(format!("`{:?}`", number.to_f64())));
                };
                if !self.holds(whole) {
                    return Err(self.outside(number));
                }
                // Two's complement: the low bytes of the wide number are the narrow one.
                (whole as f64, whole.to_le_bytes())
            }
        };
        if let Some((low, high)) = self.range {
            let fits = match self.datatype {
                DataType::F32 => (low as f32..=high as f32).contains(&(value as f32)),
                _ => (low..=high).contains(&value),
            };
            if !fits {
                let text = format!("a value of {low} to {high} in tensor `{}`", self.name);
                return Err(Fault::new(text).with(show(number)));
            }
        }
        Ok((bytes, self.size))
    }

    fn holds(&self, whole: i64) -> bool {
        match self.datatype {
            DataType::Bool => matches!(whole, 0 | 1),
            DataType::U8 => u8::try_from(whole).is_ok(),
            DataType::U16 => u16::try_from(whole).is_ok(),
            DataType::U32 => u32::try_from(whole).is_ok(),
            DataType::U64 => u64::try_from(whole).is_ok(),
            DataType::I8 => i8::try_from(whole).is_ok(),
            DataType::I16 => i16::try_from(whole).is_ok(),
            DataType::I32 => i32::try_from(whole).is_ok(),
            _ => true,
        }
    }

    fn outside(&self, number: Num) -> Fault {
        Fault::new(format!("a value that {} can hold, in tensor `{}`", self.datatype, self.name))
            .with(show(number))
    }
}

fn show(number: Num) -> String {
    match number {
        Num::Int(value) => format!("`{value}`"),
        Num::Float(value) => format!("`{value:?}`"),
    }
}

fn wide(bytes: [u8; 4]) -> [u8; 8] {
    let [a, b, c, d] = bytes;
    [a, b, c, d, 0, 0, 0, 0]
}

/// One tensor of a call.
#[derive(Debug)]
struct Growing {
    data: Vec<u8>,
    /// End of each row in elements, for rows of any length.
    ends: Vec<usize>,
}

/// All tensors of a call while rows are added.
#[derive(Debug)]
pub(crate) struct Table<'p> {
    layouts: &'p [Layout],
    growing: Vec<Growing>,
    rows: usize,
}

impl<'p> Table<'p> {
    pub(crate) fn new(layouts: &'p [Layout]) -> Self {
        let growing = layouts.iter().map(|_| Growing { data: Vec::new(), ends: Vec::new() }).collect();
        Self { layouts, growing, rows: 0 }
    }

    /// A new row of zeros.
    pub(crate) fn begin_row(&mut self) {
        self.rows += 1;
        for (layout, growing) in self.layouts.iter().zip(&mut self.growing) {
            growing.data.resize(growing.data.len() + layout.row_bytes(), 0);
        }
    }

    /// Writes one element of the last row.
    pub(crate) fn put(&mut self, tensor: usize, column: usize, number: Num) -> Result<(), Fault> {
        let (Some(layout), Some(growing)) = (self.layouts.get(tensor), self.growing.get_mut(tensor)) else {
            return Ok(());
        };
        let (bytes, size) = layout.encode(number)?;
        let at = growing.data.len() - layout.row_bytes() + column * size;
        if let (Some(cell), Some(bytes)) = (growing.data.get_mut(at..at + size), bytes.get(..size)) {
            cell.copy_from_slice(bytes);
        }
        Ok(())
    }

    /// Writes the last row of a tensor whose rows have any length.
    pub(crate) fn put_row(&mut self, tensor: usize, row: impl Iterator<Item = i64>) -> Result<(), Fault> {
        let (Some(layout), Some(growing)) = (self.layouts.get(tensor), self.growing.get_mut(tensor)) else {
            return Ok(());
        };
        for number in row {
            let (bytes, size) = layout.encode(Num::Int(number))?;
            growing.data.extend_from_slice(bytes.get(..size).unwrap_or_default());
        }
        growing.ends.push(growing.data.len() / layout.size);
        Ok(())
    }

    pub(crate) fn finish(self) -> Prepared {
        let tensors = self.layouts.iter().cloned().zip(self.growing);
        Prepared { rows: self.rows, tensors: tensors.collect() }
    }
}

/// The tensors of all rows of a call.
#[derive(Debug)]
pub struct Prepared {
    rows: usize,
    tensors: Vec<(Layout, Growing)>,
}

/// Rows of a call that are equally long, with their tensors.
#[derive(Debug)]
pub struct Group {
    /// Their places in the call, ascending.
    pub rows: Vec<usize>,
    /// Inputs in the order of the spec's tensors.
    pub inputs: Vec<Tensor>,
}

impl Prepared {
    /// How many rows there are.
    pub const fn rows(&self) -> usize {
        self.rows
    }

    /// All rows in one piece by name; rows of tokens are filled up to the longest.
    pub fn padded(self) -> Vec<(String, Tensor)> {
        let rows = self.rows;
        let whole = |(layout, growing): (Layout, Growing)| {
            let tensor = if layout.width.is_some() {
                fixed(&layout, growing.data, rows)
            } else {
                pad(&layout, &growing)
            };
            (layout.name, tensor)
        };
        self.tensors.into_iter().map(whole).collect()
    }

    /// Rows of equal length together, so that nothing is padded. One group when no tensor has rows of any length, and
    /// none when there are no rows.
    pub fn by_length(self) -> Vec<Group> {
        if self.rows == 0 {
            return Vec::new();
        }
        let mut groups: BTreeMap<Vec<usize>, Vec<usize>> = BTreeMap::new();
        for row in 0..self.rows {
            let ragged = self.tensors.iter().filter(|(layout, _)| layout.width.is_none());
            let lengths = ragged.map(|(_, growing)| growing.span(row).len()).collect();
            groups.entry(lengths).or_default().push(row);
        }
        if groups.len() == 1 {
            let rows = (0..self.rows).collect();
            return vec![Group {
                rows,
                inputs: self.padded().into_iter().map(|(_, tensor)| tensor).collect(),
            }];
        }
        let inputs =
            |rows: &[usize]| self.tensors.iter().map(|(layout, g)| gather(layout, g, rows)).collect();
        groups.into_values().map(|rows| Group { inputs: inputs(&rows), rows }).collect()
    }
}

impl Growing {
    /// The elements of a row of any length.
    fn span(&self, row: usize) -> std::ops::Range<usize> {
        let end = |row: usize| self.ends.get(row).copied().unwrap_or_default();
        row.checked_sub(1).map_or(0, end)..end(row)
    }
}

fn fixed(layout: &Layout, data: Vec<u8>, rows: usize) -> Tensor {
    let shape = std::iter::once(rows).chain(layout.inner.iter().copied()).collect();
    Tensor { datatype: layout.datatype, shape, data: Bytes::from(data) }
}

fn pad(layout: &Layout, growing: &Growing) -> Tensor {
    let rows = growing.ends.len();
    let longest = (0..rows).map(|row| growing.span(row).len()).max().unwrap_or(0);
    let filler = layout.pad.to_le_bytes();
    let filler = filler.get(..layout.size).unwrap_or_default();
    let mut data = Vec::with_capacity(rows * longest * layout.size);
    for row in 0..rows {
        let span = growing.span(row);
        let missing = longest - span.len();
        data.extend_from_slice(
            growing.data.get(span.start * layout.size..span.end * layout.size).unwrap_or_default(),
        );
        for _ in 0..missing {
            data.extend_from_slice(filler);
        }
    }
    Tensor { datatype: layout.datatype, shape: vec![rows, longest], data: Bytes::from(data) }
}

/// The tensor of some rows, which are equally long.
fn gather(layout: &Layout, growing: &Growing, rows: &[usize]) -> Tensor {
    let mut data = Vec::new();
    for row in rows {
        let span = layout.width.map_or_else(|| growing.span(*row), |width| row * width..(row + 1) * width);
        data.extend_from_slice(
            growing.data.get(span.start * layout.size..span.end * layout.size).unwrap_or_default(),
        );
    }
    if layout.width.is_some() {
        return fixed(layout, data, rows.len());
    }
    let length = rows.first().map_or(0, |row| growing.span(*row).len());
    Tensor { datatype: layout.datatype, shape: vec![rows.len(), length], data: Bytes::from(data) }
}
