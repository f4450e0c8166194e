//! The pure core: a bounded queue in order of arrival and the choice of the next batch. No clock, lock or thread.

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

use seatrial_types::{Batch, BatchMode, Code, Error, Release, Reply, Request, Stage};

use crate::{
    BatchingMetrics,
    joining::{joinable, same_inner},
    pace::Pace,
};

/// How far behind the oldest request mates are sought, as a multiple of the largest batch and at least this many.
const WINDOW_BATCHES: usize = 4;
const WINDOW_LEAST: usize = 64;

/// Limits of one model's queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Which requests may be joined.
    pub mode: BatchMode,
    /// The most rows of a joined batch. A single request may have more and then runs alone.
    pub max_rows: usize,
    /// The most rows that wait. A request without rows counts as one, so that it cannot pass the bound.
    pub queue_rows: usize,
}

/// The waiting requests of one model. Whoever owns it passes the time to every method.
#[derive(Debug)]
pub struct Former {
    config: Config,
    metrics: BatchingMetrics,
    waiting: VecDeque<Waiting>,
    /// Sum of the weights of `waiting`.
    rows: usize,
    closed: bool,
    pace: Pace,
    /// Requests that a scan passed over; empty between calls and kept for its memory.
    passed: Vec<Waiting>,
}

#[derive(Debug)]
struct Waiting {
    request: Request,
    since: Instant,
}

/// A batch in the making.
struct Choice {
    requests: Vec<Request>,
    rows: usize,
    full: bool,
}

impl Former {
    /// An empty, open queue.
    pub fn new(config: Config, metrics: BatchingMetrics) -> Self {
        let (waiting, passed) = (VecDeque::new(), Vec::new());
        Self { config, metrics, waiting, rows: 0, closed: false, pace: Pace::default(), passed }
    }

    /// Takes a request in, or gives it back with the reason.
    #[allow(clippy::result_large_err, reason = "the caller answers the request and needs it back whole")]
    pub fn admit(&mut self, request: Request, now: Instant) -> Result<(), (Request, Error)> {
        if let Some(error) = self.refusal(&request, now) {
            return Err((request, error));
        }
        self.rows += weight(&request);
        self.waiting.push_back(Waiting { request, since: now });
        self.metrics.queued_rows.set(self.rows as f64);
        Ok(())
    }

    /// The next batch: the oldest request that is still wanted, with all that may join it. Requests whose client has
    /// gone or whose deadline has passed are dropped on the way.
    pub fn next(&mut self, now: Instant) -> Option<Batch> {
        let Some(oldest) = self.pop_wanted(now) else {
            self.pace.idle(now);
            self.metrics.queued_rows.set(self.rows as f64);
            return None;
        };
        let waited = now.saturating_duration_since(oldest.since);
        let alone = !joinable(self.config.mode, &oldest.request);
        let first = oldest.request;
        let rows = first.rows;
        let mut choice = Choice { requests: vec![first], rows, full: rows >= self.config.max_rows };
        if !alone && !choice.full {
            self.gather(&mut choice, now);
        }
        Some(self.release(choice, alone, waited, now))
    }

    /// Drops every request whose client has gone or whose deadline has passed, and says when the next deadline is.
    pub fn expire(&mut self, now: Instant) -> Option<Instant> {
        if self.waiting.iter().any(|waiting| !wanted(&waiting.request, now)) {
            for _ in 0..self.waiting.len() {
                if let Some(waiting) = self.pop_front()
                    && let Some(waiting) = self.keep_wanted(waiting, now)
                {
                    self.rows += weight(&waiting.request);
                    self.waiting.push_back(waiting);
                }
            }
            self.metrics.queued_rows.set(self.rows as f64);
        }
        self.waiting.iter().map(|waiting| waiting.request.deadline).min()
    }

    /// Refuses new requests from now on; those that wait are still handed out.
    pub fn close(&mut self) {
        self.closed = true;
    }

    /// Runs every request alone from now on: joining was found to be wrong.
    pub fn stop_joining(&mut self) {
        self.config.mode = BatchMode::None;
    }

    /// Whether `close` was called.
    pub fn is_closed(&self) -> bool {
        self.closed
    }

    /// Rows waiting, a request without rows counting as one.
    pub fn queued_rows(&self) -> usize {
        self.rows
    }

