//! The feature plans as their users see them: a spec and rows in, tensors out.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::float_cmp,
    clippy::cast_possible_wrap,
    clippy::needless_pass_by_value,
    reason = "in a test each failure has a place, equal means bit for bit, and specs are written in place"
)]

mod agreement;
mod bounds;
mod hashing;
mod lists;
mod making;
mod moments;
mod numbers;
mod refusals;
mod tokens;
