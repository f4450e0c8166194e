//! A tensor as it travels: type, shape and one contiguous little-endian, row-major buffer.

use bytes::Bytes;

use crate::DataType;

/// A dense tensor. `BYTES` elements lie in `data` as on the wire: a little-endian `u32` length, then the bytes.
/// The buffer is reference counted, so handing a tensor on copies nothing; its alignment is not promised.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tensor {
    /// Element type.
    pub datatype: DataType,
    /// Sizes, outermost first; empty for a scalar.
    pub shape: Vec<usize>,
    /// `elements * size` bytes, or length-prefixed strings for `BYTES`. Whoever makes a tensor has checked this.
    pub data: Bytes,
}

impl Tensor {
    /// Number of elements: the product of the shape, 1 for a scalar.
    pub fn elements(&self) -> usize {
        self.shape.iter().product()
    }

    /// Size of the first dimension, or 1 for a scalar.
    pub fn rows(&self) -> usize {
        self.shape.first().copied().unwrap_or(1)
    }
}

/// The elements of a `BYTES` buffer in order. Stops at the first length that passes the end, so a caller that counts
/// the items against the shape has validated the buffer.
pub fn byte_strings(data: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = data;
    std::iter::from_fn(move || {
        let (length, tail) = rest.split_first_chunk::<4>()?;
        let item = tail.get(..u32::from_le_bytes(*length) as usize)?;
        rest = tail.get(item.len()..)?;
        Some(item)
    })
}
