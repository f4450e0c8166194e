//! The server with a stand-in for the runtime: what a model that is slow to load, breaks or panics does to clients.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test stops at the first surprise"
)]

mod health;
mod lifecycle;
mod patience;
mod running;
mod stand_in;
