//! Rows of several requests in one set of inputs, and the outputs back to their owners, on axis 0.

use bytes::{Bytes, BytesMut};
use seatrial_types::{DataType, Request, Tensor, byte_strings};

/// The inputs of all requests, one after another. The requests have equal types and equal inner shapes.
pub(crate) fn join(requests: &[Request]) -> Vec<Tensor> {
    let Some(first) = requests.first() else { return Vec::new() };
    let rows = requests.iter().map(|request| request.rows).sum();
    first.inputs.iter().enumerate().map(|(at, like)| join_one(requests, at, like, rows)).collect()
}

fn join_one(requests: &[Request], at: usize, like: &Tensor, rows: usize) -> Tensor {
    let parts = || requests.iter().filter_map(|request| request.inputs.get(at));
    let mut data = BytesMut::with_capacity(parts().map(|part| part.data.len()).sum());
    for part in parts() {
        data.extend_from_slice(&part.data);
    }
    let mut shape = like.shape.clone();
    if let Some(size) = shape.first_mut() {
        *size = rows;
    }
    Tensor { datatype: like.datatype, shape, data: data.freeze() }
}

/// Splits `outputs` into one set for each of `rows`. The parts share the outputs' buffers. `Err` says which output
/// does not have one row for each row of input: such a model must not be joined.
pub(crate) fn split(outputs: &[Tensor], rows: &[usize]) -> Result<Vec<Vec<Tensor>>, String> {
    let total: usize = rows.iter().sum();
    let mut sets: Vec<Vec<Tensor>> = rows.iter().map(|_| Vec::with_capacity(outputs.len())).collect();
    for (at, output) in outputs.iter().enumerate() {
        if output.shape.first() != Some(&total) {
            return Err(format!("output {at} has the shape {:?} for {total} joined rows", output.shape));
        }
        let mut rest = output.data.clone();
        for (set, rows) in sets.iter_mut().zip(rows) {
            let part = part_length(output, &rest, *rows, total);
            if part > rest.len() {
                return Err(format!("output {at} has less data than its shape {:?} says", output.shape));
            }
            set.push(part_of(output, *rows, rest.split_to(part)));
        }
    }
    Ok(sets)
}

fn part_of(output: &Tensor, rows: usize, data: Bytes) -> Tensor {
    let mut shape = output.shape.clone();
    if let Some(size) = shape.first_mut() {
        *size = rows;
    }
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
