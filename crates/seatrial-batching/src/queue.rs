//! The former for threads: doors submit, executors take, a timer sweeps. One lock, held for the choice of a batch only.

use std::{
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use seatrial_types::{Batch, BatchSource, Error, Request, Stage, Ticket};

use crate::{BatchingMetrics, Config, CostTable, Former};

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

    /// Why a request whose body of `wire_bytes` bytes was not read yet would be refused, as far as that is certain.
    pub fn would_refuse(&self, wire_bytes: usize, deadline: Instant) -> Option<Error> {
        self.lock().former.would_refuse(wire_bytes, deadline, (self.clock)())
    }

    /// Forms batches and admits requests by these measured costs from now on.
    pub fn set_costs(&self, table: CostTable) {
        self.lock().former.set_costs(table);
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

    /// Waits for a request, but no longer than `longest`.
    fn wait<'a>(&self, state: MutexGuard<'a, State>, longest: Option<Duration>) -> MutexGuard<'a, State> {
        match longest {
            None => self.work.wait(state).unwrap_or_else(PoisonError::into_inner),
            Some(longest) => self.work.wait_timeout(state, longest).unwrap_or_else(PoisonError::into_inner).0,
        }
    }

    /// The queue's own state is whole between any two statements, so a panic elsewhere is no reason to stop serving.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl BatchSource for Queue {
    fn take(&self, done: Option<Ticket>) -> Option<Batch> {
        let mut state = self.lock();
        if let Some(ticket) = done {
            state.former.done(ticket, (self.clock)());
        }
        let mut batch = loop {
            let now = (self.clock)();
            if let Some(batch) = state.former.next(now) {
                break batch;
            }
            let held = state.former.held_until();
            if state.former.is_closed() && held.is_none() {
                return None;
            }
            state.idle += 1;
            state = self.wait(state, held.map(|until| until.saturating_duration_since(now)));
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
