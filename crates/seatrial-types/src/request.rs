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
    /// The model takes one request at a time.
    Single,
}

impl Release {
    /// Every reason, for metrics.
    pub const ALL: [Self; 3] = [Self::Full, Self::Idle, Self::Single];

    /// The name used as a metric label.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Idle => "idle",
            Self::Single => "single",
        }
    }
}

/// Requests that run together: equal types and equal inner shapes, rows joined on axis 0.
#[derive(Debug)]
pub struct Batch {
    /// At least one request, stamped up to `Form`.
    pub requests: Vec<Request>,
    /// Why it was released.
    pub release: Release,
}

/// Where an executor gets its work.
pub trait BatchSource: Send + Sync {
    /// Waits for the next batch. `None` once the source is closed and empty: the executor ends.
    fn take(&self) -> Option<Batch>;
}

/// Something that computes outputs from inputs: a session of a runtime, or a stand-in for tests.
pub trait Runner: Send {
    /// Runs the model once. Inputs and outputs in signature order.
    fn run(&mut self, inputs: &[Tensor]) -> Result<Vec<Tensor>>;
}
