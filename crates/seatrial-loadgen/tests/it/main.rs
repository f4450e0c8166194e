//! Integration tests of the load generator, through its public face, against servers of all manners.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod config;
mod response;
mod schedule;
mod servers;
mod support;
