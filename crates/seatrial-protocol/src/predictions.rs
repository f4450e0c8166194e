//! The answer of the named-feature route: `{"predictions": [...]}`, one entry an instance, as TensorFlow Serving's
//! row format has it.

use bytes::Bytes;
use seatrial_types::{DataType, Error, Result, Signature, Tensor};

use crate::text::{estimate, push_data, push_string};

/// Some instances of a call and what the model made of them.
#[derive(Debug)]
pub struct Predicted {
    /// Places of the instances in the call.
    pub rows: Vec<usize>,
    /// All outputs of the model in signature order, one row an instance.
    pub outputs: Vec<Tensor>,
}

/// Encodes one entry an instance: with one output its value, with more an object by output name. A value is nested as
/// the output's shape behind the batch axis is: `0.3` for `[batch]`, `[0.3]` for `[batch, 1]`.
pub fn encode_predictions(signature: &Signature, instances: usize, parts: &[Predicted]) -> Result<Bytes> {
    let mut places: Vec<Option<Vec<Row<'_>>>> = Vec::new();
    places.resize_with(instances, || None);
    let mut size = 32;
    for part in parts {
        size += part.outputs.iter().map(estimate).sum::<usize>();
        let columns: Vec<Vec<Bytes>> = signature
            .outputs
            .iter()
            .zip(&part.outputs)
            .map(|(spec, tensor)| rows_of(&spec.name, tensor, part.rows.len()))
            .collect::<Result<_>>()?;
        for (n, place) in part.rows.iter().enumerate() {
            let row = part.outputs.iter().zip(&columns);
            let row =
                row.map(|(tensor, rows)| Row { tensor, data: rows.get(n).cloned().unwrap_or_default() });
            if let Some(slot) = places.get_mut(*place) {
                *slot = Some(row.collect());
            }
        }
    }
    let mut out = Vec::with_capacity(size);
    out.extend_from_slice(b"{\"predictions\":[");
    for (n, row) in places.into_iter().enumerate() {
        let row = row.ok_or_else(|| Error::internal(format!("instance {n} has no prediction")))?;
        if n > 0 {
            out.push(b',');
        }
        push_entry(&mut out, signature, &row)?;
    }
    out.extend_from_slice(b"]}");
    Ok(Bytes::from(out))
}

/// One output of one instance.
struct Row<'a> {
    tensor: &'a Tensor,
    data: Bytes,
}

fn rows_of(name: &str, tensor: &Tensor, rows: usize) -> Result<Vec<Bytes>> {
    if tensor.shape.first() != Some(&rows) {
        return Err(Error::internal(format!(
            "output `{name}` has the shape {:?} for {rows} instances: expected one row an instance",
            tensor.shape
        )));
    }
    Ok(split(tensor.datatype, &tensor.data, rows, tensor.shape.iter().skip(1).product()))
}

/// The data of each of `parts` parts of `elements` elements.
fn split(datatype: DataType, data: &Bytes, parts: usize, elements: usize) -> Vec<Bytes> {
    let mut at = 0;
    let part = |_| {
        let start = at;
        match datatype.size() {
            Some(size) => at += size * elements,
            None => {
                for _ in 0..elements {
                    let length = data.get(at..).and_then(|rest| rest.first_chunk::<4>());
                    at += 4 + length.map_or(0, |bytes| u32::from_le_bytes(*bytes) as usize);
                }
            }
        }
        at = at.min(data.len());
        data.slice(start..at)
    };
    (0..parts).map(part).collect()
}

fn push_entry(out: &mut Vec<u8>, signature: &Signature, row: &[Row<'_>]) -> Result<()> {
    let named: Vec<_> = signature.outputs.iter().zip(row).collect();
    if let [(spec, value)] = named.as_slice() {
        return push_value(out, &spec.name, value);
    }
    for (n, (spec, value)) in named.into_iter().enumerate() {
        out.push(if n == 0 { b'{' } else { b',' });
        push_string(out, &spec.name);
        out.push(b':');
        push_value(out, &spec.name, value)?;
    }
    out.push(b'}');
    Ok(())
}

fn push_value(out: &mut Vec<u8>, name: &str, row: &Row<'_>) -> Result<()> {
    let inner = row.tensor.shape.get(1..).unwrap_or_default();
    push_nested(out, name, (row.tensor.datatype, &row.data), inner)
}

fn push_nested(
    out: &mut Vec<u8>,
    name: &str,
    (datatype, data): (DataType, &Bytes),
    shape: &[usize],
) -> Result<()> {
    let flat = |shape: &[usize]| Tensor { datatype, shape: shape.to_vec(), data: data.clone() };
    match shape {
        [] => {
            // A list of one without its brackets.
            let start = out.len();
            push_data(out, name, &flat(shape))?;
            out.pop();
            out.remove(start);
        }
        [_] => push_data(out, name, &flat(shape))?,
        [outer, rest @ ..] => {
            out.push(b'[');
            for (n, part) in split(datatype, data, *outer, rest.iter().product()).iter().enumerate() {
                if n > 0 {
                    out.push(b',');
                }
                push_nested(out, name, (datatype, part), rest)?;
            }
            out.push(b']');
        }
    }
    Ok(())
}
