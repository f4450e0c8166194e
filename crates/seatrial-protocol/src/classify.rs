//! The classification extension: an output as its largest values, `value:index` or `value:index:label`.

use std::cmp::Ordering;

use bytes::Bytes;
use seatrial_types::{DataType, Dim, Error, Result, Tensor, TensorSpec};

use crate::{
    half::{BF16, FP16, Format},
    text::values,
};

/// The `most` largest values of every row as a `BYTES` tensor `[rows, most]`, or `[most]` without a batch dimension.
/// Fewer classes than asked for give all of them. Equal values keep the order of their indexes; NaN comes last.
pub(crate) fn classify(spec: &TensorSpec, tensor: &Tensor, most: usize) -> Result<Tensor> {
    let scores = scores(spec, tensor)?;
    let batched = tensor.shape.len() > 1 || matches!(spec.shape.first(), Some(Dim::Free { .. }));
    let rows = if batched { tensor.rows() } else { 1 };
    let classes = scores.len().checked_div(rows).unwrap_or(0);
    let most = most.min(classes);
    let mut data = Vec::new();
    for row in scores.chunks(classes.max(1)) {
        for (index, score) in largest(row, most) {
            let text = entry(score, index, spec);
            data.extend_from_slice(&u32::try_from(text.len()).unwrap_or(0).to_le_bytes());
            data.extend_from_slice(text.as_bytes());
        }
    }
    let shape = if batched { vec![rows, most] } else { vec![most] };
    Ok(Tensor { datatype: DataType::Bytes, shape, data: Bytes::from(data) })
}

/// A value to rank: integers are compared and shown exactly.
#[derive(Clone, Copy)]
enum Score {
    Whole(i128),
    Float(f64),
}

impl Score {
    fn is_nan(self) -> bool {
        matches!(self, Self::Float(value) if value.is_nan())
    }

    /// Largest first. The scores of one output are all of one kind.
    fn rank(self, other: Self) -> Ordering {
        match (self, other) {
            (Self::Whole(a), Self::Whole(b)) => b.cmp(&a),
            (Self::Float(a), Self::Float(b)) => b.partial_cmp(&a).unwrap_or(Ordering::Equal),
            _ => Ordering::Equal,
        }
    }
}

fn scores(spec: &TensorSpec, tensor: &Tensor) -> Result<Vec<Score>> {
    let data = &tensor.data;
    let whole = |value: i128| Score::Whole(value);
    Ok(match tensor.datatype {
        DataType::U8 => values(data, u8::from_le_bytes).map(|v| whole(v.into())).collect(),
        DataType::U16 => values(data, u16::from_le_bytes).map(|v| whole(v.into())).collect(),
        DataType::U32 => values(data, u32::from_le_bytes).map(|v| whole(v.into())).collect(),
        DataType::U64 => values(data, u64::from_le_bytes).map(|v| whole(v.into())).collect(),
        DataType::I8 => values(data, i8::from_le_bytes).map(|v| whole(v.into())).collect(),
        DataType::I16 => values(data, i16::from_le_bytes).map(|v| whole(v.into())).collect(),
        DataType::I32 => values(data, i32::from_le_bytes).map(|v| whole(v.into())).collect(),
        DataType::I64 => values(data, i64::from_le_bytes).map(|v| whole(v.into())).collect(),
        DataType::F16 => values(data, |b| half(FP16, b)).collect(),
        DataType::BF16 => values(data, |b| half(BF16, b)).collect(),
        DataType::F32 => values(data, |b| Score::Float(f32::from_le_bytes(b).into())).collect(),
        DataType::F64 => values(data, |b| Score::Float(f64::from_le_bytes(b))).collect(),
        DataType::Bool | DataType::Bytes => {
            return Err(Error::invalid(format!(
                "output `{}` is {}, which cannot be classified",
                spec.name, spec.datatype
            )));
        }
    })
}

fn half(format: Format, bytes: [u8; 2]) -> Score {
    Score::Float(format.widen(u16::from_le_bytes(bytes)).into())
}

fn largest(row: &[Score], most: usize) -> impl Iterator<Item = (usize, Score)> {
    let mut ranked: Vec<(usize, Score)> = row.iter().copied().enumerate().collect();
    ranked.sort_by(|(_, a), (_, b)| match (a.is_nan(), b.is_nan()) {
        (false, false) => a.rank(*b),
        (a, b) => a.cmp(&b),
    });
    ranked.into_iter().take(most)
}

fn entry(score: Score, index: usize, spec: &TensorSpec) -> String {
    let score = match score {
        Score::Whole(value) => value.to_string(),
        Score::Float(value) if value.is_nan() => "nan".to_owned(),
        Score::Float(value) => format!("{value:.6}"),
    };
    match spec.labels.as_ref().and_then(|labels| labels.get(index)) {
        Some(label) => format!("{score}:{index}:{label}"),
        None => format!("{score}:{index}"),
    }
}
