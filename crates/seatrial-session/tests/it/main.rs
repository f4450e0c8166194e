//! The crate's tests through its public face, in one binary. Those that need the ONNX Runtime library or the sample
//! folder say so on stderr when it is not there.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test stops at the first surprise"
)]

mod dock;
mod executor;
mod leaks;
mod library;
mod session;
mod shared_models;
mod signature;
mod warm_up;
