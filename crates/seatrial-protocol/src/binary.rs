//! Tensors that travel as bytes: the parts behind the JSON, and requests that are nothing but one tensor.

use bytes::{BufMut, Bytes, BytesMut};
use seatrial_types::{DataType, Dim, Signature, Tensor, TensorSpec, byte_strings};

use crate::{
    call::{InferCall, all_outputs},
    elements::count,
    fit::{check_range, check_shape, check_together, show_shape},
    refusal::{Checked, refuse, unimplemented},
};

/// The header whose value divides JSON from bytes, as it is called in messages.
pub(crate) const HEADER: &str = "Inference-Header-Content-Length";

/// Whether a part is what type and shape say, before anything is read from it.
/// `told` is what told the size.
pub(crate) fn check_size(spec: &TensorSpec, shape: &[usize], size: usize, told: &str) -> Checked<()> {
    let Some(width) = spec.datatype.size() else { return Ok(()) };
    let due = count(shape).and_then(|n| n.checked_mul(width));
    if due == Some(size) {
        return Ok(());
    }
    let due = due.map_or("more bytes than can be counted".to_owned(), |n| format!("{n} bytes"));
    Err(refuse(format!(
        "input `{}`: {} of shape {shape:?} takes {due}, {told} is {size}",
        spec.name, spec.datatype
    )))
}

/// Whether the bytes of a part are legal values.
pub(crate) fn check_content(spec: &TensorSpec, tensor: &Tensor) -> Checked<()> {
    match spec.datatype {
        DataType::Bytes => check_strings(spec, tensor),
        DataType::Bool => match tensor.data.iter().enumerate().find(|(_, byte)| **byte > 1) {
            Some((index, byte)) => {
                Err(refuse(format!("input `{}`: byte {index} is {byte}, BOOL takes 0 or 1", spec.name)))
            }
            None => Ok(()),
        },
        _ => Ok(()),
    }
}

fn check_strings(spec: &TensorSpec, tensor: &Tensor) -> Checked<()> {
    let (mut found, mut used) = (0, 0);
    for item in byte_strings(&tensor.data) {
        found += 1;
        used += item.len() + 4;
    }
    if used != tensor.data.len() {
        return Err(refuse(format!(
            "input `{}`: string {found} at byte {used} passes the end of its {} bytes",
            spec.name,
            tensor.data.len()
        )));
    }
    if Some(found) != count(&tensor.shape) {
        let shape = &tensor.shape;
        return Err(refuse(format!(
            "input `{}`: shape {shape:?} takes {} strings, the binary data has {found}",
            spec.name,
            count(shape).map_or("too many".to_owned(), |n| n.to_string())
        )));
    }
    Ok(())
}

/// Cuts the binary part into the tensors it belongs to, in the order in which the JSON named them.
pub(crate) fn share_out(
    signature: &Signature,
    sizes: &[(usize, usize)],
    tensors: &mut [Option<Tensor>],
    mut binary: Bytes,
) -> Checked<()> {
    let due = sizes.iter().try_fold(0_usize, |sum, (_, size)| sum.checked_add(*size));
    if due != Some(binary.len()) {
        let due = due.map_or("more than can be counted".to_owned(), |n| n.to_string());
        let got = binary.len();
        return Err(refuse(format!(
            "the inputs' binary_data_size add up to {due} bytes, the body has {got} after the JSON"
        )));
    }
    for (index, size) in sizes {
        let place = tensors.get_mut(*index).and_then(Option::as_mut);
        if let (Some(tensor), Some(spec)) = (place, signature.inputs.get(*index)) {
            tensor.data = binary.split_to(*size);
            check_content(spec, tensor)?;
            check_range(spec, tensor)?;
        }
    }
    Ok(())
}

/// A request without JSON: the body is the one input, and every output is answered as bytes. At most one dimension
/// besides the batch may be free; its size follows from the length. A `BYTES` input takes the body as its one string.
pub(crate) fn decode_raw(signature: &Signature, body: Bytes) -> Checked<InferCall> {
    let inputs = vec![raw_tensor(signature, body)?];
    let rows = check_together(signature, &inputs)?;
    let outputs = all_outputs(signature, true);
    Ok(InferCall { id: None, inputs, rows, outputs, timeout: None, priority: 0 })
}

fn raw_tensor(signature: &Signature, body: Bytes) -> Checked<Tensor> {
    let [spec] = signature.inputs.as_slice() else {
        return Err(refuse(format!(
            "{HEADER} is 0, which needs a model with one input; this one has {}",
            signature.inputs.len()
        )));
    };
    let shape = raw_shape(spec, body.len())?;
    check_shape(spec, &shape)?;
    let data = match spec.datatype {
        DataType::Bytes => prefixed(&body)?,
        _ => body,
    };
    let tensor = Tensor { datatype: spec.datatype, shape, data };
    check_content(spec, &tensor)?;
    check_range(spec, &tensor)?;
    Ok(tensor)
}

/// The shape that a body of this length must have.
fn raw_shape(spec: &TensorSpec, length: usize) -> Checked<Vec<usize>> {
    let free = spec.shape.iter().filter(|dim| matches!(dim, Dim::Free { .. })).count();
    let fixed: Vec<usize> =
        spec.shape.iter().filter_map(|d| if let Dim::Fixed(n) = d { Some(*n) } else { None }).collect();
    let batch_first = free == 2 && matches!(spec.shape.first(), Some(Dim::Free { .. }));
    if free > 1 && !batch_first {
        return Err(unimplemented(format!(
            "input `{}` has {free} free dimensions; a request without JSON can tell one",
            spec.name
        )));
    }
    let inner = count(&fixed).and_then(|n| n.checked_mul(spec.datatype.size().unwrap_or(1)));
    let wrong = || {
        let promised = show_shape(&spec.shape);
        refuse(format!(
            "input `{}`: {length} bytes do not make {} of shape {promised}",
            spec.name, spec.datatype
        ))
    };
    let size = match (spec.datatype, inner) {
        (DataType::Bytes, _) => 1,
        (_, Some(inner)) if free == 0 && inner == length => 1,
        (_, Some(inner)) if free > 0 && inner > 0 && length.is_multiple_of(inner) => length / inner,
        _ => return Err(wrong()),
    };
    let size_of = |(axis, dim): (usize, &Dim)| match dim {
        Dim::Fixed(n) => *n,
        Dim::Free { .. } if batch_first && axis == 0 => 1,
        Dim::Free { .. } => size,
    };
    Ok(spec.shape.iter().enumerate().map(size_of).collect())
}

fn prefixed(body: &Bytes) -> Checked<Bytes> {
    let length =
        u32::try_from(body.len()).map_err(|_| refuse("a string is at most 4294967295 bytes long"))?;
    let mut data = BytesMut::with_capacity(body.len() + 4);
    data.put_u32_le(length);
    data.extend_from_slice(body);
    Ok(data.freeze())
}
