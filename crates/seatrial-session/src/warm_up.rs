//! Runs before readiness: memory is allocated, code is paged in, and a model that cannot run at all is found.

use std::time::{Duration, Instant};

use bytes::Bytes;
use seatrial_types::{
    BatchMode, Batching, Code, DataType, Dim, Error, Result, Runner, Signature, Tensor, TensorSpec,
};

use crate::element::element;

/// Sizes tried for free dimensions other than the batch: graphs with windows or pooling refuse the smallest ones.
const FREE_SIZES: [usize; 3] = [1, 8, 64];

/// Inputs larger than this are not made up for the sake of warm-up.
const LARGEST_BYTES: usize = 256 << 20;

/// What warm-up found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WarmUp {
    /// The runs that were made.
    pub runs: Vec<WarmUpRun>,
    /// What did not work and is no reason not to serve, in words.
    pub notes: Vec<String>,
}

/// One run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WarmUpRun {
    /// Rows of its inputs.
    pub rows: usize,
    /// The size of their free dimensions other than the first.
    pub length: usize,
    /// How long it took.
    pub time: Duration,
}

/// Runs one row of zeros, then as many rows as a batch may have.
///
/// A failure is a note: zeros may be values that a model rightly refuses. Only when one row fails with an internal
/// error in every size tried is the model taken to be broken, and the error returned.
pub fn warm_up(runner: &mut dyn Runner, signature: &Signature, batching: &Batching) -> Result<WarmUp> {
    let mut found = WarmUp::default();
    let mut refusal = None;
    for size in FREE_SIZES {
        match timed(runner, signature, 1, size) {
            Ok(run) => {
                found.runs.push(run);
                warm_full(runner, signature, batching, size, &mut found);
                return Ok(found);
            }
            Err(error) => refusal = Some(milder(refusal, error)),
        }
        if !has_free_inner(signature) {
            break;
        }
    }
    match refusal {
        Some(error) if error.code == Code::Internal => Err(error),
        Some(error) => {
            found.notes.push(format!("warm-up with one row of zeros was refused: {}", error.message));
            Ok(found)
        }
        None => Ok(found),
    }
}

fn warm_full(
    runner: &mut dyn Runner,
    signature: &Signature,
    batching: &Batching,
    size: usize,
    found: &mut WarmUp,
) {
    if batching.mode == BatchMode::None || batching.max_rows <= 1 {
        return;
    }
    match timed(runner, signature, batching.max_rows, size) {
        Ok(run) => found.runs.push(run),
        Err(error) => {
            found
                .notes
                .push(format!("warm-up with {} rows of zeros failed: {}", batching.max_rows, error.message));
        }
    }
}

/// Keeps a refusal of the values over an internal error: it proves that the model runs.
fn milder(before: Option<Error>, error: Error) -> Error {
    before.filter(|before| before.code != Code::Internal).unwrap_or(error)
}

pub(crate) fn has_free_inner(signature: &Signature) -> bool {
    signature.inputs.iter().any(|spec| spec.shape.iter().skip(1).any(|dim| matches!(dim, Dim::Free { .. })))
}

fn timed(runner: &mut dyn Runner, signature: &Signature, rows: usize, size: usize) -> Result<WarmUpRun> {
    let inputs = make_up(signature, rows, size)?;
    let start = Instant::now();
    runner.run(&inputs)?;
    Ok(WarmUpRun { rows, length: size, time: start.elapsed() })
}

/// Inputs of `rows` rows whose other free dimensions have `size`.
pub(crate) fn make_up(signature: &Signature, rows: usize, size: usize) -> Result<Vec<Tensor>> {
    signature.inputs.iter().map(|spec| zeros(spec, rows, size)).collect()
}

/// A tensor of the legal value next to zero.
fn zeros(spec: &TensorSpec, rows: usize, size: usize) -> Result<Tensor> {
    let dims = spec.shape.iter().enumerate();
    let shape: Vec<usize> = dims
        .map(|(axis, dim)| match dim {
            Dim::Fixed(fixed) => *fixed,
            Dim::Free { max, .. } => (if axis == 0 { rows } else { size }).min(max.unwrap_or(usize::MAX)),
        })
        .collect();
    let one = legal_element(spec);
    let bytes = shape.iter().try_fold(one.len(), |product, size| product.checked_mul(*size));
    match bytes {
        Some(bytes) if bytes <= LARGEST_BYTES => {
            let data = Bytes::from(one.repeat(bytes / one.len()));
            Ok(Tensor { datatype: spec.datatype, shape, data })
        }
        _ => Err(Error::invalid(format!("`{}` with the shape {shape:?} is too large to make up", spec.name))),
    }
}

/// The bytes of a legal element: zero where the declared range allows it, else its end that is nearer to zero.
fn legal_element(spec: &TensorSpec) -> Vec<u8> {
    let (low, high) = spec.range.unwrap_or((0.0, 0.0));
    let value = if low > 0.0 {
        low
    } else if high < 0.0 {
        high
    } else {
        0.0
    };
    // Towards the inside of the range, for types without fractions.
    let whole = if value > 0.0 { value.ceil() } else { value.floor() };
    match spec.datatype {
        DataType::F32 => (value as f32).to_le_bytes().to_vec(),
        DataType::F64 => value.to_le_bytes().to_vec(),
        DataType::U64 => (whole as u64).to_le_bytes().to_vec(),
        // Ranges of half floats stay at zero: no range of these types excludes it in practice, and a note is the
        // worst that comes of it.
        other => element(other, whole as i64),
    }
}