    fn refusal(&self, request: &Request, now: Instant) -> Option<Error> {
        let (rows, limit) = (weight(request), self.config.queue_rows);
        if self.closed {
            return Some(Error::new(Code::Unavailable, "the model takes no new requests"));
        }
        if request.deadline <= now {
            self.metrics.dropped_deadline.inc();
            return Some(Error::new(
                Code::DeadlineExceeded,
                "the deadline had passed before the request was queued",
            ));
        }
        if rows > limit {
            let text =
                format!("the request has {rows} rows, the queue of the model holds at most {limit} rows");
            return Some(Error::new(Code::PayloadTooLarge, text));
        }
        if self.rows + rows > limit {
            self.metrics.dropped_full.inc();
            let text = format!(
                "the queue of the model is full: {} rows wait, the request has {rows}, the limit is {limit} rows",
                self.rows
            );
            let wait = self.pace.time_for(self.rows, now);
            return Some(Error::new(Code::ResourceExhausted, text).retry_after(wait));
        }
        None
    }

    /// Adds to `choice` what fits its first request, in order of arrival. What does not fit stays where it was. The
    /// first one that would fit but for its rows ends the batch, so that nobody of the same shape overtakes it.
    fn gather(&mut self, choice: &mut Choice, now: Instant) {
        let window = self.config.max_rows.saturating_mul(WINDOW_BATCHES).max(WINDOW_LEAST);
        for _ in 0..window {
            if choice.full {
                break;
            }
            let Some(waiting) = self.pop_front() else { break };
            let Some(waiting) = self.keep_wanted(waiting, now) else { continue };
            if !self.fits(choice, &waiting.request) {
                self.passed.push(waiting);
            } else if choice.rows + waiting.request.rows > self.config.max_rows {
                choice.full = true;
                self.passed.push(waiting);
            } else {
                choice.rows += waiting.request.rows;
                choice.full = choice.rows == self.config.max_rows;
                choice.requests.push(waiting.request);
            }
        }
        while let Some(waiting) = self.passed.pop() {
            self.rows += weight(&waiting.request);
            self.waiting.push_front(waiting);
        }
    }

    fn fits(&self, choice: &Choice, request: &Request) -> bool {
        let like_first = choice.requests.first().is_some_and(|first| same_inner(first, request));
        like_first && joinable(self.config.mode, request)
    }

    fn release(&mut self, choice: Choice, alone: bool, waited: Duration, now: Instant) -> Batch {
        let Choice { mut requests, rows, full } = choice;
        let release = match (alone, full) {
            (true, _) => Release::Single,
            (false, true) => Release::Full,
            (false, false) => Release::Idle,
        };
        for request in &mut requests {
            request.stages.mark(Stage::Queue, now);
        }
        self.pace.taken(rows.max(1), now);
        self.metrics.queued_rows.set(self.rows as f64);
        self.metrics.oldest_wait.observe_duration(waited);
        self.metrics.batch_rows.observe(rows as f64);
        self.metrics.released(release).inc();
        Batch { requests, release }
    }

    fn pop_wanted(&mut self, now: Instant) -> Option<Waiting> {
        loop {
            let waiting = self.pop_front()?;
            if let Some(waiting) = self.keep_wanted(waiting, now) {
                return Some(waiting);
            }
        }
    }

    fn pop_front(&mut self) -> Option<Waiting> {
        let waiting = self.waiting.pop_front()?;
        self.rows -= weight(&waiting.request);
        Some(waiting)
    }

    /// Gives a wanted request back; counts and answers any other.
    fn keep_wanted(&self, waiting: Waiting, now: Instant) -> Option<Waiting> {
        if wanted(&waiting.request, now) {
            return Some(waiting);
        }
        let Waiting { request: Request { mut stages, reply, .. }, since } = waiting;
        if reply.is_closed() {
            self.metrics.dropped_client_gone.inc();
            return None;
        }
        self.metrics.dropped_deadline.inc();
        stages.mark(Stage::Queue, now);
        let waited_ms = now.saturating_duration_since(since).as_secs_f64() * 1e3;
        let text = format!("the deadline passed after {waited_ms:.1} ms in the queue");
        // The client may go in this very moment; then there is nobody left to tell.
        let _ = reply.send(Reply { outcome: Err(Error::new(Code::DeadlineExceeded, text)), stages });
        None
    }
}

/// What a request counts for in the bound.
fn weight(request: &Request) -> usize {
    request.rows.max(1)
}

fn wanted(request: &Request, now: Instant) -> bool {
    request.deadline > now && !request.reply.is_closed()
}
