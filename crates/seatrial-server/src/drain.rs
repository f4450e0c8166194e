//! The way down: readiness turns false, the grace time passes, the doors close, what is in flight is answered.

use std::{
    sync::{
        OnceLock,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Instant,
};

use hyper::StatusCode;
use tokio::sync::watch;

/// How far down the server is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stage {
    /// Business as usual.
    Serving,
    /// Not ready any more; everything is still answered, with `Connection: close`.
    Leaving,
    /// The listener is closed. Connections end after their answer, or when they are silent.
    Closing,
    /// All is answered or time is up: the IO threads end.
    Over,
}

/// The one place that knows how far down the server is. Written by the pipeline, read by everybody.
#[derive(Debug)]
pub(crate) struct Drain {
    stage: watch::Sender<Stage>,
    closing_since: OnceLock<Instant>,
    answered: AtomicU64,
    failed: AtomicU64,
}

impl Drain {
    pub(crate) fn new() -> Self {
        Self {
            stage: watch::Sender::new(Stage::Serving),
            closing_since: OnceLock::new(),
            answered: AtomicU64::new(0),
            failed: AtomicU64::new(0),
        }
    }

    /// Goes on to `stage`; never back.
    pub(crate) fn advance(&self, stage: Stage) {
        if stage >= Stage::Closing {
            self.closing_since.get_or_init(Instant::now);
        }
        self.stage.send_if_modified(|now| {
            let further = stage > *now;
            *now = stage.max(*now);
            further
        });
    }

    pub(crate) fn stage(&self) -> Stage {
        *self.stage.borrow()
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.stage() > Stage::Serving
    }

    pub(crate) fn closing_since(&self) -> Option<Instant> {
        self.closing_since.get().copied()
    }

    pub(crate) fn watch(&self) -> watch::Receiver<Stage> {
        self.stage.subscribe()
    }

    /// Waits until `stage` or a later one.
    pub(crate) async fn reached(&self, stage: Stage) {
        // The sender is `self`, so the wait can only end with the stage.
        let _ = self.watch().wait_for(|now| *now >= stage).await;
    }

    /// Counts an answer that was given on the way down.
    pub(crate) fn note(&self, status: StatusCode) {
        let counter = if status.is_server_error() { &self.failed } else { &self.answered };
        counter.fetch_add(1, Relaxed);
    }

    /// Counts requests that got no answer.
    pub(crate) fn note_unanswered(&self, n: u64) {
        self.failed.fetch_add(n, Relaxed);
    }

    /// Requests answered and failed since readiness turned false.
    pub(crate) fn counts(&self) -> (u64, u64) {
        (self.answered.load(Relaxed), self.failed.load(Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_down_has_no_way_back() {
        let drain = Drain::new();
        assert!(!drain.is_draining() && drain.closing_since().is_none());
        drain.advance(Stage::Leaving);
        assert!(drain.is_draining() && drain.closing_since().is_none());
        drain.advance(Stage::Over);
        let since = drain.closing_since();
        drain.advance(Stage::Closing);
        assert_eq!((drain.stage(), drain.closing_since()), (Stage::Over, since));
    }
}
