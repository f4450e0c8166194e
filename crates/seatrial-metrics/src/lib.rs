//! Counters, gauges and histograms with the Prometheus text exposition. Handles are `Arc`s that a caller keeps, so
//! recording is one or two atomic operations and never a lookup. Knows nothing of what is measured.

#![forbid(unsafe_code)]

mod error;
mod histogram;
mod process;
mod registry;
mod text;
mod value;

pub use error::RegistryError;
pub use histogram::{Histogram, Snapshot};
pub use process::register_process;
pub use registry::{Labels, Registry};
pub use value::{Counter, Gauge};
