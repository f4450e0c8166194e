//! Raw request fields to the tensors of a model, after the `features.yaml` of its package. One implementation serves
//! the engine and, through Python, training and evaluation. Knows neither sockets nor queues.
//!
//! Arithmetic is done in double precision and rounded once to the tensor's own width; logarithms are computed here
//! rather than by the system's library, and the time zones are compiled in, so that machines agree bit by bit.

#![forbid(unsafe_code)]

mod cache;
mod chain;
mod columns;
mod compile;
mod dates;
mod error;
mod hash;
mod instances;
mod numeric;
mod plan;
mod raw;
mod spec;
mod tensors;
mod tokens;
mod vocabulary;

pub use columns::{Column, Values};
pub use error::SpecError;
pub use plan::{CacheCounts, FieldCounts, Plan};
pub use spec::{
    Algorithm, DateInput, DateStep, Encoding, Feature, FieldType, HashStep, ItemType, Missing, Modulo, Part,
    RawDefault, SequenceStep, Side, Sign, Spec, Step, TensorTarget, TokenizerStep, Unknown, VocabularyStep,
};
pub use tensors::{Group, Prepared};
