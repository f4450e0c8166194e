//! Open Inference Protocol v2 over HTTP and gRPC: bytes to types and back. No sockets, no threads, no clock.
//!
//! Rules where the protocol leaves a choice: integers take neither point nor exponent; BOOL takes `true` and `false`
//! only; floats take the strings `"NaN"`, `"Infinity"` and `"-Infinity"` and answer with them; FP16 and BF16 in JSON
//! are read as FP64 and rounded to nearest even; a byte order mark is refused; `null` for `id`, `outputs` and
//! `parameters` means not given; keys that the protocol does not have are skipped, those it has may come once.

#![forbid(unsafe_code)]

mod binary;
mod call;
mod classify;
pub mod codings;
mod decode;
mod description;
mod elements;
mod encode;
mod fit;
mod half;
mod json;
pub mod message;
mod number;
mod parameters;
mod predictions;
pub mod proto;
pub mod reflection;
mod refusal;
mod statistics;
mod text;

pub use call::{AnswerShape, InferCall, OutputChoice};
pub use decode::decode_infer;
pub use description::{
    IndexEntry, ModelInfo, ModelState, error_body, health, model_config, model_metadata, model_ready,
    repository_index, server_metadata,
};
pub use encode::{InferBody, ModelId, encode_infer};
pub use half::float_values;
pub use predictions::{Predicted, encode_predictions};
pub use statistics::{BatchStats, ModelStats, Tally, model_stats};
