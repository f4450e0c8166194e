//! The former for threads: doors submit, executors take, a timer sweeps. One lock, held for the choice of a batch only.

use std::{
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use seatrial_types::{Batch, BatchSource, Error, Request, Stage};

use crate::{BatchingMetrics, Config, Former};

/// Where the time comes from: `Instant::now` in the engine, a hand in tests.
pub type Clock = Box<dyn Fn() -> Instant + Send + Sync>;

/// The queue between the doors and the executors of one model.
pub struct Queue {
    state: Mutex<State>,
    work: Condvar,
    clock: Clock,
}

struct State {
    former: Former,
    /// Executors that wait in `take`. A notification costs a system call even when nobody waits, so it is sent only
    /// when somebody does.
    idle: usize,
}

impl Queue {
    /// An empty, open queue.
    pub fn new(config: Config, metrics: BatchingMetrics, clock: Clock) -> Self {
        let state = State { former: Former::new(config, metrics), idle: 0 };
        Self { state: Mutex::new(state), work: Condvar::new(), clock }
    }

    /// Admits a request or gives it back with the reason. Never waits for room.
    #[allow(clippy::result_large_err, reason = "the caller answers the request and needs it back whole")]
    pub fn submit(&self, request: Request) -> Result<(), (Request, Error)> {
        let mut state = self.lock();
        state.former.admit(request, (self.clock)())?;
        let wake = state.idle > 0;
        drop(state);
        if wake {
            self.work.notify_one();
        }
        Ok(())
    }

    /// Refuses new requests. Executors get what still waits, then `None`.
    pub fn close(&self) {
        self.lock().former.close();
        self.work.notify_all();
    }

    /// Rows waiting now.
    pub fn depth(&self) -> usize {
        self.lock().former.queued_rows()
    }

    /// Drops requests whose client has gone or whose deadline has passed, also while every executor is busy, and says
    /// when the next deadline is. Clients go without notice: call it every 2 ms or less while `depth` is not zero.
    pub fn sweep(&self, now: Instant) -> Option<Instant> {
        self.lock().former.expire(now)
    }

    /// Runs every request alone from now on: joining was found to be wrong.
    pub fn stop_joining(&self) {
        self.lock().former.stop_joining();
    }

    /// The queue's own state is whole between any two statements, so a panic elsewhere is no reason to stop serving.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl BatchSource for Queue {
    fn take(&self) -> Option<Batch> {
        let mut state = self.lock();
        let mut batch = loop {
            if let Some(batch) = state.former.next((self.clock)()) {
                break batch;
            }
            if state.former.is_closed() {
                return None;
            }
            state.idle += 1;
            state = self.work.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.idle -= 1;
        };
        drop(state);
        let formed = (self.clock)();
        for request in &mut batch.requests {
            request.stages.mark(Stage::Form, formed);
        }
        Some(batch)
    }
}
