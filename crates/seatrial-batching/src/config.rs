//! Limits and policy of one model's queue.

use std::time::Duration;

use seatrial_types::{BatchMode, PadPlan};

/// What may be joined, how much of it, and when it is let go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Which requests may be joined.
    pub mode: BatchMode,
    /// How requests of different lengths are joined, for models whose answers do not depend on padding.
    pub padding: Option<PadPlan>,
    /// The most rows of a joined batch. A single request may have more and then runs alone.
    pub max_rows: usize,
    /// The most rows that wait. A request without rows counts as one, so that it cannot pass the bound.
    pub queue_rows: usize,
    /// How many batches run at the same time.
    pub executors: usize,
    /// Levels of priority.
    pub levels: usize,
    /// What a batch is formed by.
    pub policy: Policy,
}

/// What a batch is formed by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Policy {
    /// The measured cost; nobody ever waits for mates.
    Cost,
    /// Fixed sizes and a delay, in order of arrival.
    Preferred {
        /// Sizes worth waiting for, ascending.
        rows: Vec<usize>,
        /// The longest wait for more.
        max_delay: Duration,
    },
}
