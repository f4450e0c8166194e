//! `ModelInferResponse` and its stream form, written straight into one buffer.

use bytes::Bytes;
use seatrial_types::{Result, Signature, Tensor};

use super::{
    contents::{has_field, push_contents},
    wire::{push_chunk, push_head, push_text, push_varint, varint_size},
};
use crate::{
    call::AnswerShape,
    encode::{Chosen, ModelId, choose},
};

/// `parameters: {"triton_final_response": true}`, which Triton's clients look for on streams.
const FINAL: &[u8] = b"\x22\x1b\x0a\x15triton_final_response\x12\x02\x08\x01";

/// Where the message stands: alone, or as `infer_response` of a `ModelStreamInferResponse`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Envelope {
    /// The answer to `ModelInfer`.
    Alone,
    /// An answer of `ModelStreamInfer`.
    Stream,
}

/// Encodes the outputs that were asked for behind what `out` holds already. `outputs` holds all of the model's
/// outputs in signature order. Values are raw where the request's were, and where an output has no typed form.
pub fn encode_message(
    out: &mut Vec<u8>,
    (model, signature): (&ModelId, &Signature),
    (call, envelope): (&AnswerShape, Envelope),
    outputs: &[Tensor],
) -> Result<()> {
    let chosen = choose(signature, call, outputs)?;
    let raw = chosen.iter().any(|output| output.binary || !has_field(output.tensor.datatype));
    let size =
        chosen.iter().map(|output| output.tensor.data.len() + output.spec.name.len() + 128).sum::<usize>();
    out.reserve(size + 128 + model.name.len() + model.version.len());
    match envelope {
        Envelope::Alone => push_response(out, model, (call, envelope), (&chosen, raw)),
        Envelope::Stream => {
            let mut inner = Vec::with_capacity(size);
            push_response(&mut inner, model, (call, envelope), (&chosen, raw));
            push_chunk(out, 2, &inner);
        }
    }
    Ok(())
}

/// A `ModelStreamInferResponse` that tells an error. `id` is the request's, so that the client knows which it was.
pub fn stream_error(message: &str, id: &str) -> Bytes {
    let mut out = Vec::with_capacity(message.len() + id.len() + 16);
    push_text(&mut out, 1, message);
    if !id.is_empty() {
        push_head(&mut out, 2, 1 + varint_size(id.len() as u64) + id.len());
        push_text(&mut out, 3, id);
    }
    out.into()
}

fn push_response(
    out: &mut Vec<u8>,
    model: &ModelId,
    (call, envelope): (&AnswerShape, Envelope),
    (chosen, raw): (&[Chosen<'_>], bool),
) {
    push_text(out, 1, &model.name);
    push_text(out, 2, &model.version);
    push_text(out, 3, call.id.as_deref().unwrap_or_default());
    if envelope == Envelope::Stream {
        out.extend_from_slice(FINAL);
    }
    let mut part = Vec::with_capacity(64);
    for output in chosen {
        part.clear();
        push_output(&mut part, output, raw);
        push_chunk(out, 5, &part);
    }
    for output in chosen.iter().filter(|_| raw) {
        push_chunk(out, 6, &output.tensor.data);
    }
}

fn push_output(out: &mut Vec<u8>, output: &Chosen<'_>, raw: bool) {
    push_text(out, 1, &output.spec.name);
    push_text(out, 2, output.tensor.datatype.name());
    let sizes = || output.tensor.shape.iter().map(|size| *size as u64);
    push_head(out, 3, sizes().map(varint_size).sum());
    sizes().for_each(|size| push_varint(out, size));
    if !raw {
        let mut contents = Vec::new();
        push_contents(&mut contents, &output.tensor);
        push_chunk(out, 5, &contents);
    }
}
