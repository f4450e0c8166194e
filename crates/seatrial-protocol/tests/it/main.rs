//! The protocol through its public face: bytes in, types out, and back.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "in a test each of these is a failure with a place; the switch in clippy.toml does not reach functions beside the tests"
)]

mod answers;
mod codings;
mod decoding;
mod descriptions;
mod generated;
mod hostile;
mod messages;
mod predictions;
mod reflecting;
mod refusals;
mod round_trips;
mod shared_cases;
mod signatures;
