//! The crate's tests through its public face, in one binary. Time is made up; nothing sleeps.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test stops at the first surprise"
)]

mod admission;
mod costs;
mod dropping;
mod forming;
mod preferred;
mod properties;
mod queue;
mod tank;
