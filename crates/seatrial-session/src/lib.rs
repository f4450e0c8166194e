//! ONNX Runtime opened at run time, its sessions, the executors that drive them, and warm-up. Knows nothing of HTTP
//! or of what is inside the queue. The only room of the data plane with `unsafe`: the border to the C API.

#![allow(unsafe_code, reason = "the runtime is a C library; every block says why it is sound")]

mod api;
mod costs;
mod element;
mod error;
mod executor;
mod joining;
mod memory;
mod message;
mod runtime;
mod session;
mod signature;
mod value;
mod warm_up;

pub use costs::measure_costs;
pub use error::SessionError;
pub use executor::{ExecutorMetrics, run_executor};
pub use memory::give_memory_back;
pub use runtime::{NEWEST_RUNTIME_MINOR, OLDEST_RUNTIME_MINOR, Runtime};
pub use session::{Session, SessionOptions, SharedSession};
pub use warm_up::{WarmUp, WarmUpRun, warm_up};
