//! The words of the data plane: tensors, signatures, requests, stage stamps, errors, and the traits between crates.
//! Nothing here does IO, knows a protocol or a runtime.

#![forbid(unsafe_code)]

mod datatype;
mod error;
mod padding;
mod request;
mod signature;
mod stage;
mod tensor;

pub use datatype::DataType;
pub use error::{Code, Error, Result};
pub use padding::{PadInput, PadPlan, Padding};
pub use request::{Batch, BatchSource, Release, Reply, Request, Runner, Ticket};
pub use signature::{BatchMode, Batching, Dim, Preferred, Signature, TensorSpec};
pub use stage::{Stage, Stages};
pub use tensor::{Tensor, byte_strings};
