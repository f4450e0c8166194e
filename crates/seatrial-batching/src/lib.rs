//! Admission, the bounded queue and batch forming. `Former` is pure: every method takes the time. `Queue` is the same
//! thing for threads, with a clock handed in. Neither knows a runtime or a protocol.

#![forbid(unsafe_code)]

mod former;
mod joining;
mod metrics;
mod pace;
mod queue;

pub use former::{Config, Former};
pub use metrics::BatchingMetrics;
pub use queue::{Clock, Queue};
