//! One element of a tensor from a whole number.

use seatrial_types::DataType;

/// The bytes of `value` as one element; of texts the empty one. Half floats are written as zero: whoever chooses a
/// value for them has made sure that it is.
pub(crate) fn element(datatype: DataType, value: i64) -> Vec<u8> {
    match datatype {
        DataType::F32 => (value as f32).to_le_bytes().to_vec(),
        DataType::F64 => (value as f64).to_le_bytes().to_vec(),
        DataType::F16 | DataType::BF16 => vec![0; 2],
        DataType::Bytes => vec![0; 4],
        whole => {
            let bytes = value.to_le_bytes();
            bytes.get(..whole.size().unwrap_or(1)).unwrap_or_default().to_vec()
        }
    }
}
