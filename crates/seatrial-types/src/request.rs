//! A request on its way through the engine. It moves forward, owned by one place at a time, and carries its own
//! stamps and its own way home; nobody looks it up in a table.

use std::time::Instant;

use tokio::sync::oneshot;

use crate::{Result, Stages, Tensor};

/// One decoded and validated request. Made by a door, consumed by an executor.
#[derive(Debug)]
pub struct Request {
    /// Inputs in signature order.
    pub inputs: Vec<Tensor>,
    /// Rows along axis 0 that all inputs share; 1 for models without a batch axis.
    pub rows: usize,
    /// When the answer has lost its worth.
    pub deadline: Instant,
    /// 1 is served first; 0 stands for the last level.
    pub priority: u64,
    /// Size of the body that the request came in, which tells how much work a body not yet read may hold; 0 when
    /// there was none.
    pub wire_bytes: usize,
    /// Where the time went so far.
    pub stages: Stages,
    /// The way home. Closed as soon as the client has gone.
    pub reply: oneshot::Sender<Reply>,
}

/// The answer to one request, with its stamps brought back.
#[derive(Debug)]
pub struct Reply {
    /// All outputs in signature order, or why there are none.
    pub outcome: Result<Vec<Tensor>>,
    /// The stamps of the request, marked up to `CopyOut`.
    pub stages: Stages,
}

/// Why a batch was let go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Release {
    /// It holds as many rows as allowed.
    Full,
    /// An executor was idle and took what was there.
    Idle,
    /// A request in it would have missed its deadline behind the batch whose turn it was.
    Deadline,
    /// What was left behind costs less in a batch of its own.
    Cost,
    /// Its oldest request had waited for as long as the policy of fixed sizes allows.
    BucketAge,
    /// The model takes one request at a time.
    Single,
}

impl Release {
    /// Every reason, for metrics.
    pub const ALL: [Self; 6] =
        [Self::Full, Self::Idle, Self::Deadline, Self::Cost, Self::BucketAge, Self::Single];

    /// The name used as a metric label.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Idle => "idle",
            Self::Deadline => "deadline",
            Self::Cost => "cost",
            Self::BucketAge => "bucket_age",
            Self::Single => "single",
        }
    }
}

/// The name of a batch between source and executor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket(pub u64);

/// Requests that run together: equal types, inner shapes that are equal but for a length that may be padded, rows
/// joined on axis 0.
#[derive(Debug)]
pub struct Batch {
    /// Given back with the next `take`.
    pub ticket: Ticket,
    /// At least one request, stamped up to `Form`.
    pub requests: Vec<Request>,
    /// Why it was released.
    pub release: Release,
}

/// Where an executor gets its work.
pub trait BatchSource: Send + Sync {
    /// Waits for the next batch. `done` is the one that this executor has just finished: its time tells the source
    /// how fast the model is now. `None` once the source is closed and empty: the executor ends.
    fn take(&self, done: Option<Ticket>) -> Option<Batch>;
}

/// Something that computes outputs from inputs: a session of a runtime, or a stand-in for tests.
pub trait Runner: Send {
    /// Runs the model once. Inputs and outputs in signature order.
    fn run(&mut self, inputs: &[Tensor]) -> Result<Vec<Tensor>>;
}
