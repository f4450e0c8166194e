//! Stage stamps: where a request's time went. The request carries them; their sum is its total by construction.

use std::time::{Duration, Instant};

/// A step of a request's life, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// First byte seen until the header is complete.
    Accept,
    /// Reading the body and decoding it to tensors.
    Parse,
    /// Raw fields to tensors; zero where clients send tensors.
    Feature,
    /// Waiting for an executor.
    Queue,
    /// Choosing the batch.
    Form,
    /// Joining inputs into the runtime's buffers.
    CopyIn,
    /// The model itself.
    Run,
    /// Splitting outputs to their owners, and the way back to the door.
    CopyOut,
    /// Tensors to the body of the answer.
    Encode,
    /// Handing the answer to the socket.
    Write,
}

impl Stage {
    /// Every stage in order.
    pub const ALL: [Self; 10] = [
        Self::Accept,
        Self::Parse,
        Self::Feature,
        Self::Queue,
        Self::Form,
        Self::CopyIn,
        Self::Run,
        Self::CopyOut,
        Self::Encode,
        Self::Write,
    ];

    /// The name used in headers, metrics and records.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Accept => "accept",
            Self::Parse => "parse",
            Self::Feature => "feature",
            Self::Queue => "queue",
            Self::Form => "form",
            Self::CopyIn => "copy_in",
            Self::Run => "run",
            Self::CopyOut => "copy_out",
            Self::Encode => "encode",
            Self::Write => "write",
        }
    }
}

/// The time spent in each stage so far. Each mark closes the span since the last one, so nothing is counted twice
/// and nothing is lost between two stages.
#[derive(Clone, Copy, Debug)]
pub struct Stages {
    started: Instant,
    last: Instant,
    spent: [Duration; Stage::ALL.len()],
}

impl Stages {
    /// Starts the clock of a request.
    pub const fn start(now: Instant) -> Self {
        Self { started: now, last: now, spent: [Duration::ZERO; Stage::ALL.len()] }
    }

    /// Charges the time since the last mark to `stage`. A clock that stands still or goes back charges nothing.
    pub fn mark(&mut self, stage: Stage, now: Instant) {
        if let Some(slot) = self.spent.get_mut(stage as usize) {
            *slot += now.saturating_duration_since(self.last);
        }
        self.last = self.last.max(now);
    }

    /// When the request began.
    pub const fn started(&self) -> Instant {
        self.started
    }

    /// Time charged to one stage.
    pub fn spent(&self, stage: Stage) -> Duration {
        self.spent.get(stage as usize).copied().unwrap_or_default()
    }

    /// From the start to the last mark: the sum of all stages.
    pub fn total(&self) -> Duration {
        self.last.saturating_duration_since(self.started)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_add_up_to_the_total_even_when_marks_are_skipped_or_repeated() {
        let t0 = Instant::now();
        let at = |us| t0 + Duration::from_micros(us);
        let mut stages = Stages::start(t0);
        stages.mark(Stage::Parse, at(10));
        stages.mark(Stage::Queue, at(35));
        stages.mark(Stage::Queue, at(40));
        stages.mark(Stage::Run, at(30)); // earlier than the last mark: charges nothing
        stages.mark(Stage::Write, at(100));
        assert_eq!(stages.spent(Stage::Queue), Duration::from_micros(30));
        assert_eq!(stages.spent(Stage::Run), Duration::ZERO);
        let sum: Duration = Stage::ALL.into_iter().map(|s| stages.spent(s)).sum();
        assert_eq!(sum, stages.total());
        assert_eq!(stages.total(), Duration::from_micros(100));
    }
}
