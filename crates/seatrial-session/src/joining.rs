//! Rows of several requests in one set of inputs, padded to one length where lengths differ, and the outputs back to
//! their owners on axis 0, cut back to the length that each came with.

use bytes::{Bytes, BytesMut};
use seatrial_types::{DataType, PadPlan, Request, Tensor, byte_strings};

use crate::element::element;

/// What of an output belongs to one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Share {
    pub(crate) rows: usize,
    /// The length that the request came with, for models that are padded.
    pub(crate) length: usize,
}

/// The shares of all requests, in order.
pub(crate) fn shares(requests: &[Request], padding: Option<&PadPlan>) -> Vec<Share> {
    let length =
        |request: &Request| padding.and_then(|plan| plan.length(&request.inputs)).unwrap_or_default();
    requests.iter().map(|request| Share { rows: request.rows, length: length(request) }).collect()
}

/// The inputs of all requests, one after another. The requests have equal types, and equal inner shapes but for the
/// length that `padding` names; all are padded to the longest.
pub(crate) fn join(requests: &[Request], padding: Option<&PadPlan>) -> Vec<Tensor> {
    let Some(first) = requests.first() else { return Vec::new() };
    let shares = shares(requests, padding);
    let rows = shares.iter().map(|share| share.rows).sum();
    let longest = shares.iter().map(|share| share.length).max().unwrap_or_default();
    let inputs = first.inputs.iter().enumerate();
    inputs
        .map(|(at, like)| {
            let parts: Vec<&Tensor> = requests.iter().filter_map(|request| request.inputs.get(at)).collect();
            let mut shape = like.shape.clone();
            set(&mut shape, 0, rows);
            let pad = padding.and_then(|plan| plan.inputs().get(at).copied().flatten());
            let data = match pad {
                Some(pad) => {
                    set(&mut shape, pad.axis, longest);
                    lengthen(&parts, pad.axis, longest, &element(like.datatype, pad.value))
                }
                None => concatenate(&parts),
            };
            Tensor { datatype: like.datatype, shape, data }
        })
        .collect()
}

fn concatenate(parts: &[&Tensor]) -> Bytes {
    let mut data = BytesMut::with_capacity(parts.iter().map(|part| part.data.len()).sum());
    for part in parts {
        data.extend_from_slice(&part.data);
    }
    data.freeze()
}

/// The parts one after another, `axis` of each filled up to `longest` with `value`.
fn lengthen(parts: &[&Tensor], axis: usize, longest: usize, value: &[u8]) -> Bytes {
    let room = parts
        .iter()
        .map(|part| blocks(&part.shape, axis).0 * longest * inner(&part.shape, axis))
        .sum::<usize>();
    let mut data = BytesMut::with_capacity(room * value.len());
    for part in parts {
        let (n_blocks, length) = blocks(&part.shape, axis);
        let missing = longest.saturating_sub(length) * inner(&part.shape, axis);
        if missing == 0 || n_blocks == 0 {
            data.extend_from_slice(&part.data);
            continue;
        }
        let block = part.data.len() / n_blocks;
        for at in 0..n_blocks {
            data.extend_from_slice(part.data.get(at * block..(at + 1) * block).unwrap_or_default());
            for _ in 0..missing {
                data.extend_from_slice(value);
            }
        }
    }
    data.freeze()
}

/// How many blocks end at `axis`, and the size of that axis.
fn blocks(shape: &[usize], axis: usize) -> (usize, usize) {
    (shape.iter().take(axis).product(), shape.get(axis).copied().unwrap_or(1))
}

/// Elements that belong to one step along `axis`.
fn inner(shape: &[usize], axis: usize) -> usize {
    shape.iter().skip(axis + 1).product()
}

fn set(shape: &mut [usize], axis: usize, size: usize) {
    if let Some(place) = shape.get_mut(axis) {
        *place = size;
    }
}

/// Splits `outputs` into one set for each of `shares`. Parts that need no cut share the outputs' buffers. `Err` says
/// which output does not have one row for each row of input, or not the length of the padded inputs: such a model must
/// not be joined.
pub(crate) fn split(
    outputs: &[Tensor],
    shares: &[Share],
    padding: Option<&PadPlan>,
) -> Result<Vec<Vec<Tensor>>, String> {
    let total: usize = shares.iter().map(|share| share.rows).sum();
    let longest = shares.iter().map(|share| share.length).max().unwrap_or_default();
    let mut sets: Vec<Vec<Tensor>> = shares.iter().map(|_| Vec::with_capacity(outputs.len())).collect();
    for (at, output) in outputs.iter().enumerate() {
        if output.shape.first() != Some(&total) {
            return Err(format!("output {at} has the shape {:?} for {total} joined rows", output.shape));
        }
        let axis = padding.and_then(|plan| plan.outputs().get(at).copied().flatten());
        if axis.is_some_and(|axis| output.shape.get(axis) != Some(&longest)) {
            return Err(format!("output {at} has the shape {:?} for the length {longest}", output.shape));
        }
        let mut rest = output.data.clone();
        for (set, share) in sets.iter_mut().zip(shares) {
            let part = part_length(output, &rest, share.rows, total);
            if part > rest.len() {
                return Err(format!("output {at} has less data than its shape {:?} says", output.shape));
            }
            let rows = part_of(output, share.rows, rest.split_to(part));
            set.push(match axis {
                Some(axis) if share.length < longest => shorten(rows, axis, share.length),
                _ => rows,
            });
        }
    }
    Ok(sets)
}

fn part_of(output: &Tensor, rows: usize, data: Bytes) -> Tensor {
    let mut shape = output.shape.clone();
    set(&mut shape, 0, rows);
    Tensor { datatype: output.datatype, shape, data }
}

/// Bytes of the next `rows` rows, of which `rest` begins with the first.
fn part_length(output: &Tensor, rest: &[u8], rows: usize, total: usize) -> usize {
    if output.datatype == DataType::Bytes {
        let items = rows * output.shape.iter().skip(1).product::<usize>();
        byte_strings(rest).take(items).map(|item| item.len() + size_of::<u32>()).sum()
    } else {
        output.data.len() / total.max(1) * rows
    }
}

/// Keeps the first `length` steps along `axis`.
fn shorten(whole: Tensor, axis: usize, length: usize) -> Tensor {
    let ((n_blocks, long), inner) = (blocks(&whole.shape, axis), inner(&whole.shape, axis));
    let data = match whole.datatype.size() {
        Some(size) => {
            let (block, kept) = (long * inner * size, length * inner * size);
            let mut data = BytesMut::with_capacity(n_blocks * kept);
            for at in 0..n_blocks {
                data.extend_from_slice(whole.data.get(at * block..at * block + kept).unwrap_or_default());
            }
            data.freeze()
        }
        None => shorten_strings(&whole.data, long * inner, length * inner),
    };
    let mut shape = whole.shape;
    set(&mut shape, axis, length);
    Tensor { datatype: whole.datatype, shape, data }
}

/// Keeps the first `kept` of every `block` strings.
fn shorten_strings(data: &[u8], block: usize, kept: usize) -> Bytes {
    let mut short = BytesMut::with_capacity(data.len());
    for (at, item) in byte_strings(data).enumerate() {
        if at % block.max(1) < kept {
            short.extend_from_slice(&(item.len() as u32).to_le_bytes());
            short.extend_from_slice(item);
        }
    }
    short.freeze()
}
