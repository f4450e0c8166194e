//! Admission, the bounded queue and batch forming. `Former` is pure: every method takes the time. `Queue` is the same
//! thing for threads, with a clock handed in. Neither knows a runtime or a protocol.

#![forbid(unsafe_code)]

mod choice;
mod config;
mod cost;
mod forecast;
mod former;
mod joining;
mod line;
mod metrics;
mod pace;
mod queue;
mod split;

pub use config::{Config, Policy};
pub use cost::CostTable;
pub use former::Former;
pub use metrics::BatchingMetrics;
pub use queue::{Clock, Queue};
