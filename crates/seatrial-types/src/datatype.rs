//! Element types under their Open Inference Protocol names.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The element type of a tensor. `Bytes` is the protocol's name for strings of any bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[allow(missing_docs, reason = "each variant is the protocol's own name for the type")]
pub enum DataType {
    #[serde(rename = "BOOL")]
    Bool,
    #[serde(rename = "UINT8")]
    U8,
    #[serde(rename = "UINT16")]
    U16,
    #[serde(rename = "UINT32")]
    U32,
    #[serde(rename = "UINT64")]
    U64,
    #[serde(rename = "INT8")]
    I8,
    #[serde(rename = "INT16")]
    I16,
    #[serde(rename = "INT32")]
    I32,
    #[serde(rename = "INT64")]
    I64,
    #[serde(rename = "FP16")]
    F16,
    #[serde(rename = "BF16")]
    BF16,
    #[serde(rename = "FP32")]
    F32,
    #[serde(rename = "FP64")]
    F64,
    #[serde(rename = "BYTES")]
    Bytes,
}

impl DataType {
    /// Every type, in the order of the protocol's table.
    pub const ALL: [Self; 14] = [
        Self::Bool,
        Self::U8,
        Self::U16,
        Self::U32,
        Self::U64,
        Self::I8,
        Self::I16,
        Self::I32,
        Self::I64,
        Self::F16,
        Self::BF16,
        Self::F32,
        Self::F64,
        Self::Bytes,
    ];

    /// The protocol's name, such as `FP32`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bool => "BOOL",
            Self::U8 => "UINT8",
            Self::U16 => "UINT16",
            Self::U32 => "UINT32",
            Self::U64 => "UINT64",
            Self::I8 => "INT8",
            Self::I16 => "INT16",
            Self::I32 => "INT32",
            Self::I64 => "INT64",
            Self::F16 => "FP16",
            Self::BF16 => "BF16",
            Self::F32 => "FP32",
            Self::F64 => "FP64",
            Self::Bytes => "BYTES",
        }
    }

    /// The type of a protocol name; `None` for any other text.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|t| t.name() == name)
    }

    /// Bytes of one element; `None` for `BYTES`, whose elements have lengths of their own.
    pub const fn size(self) -> Option<usize> {
        match self {
            Self::Bool | Self::U8 | Self::I8 => Some(1),
            Self::U16 | Self::I16 | Self::F16 | Self::BF16 => Some(2),
            Self::U32 | Self::I32 | Self::F32 => Some(4),
            Self::U64 | Self::I64 | Self::F64 => Some(8),
            Self::Bytes => None,
        }
    }
}

impl fmt::Display for DataType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
