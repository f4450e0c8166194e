//! A decoded inference request, and the part of it that shapes the answer.

use std::time::Duration;

use seatrial_types::{Signature, Tensor};

/// One decoded and validated inference request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InferCall {
    /// The client's own name for the request; echoed.
    pub id: Option<String>,
    /// Inputs in signature order, whatever order they came in.
    pub inputs: Vec<Tensor>,
    /// Size of axis 0 when every input has a free first dimension, otherwise 1.
    pub rows: usize,
    /// Outputs to send, in the order to send them.
    pub outputs: Vec<OutputChoice>,
    /// How long the answer is of use, counted from arrival; `None` when the client did not say or said 0.
    pub timeout: Option<Duration>,
    /// 1 is most urgent; 0 is the default.
    pub priority: u64,
}

impl InferCall {
    /// Splits the tensors, which go to the model, from what the encoder needs later.
    pub fn into_parts(self) -> (Vec<Tensor>, AnswerShape) {
        (self.inputs, AnswerShape { id: self.id, outputs: self.outputs })
    }
}

/// What an answer must look like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnswerShape {
    /// Echoed if given.
    pub id: Option<String>,
    /// Outputs to send, in this order.
    pub outputs: Vec<OutputChoice>,
}

/// One output that the client wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutputChoice {
    /// Its place in the signature.
    pub index: usize,
    /// Sent as bytes behind the JSON rather than in it.
    pub binary: bool,
    /// Sent as its largest values, this many a row, in text form.
    pub classification: Option<usize>,
}

/// Every output of the signature in its order.
pub(crate) fn all_outputs(signature: &Signature, binary: bool) -> Vec<OutputChoice> {
    (0..signature.outputs.len()).map(|index| OutputChoice { index, binary, classification: None }).collect()
}
