//! The answer to an inference request: tensors to JSON, with binary parts behind it where they were asked for.

use std::borrow::Cow;

use bytes::Bytes;
use seatrial_types::{Error, Result, Signature, Tensor, TensorSpec, byte_strings};
use serde::Serialize;

use crate::{
    call::{AnswerShape, OutputChoice},
    classify::classify,
    elements::count,
    text::{estimate, push_data, push_integer, push_shape, push_string},
};

/// Which model answers, as it is called on the wire.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct ModelId {
    /// Name in the URL.
    pub name: String,
    /// Version in the URL.
    pub version: String,
}

/// The body of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InferBody {
    /// JSON, then the binary parts in the order of the outputs.
    pub body: Bytes,
    /// Length of the JSON when binary parts follow, for the header `Inference-Header-Content-Length`; the content
    /// type is then `application/octet-stream`.
    pub header_length: Option<usize>,
}

/// Encodes the outputs that were asked for. `outputs` holds all of the model's outputs in signature order.
pub fn encode_infer(
    model: &ModelId,
    signature: &Signature,
    call: &AnswerShape,
    outputs: &[Tensor],
) -> Result<InferBody> {
    let chosen = choose(signature, call, outputs)?;
    let mut out = Vec::with_capacity(capacity(model, call, &chosen));
    out.extend_from_slice(b"{\"model_name\":");
    push_string(&mut out, &model.name);
    out.extend_from_slice(b",\"model_version\":");
    push_string(&mut out, &model.version);
    if let Some(id) = &call.id {
        out.extend_from_slice(b",\"id\":");
        push_string(&mut out, id);
    }
    out.extend_from_slice(b",\"outputs\":[");
    for (n, output) in chosen.iter().enumerate() {
        if n > 0 {
            out.push(b',');
        }
        push_output(&mut out, output)?;
    }
    out.extend_from_slice(b"]}");
    let header_length = chosen.iter().any(|output| output.binary).then_some(out.len());
    for output in chosen.iter().filter(|output| output.binary) {
        out.extend_from_slice(&output.tensor.data);
    }
    Ok(InferBody { body: Bytes::from(out), header_length })
}

/// One output on its way out.
pub(crate) struct Chosen<'a> {
    pub(crate) spec: &'a TensorSpec,
    pub(crate) tensor: Cow<'a, Tensor>,
    pub(crate) binary: bool,
    labels: Option<&'a [String]>,
}

pub(crate) fn choose<'a>(
    signature: &'a Signature,
    call: &AnswerShape,
    outputs: &'a [Tensor],
) -> Result<Vec<Chosen<'a>>> {
    call.outputs
        .iter()
        .map(|OutputChoice { index, binary, classification }| {
            let (Some(spec), Some(tensor)) = (signature.outputs.get(*index), outputs.get(*index)) else {
                return Err(Error::internal(format!(
                    "the model gave {} outputs, number {index} is due",
                    outputs.len()
                )));
            };
            check(spec, tensor)?;
            let Some(most) = classification else {
                let labels = spec.labels.as_deref();
                return Ok(Chosen { spec, tensor: Cow::Borrowed(tensor), binary: *binary, labels });
            };
            let tensor = Cow::Owned(classify(spec, tensor, *most)?);
            Ok(Chosen { spec, tensor, binary: *binary, labels: None })
        })
        .collect()
}

/// A tensor whose bytes do not fit its shape would give an answer that no client can read.
fn check(spec: &TensorSpec, tensor: &Tensor) -> Result<()> {
    let elements = count(&tensor.shape);
    let right = if let Some(width) = tensor.datatype.size() {
        elements.and_then(|n| n.checked_mul(width)) == Some(tensor.data.len())
    } else {
        let add = |(items, bytes), item: &[u8]| (items + 1, bytes + item.len() + 4);
        let (items, bytes) = byte_strings(&tensor.data).fold((0, 0), add);
        elements == Some(items) && bytes == tensor.data.len()
    };
    if right {
        return Ok(());
    }
    let (shape, bytes) = (&tensor.shape, tensor.data.len());
    Err(Error::internal(format!(
        "output `{}`: {bytes} bytes for {} of shape {shape:?}",
        spec.name, tensor.datatype
    )))
}

fn capacity(model: &ModelId, call: &AnswerShape, chosen: &[Chosen<'_>]) -> usize {
    let fixed = 64 + model.name.len() + model.version.len() + call.id.as_ref().map_or(0, String::len);
    chosen.iter().fold(fixed, |sum, output| {
        let data = if output.binary { output.tensor.data.len() } else { estimate(&output.tensor) };
        sum.saturating_add(data).saturating_add(128 + output.spec.name.len())
    })
}

fn push_output(out: &mut Vec<u8>, output: &Chosen<'_>) -> Result<()> {
    out.extend_from_slice(b"{\"name\":");
    push_string(out, &output.spec.name);
    out.extend_from_slice(b",\"datatype\":\"");
    out.extend_from_slice(output.tensor.datatype.name().as_bytes());
    out.extend_from_slice(b"\",\"shape\":");
    push_shape(out, &output.tensor.shape);
    push_parameters(out, output);
    if !output.binary {
        out.extend_from_slice(b",\"data\":");
        push_data(out, &output.spec.name, &output.tensor)?;
    }
    out.push(b'}');
    Ok(())
}

fn push_parameters(out: &mut Vec<u8>, output: &Chosen<'_>) {
    if !output.binary && output.labels.is_none() {
        return;
    }
    out.extend_from_slice(b",\"parameters\":{");
    if output.binary {
        out.extend_from_slice(b"\"binary_data_size\":");
        push_integer(out, output.tensor.data.len());
    }
    if let Some(labels) = output.labels {
        out.extend_from_slice(if output.binary { b",\"labels\":[" } else { b"\"labels\":[" });
        for (n, label) in labels.iter().enumerate() {
            if n > 0 {
                out.push(b',');
            }
            push_string(out, label);
        }
        out.push(b']');
    }
    out.push(b'}');
}
