//! The pure core: a bounded queue in order of arrival and the choice of the next batch. No clock, lock or thread.

use std::time::{Duration, Instant};

use seatrial_types::{Batch, BatchMode, Code, Error, Release, Reply, Request, Stage, Ticket};

use crate::{
    BatchingMetrics, Config, CostTable, Policy,
    choice::{Choice, cut_equal, cut_mixed},
    forecast::Forecast,
    joining::{joinable, length, same_inner},
    line::{Line, Waiting},
    pace::Pace,
};

/// How far behind the first request mates are sought, as a multiple of the largest batch and at least this many.
const WINDOW_BATCHES: usize = 4;
const WINDOW_LEAST: usize = 64;

/// How many requests of different lengths are cut into batches at a time. The work of the cut grows with its square.
const MIXED_WINDOW: usize = 64;

/// The waiting requests of one model. Whoever owns it passes the time to every method.
#[derive(Debug)]
pub struct Former {
    config: Config,
    metrics: BatchingMetrics,
    line: Line,
    closed: bool,
    pace: Pace,
    forecast: Forecast,
    /// Arrivals so far.
    arrivals: u64,
    /// Until when a batch is held back for more, by the policy of fixed sizes.
    held: Option<Instant>,
    /// Requests that a scan passed over; empty between calls and kept for its memory.
    passed: Vec<Waiting>,
}

/// Requests that fit together, the first being the one whose turn it is.
struct Mates {
    waiting: Vec<Waiting>,
    rows: usize,
    /// No more rows may be added.
    full: bool,
}

impl Former {
    /// An empty, open queue.
    pub fn new(config: Config, metrics: BatchingMetrics) -> Self {
        metrics.max_rows.set(config.max_rows as f64);
        Self {
            line: Line::new(config.levels),
            forecast: Forecast::new(config.executors, config.max_rows),
            config,
            metrics,
            closed: false,
            pace: Pace::default(),
            arrivals: 0,
            held: None,
            passed: Vec::new(),
        }
    }

    /// Forms batches and admits requests by these measured costs from now on.
    pub fn set_costs(&mut self, table: CostTable) {
        self.forecast.set_table(table);
    }

    /// Takes a request in, or gives it back with the reason.
    #[allow(clippy::result_large_err, reason = "the caller answers the request and needs it back whole")]
    pub fn admit(&mut self, request: Request, now: Instant) -> Result<(), (Request, Error)> {
        let length = length(self.padding(), &request);
        let level = self.line.level_of(request.priority);
        let refusal = self.refusal(&request, now).or_else(|| {
            let own = self.forecast.run(request.rows, length);
            self.too_late((level, own), request.deadline, now)
        });
        if let Some(error) = refusal {
            return Err((request, error));
        }
        let work = self.forecast.work(request.rows, length);
        self.forecast.admitted(work, request.wire_bytes);
        self.arrivals += 1;
        self.line.push(Waiting { request, since: now, level, place: self.arrivals, length, work });
        self.metrics.queued_rows.set(self.line.rows() as f64);
        Ok(())
    }

    /// Why a request whose body of `wire_bytes` bytes was not read yet would be refused, as far as that is certain
    /// before its rows are known.
    pub fn would_refuse(&self, wire_bytes: usize, deadline: Instant, now: Instant) -> Option<Error> {
        let own = self.forecast.work_in(wire_bytes).mul_f64(self.forecast.speed());
        self.closed_error()
            .or_else(|| self.full_error(None, now))
            // Its level is in the body; the first level waits the least.
            .or_else(|| self.too_late((0, own), deadline, now))
    }

    /// The next batch: the request whose turn it is, with those that join it. Requests whose client has gone or whose
    /// deadline has passed are dropped on the way.
    pub fn next(&mut self, now: Instant) -> Option<Batch> {
        self.held = None;
        let Some(first) = self.pop_wanted(now) else {
            self.pace.idle(now);
            self.metrics.queued_rows.set(self.line.rows() as f64);
            return None;
        };
        let choice = if !joinable(self.config.mode, self.padding(), &first.request) {
            Some(Choice { taken: vec![first], release: Release::Single })
        } else if first.request.rows >= self.config.max_rows {
            Some(Choice { taken: vec![first], release: Release::Full })
        } else {
            self.choose(first, now)
        };
        self.put_back();
        let batch = choice.map(|choice| self.release(choice, now));
        self.metrics.queued_rows.set(self.line.rows() as f64);
        batch
    }

    /// An executor has run a batch.
    pub fn done(&mut self, ticket: Ticket, now: Instant) {
        self.forecast.done(ticket, now);
        self.metrics.cost_ratio.set(self.forecast.speed());
    }

    /// Until when the batch that could be formed is held back for more requests.
    pub const fn held_until(&self) -> Option<Instant> {
        self.held
    }

    /// Drops every request whose client has gone or whose deadline has passed, and says when the next deadline is.
    pub fn expire(&mut self, now: Instant) -> Option<Instant> {
        if self.line.iter().any(|waiting| !wanted(&waiting.request, now)) {
            for waiting in self.line.drain() {
                if let Some(waiting) = self.keep_wanted(waiting, now) {
                    self.line.push(waiting);
                }
            }
            self.metrics.queued_rows.set(self.line.rows() as f64);
        }
        self.line.iter().map(|waiting| waiting.request.deadline).min()
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
        self.line.rows()
    }

    const fn padding(&self) -> Option<&seatrial_types::PadPlan> {
        self.config.padding.as_ref()
    }

    fn refusal(&self, request: &Request, now: Instant) -> Option<Error> {
        let (rows, limit) = (request.rows.max(1), self.config.queue_rows);
        if let Some(error) = self.closed_error() {
            return Some(error);
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
        self.full_error(Some(rows), now)
    }

    fn closed_error(&self) -> Option<Error> {
        self.closed.then(|| Error::new(Code::Unavailable, "the model takes no new requests"))
    }

    /// The refusal of `rows` rows for which there is no room, or of any where their number is not known yet.
    fn full_error(&self, rows: Option<usize>, now: Instant) -> Option<Error> {
        let (waiting, limit) = (self.line.rows(), self.config.queue_rows);
        if waiting + rows.unwrap_or(1) <= limit {
            return None;
        }
        self.metrics.dropped_full.inc();
        let asked = rows.map(|rows| format!("the request has {rows}, ")).unwrap_or_default();
        let text =
            format!("the queue of the model is full: {waiting} rows wait, {asked}the limit is {limit} rows");
        Some(Error::new(Code::ResourceExhausted, text).retry_after(self.pace.time_for(waiting, now)))
    }

    /// The refusal of a request that cannot be done by its deadline, behind what waits before its level.
    fn too_late(&self, (level, own): (usize, Duration), deadline: Instant, now: Instant) -> Option<Error> {
        let finish = self.forecast.finish(self.line.work_before(level), own, now)?;
        let left = deadline.saturating_duration_since(now);
        let excess = finish.checked_sub(left).filter(|excess| !excess.is_zero())?;
        self.metrics.dropped_late.inc();
        let (needed, left) = (finish.as_secs_f64() * 1e3, left.as_secs_f64() * 1e3);
        let text = format!(
            "the request cannot be done in time: with what waits before it about {needed:.0} ms are needed, its \
             deadline is in {left:.0} ms"
        );
        Some(Error::new(Code::ResourceExhausted, text).retry_after(Pace::bounded(excess)))
    }

    fn choose(&mut self, first: Waiting, now: Instant) -> Option<Choice> {
        match (&self.config.policy, self.forecast.table().is_some() && self.padding().is_some()) {
            (Policy::Preferred { .. }, _) => self.choose_preferred(first, now),
            (Policy::Cost, true) => {
                let mates = self.gather(first, (usize::MAX, MIXED_WINDOW), now).waiting;
                let figures = (&self.forecast, now);
                Some(cut_mixed(mates, self.config.max_rows, figures, &mut self.passed))
            }
            (Policy::Cost, false) => {
                let window = self.config.max_rows.saturating_mul(WINDOW_BATCHES).max(WINDOW_LEAST);
                let mates = self.gather(first, (self.config.max_rows, window), now);
                Some(cut_equal(mates.waiting, mates.full, &self.forecast, &mut self.passed))
            }
        }
    }

    /// As many as the largest preferred size that can be had, or all that is there once the first has waited for long
    /// enough or nothing more will come.
    fn choose_preferred(&mut self, first: Waiting, now: Instant) -> Option<Choice> {
        let Policy::Preferred { rows: sizes, max_delay } = self.config.policy.clone() else { return None };
        let due = first.since + max_delay;
        let Mates { mut waiting, rows, full } = self.gather(first, (self.config.max_rows, WINDOW_LEAST), now);
        let size = sizes.iter().rev().copied().find(|size| *size <= rows);
        if full || size.is_some() {
            let n = size.filter(|_| !full).map_or(waiting.len(), |size| whole_within(&waiting, size));
            self.passed.extend(waiting.drain(n..));
            return Some(Choice { taken: waiting, release: Release::Full });
        }
        if due <= now || self.closed {
            return Some(Choice { taken: waiting, release: Release::BucketAge });
        }
        self.held = Some(due);
        self.passed.append(&mut waiting);
        None
    }

    /// `first` and what fits it, in turn, up to `max_rows` rows and looking at no more than `window` requests. What
    /// does not fit is set aside. The first one that would fit but for its rows ends the search, so that nobody of
    /// the same shape overtakes it.
    fn gather(&mut self, first: Waiting, (max_rows, window): (usize, usize), now: Instant) -> Mates {
        let mut mates = Mates { rows: first.request.rows, full: false, waiting: vec![first] };
        for _ in 1..window {
            if mates.full {
                break;
            }
            let Some(waiting) = self.line.pop_first() else { break };
            let Some(waiting) = self.keep_wanted(waiting, now) else { continue };
            if !self.fits(&mates, &waiting) {
                self.passed.push(waiting);
            } else if mates.rows + waiting.request.rows > max_rows {
                mates.full = true;
                self.passed.push(waiting);
            } else {
                mates.rows += waiting.request.rows;
                mates.full = mates.rows == max_rows;
                mates.waiting.push(waiting);
            }
        }
        mates
    }

    fn fits(&self, mates: &Mates, waiting: &Waiting) -> bool {
        let (padding, request) = (self.padding(), &waiting.request);
        let Some(first) = mates.waiting.first() else { return false };
        // Lengths are mixed only where their cost is known, or by a policy that does not ask for it.
        let mixed = self.config.policy != Policy::Cost || self.forecast.table().is_some();
        same_inner(&first.request, request, padding)
            && (mixed || first.length == waiting.length)
            && joinable(self.config.mode, padding, request)
    }

    /// What a scan set aside goes back to where it was.
    fn put_back(&mut self) {
        self.passed.sort_by_key(|waiting| waiting.place);
        while let Some(waiting) = self.passed.pop() {
            self.line.put_back(waiting);
        }
    }

    fn release(&mut self, choice: Choice, now: Instant) -> Batch {
        let Choice { mut taken, release } = choice;
        taken.sort_by_key(|waiting| waiting.place);
        let rows: usize = taken.iter().map(|waiting| waiting.request.rows).sum();
        let longest = taken.iter().map(|waiting| waiting.length).max().unwrap_or_default();
        let since = taken.iter().map(|waiting| waiting.since).min().unwrap_or(now);
        let work = taken.iter().map(|waiting| waiting.work).sum();
        if self.padding().is_some() {
            let useful: usize = taken.iter().map(|w| w.request.rows * w.length).sum();
            self.metrics.positions_useful.add(useful as u64);
            self.metrics.positions_padding.add((rows * longest - useful) as u64);
        }
        self.pace.taken(rows.max(1), now);
        self.metrics.oldest_wait.observe_duration(now.saturating_duration_since(since));
        self.metrics.batch_rows.observe(rows as f64);
        self.metrics.released(release).inc();
        let ticket = self.forecast.taken((rows, longest), work, now);
        let mut requests: Vec<Request> = taken.into_iter().map(|waiting| waiting.request).collect();
        for request in &mut requests {
            request.stages.mark(Stage::Queue, now);
        }
        Batch { ticket, requests, release }
    }

    fn pop_wanted(&mut self, now: Instant) -> Option<Waiting> {
        loop {
            let waiting = self.line.pop_turn()?;
            if let Some(waiting) = self.keep_wanted(waiting, now) {
                return Some(waiting);
            }
        }
    }

    /// Gives a wanted request back; counts and answers any other.
    fn keep_wanted(&self, waiting: Waiting, now: Instant) -> Option<Waiting> {
        if wanted(&waiting.request, now) {
            return Some(waiting);
        }
        let Waiting { request: Request { mut stages, reply, .. }, since, .. } = waiting;
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

/// How many of the first requests have together at most `size` rows; one at least.
fn whole_within(waiting: &[Waiting], size: usize) -> usize {
    let mut rows = 0;
    let within = waiting.iter().take_while(|waiting| {
        rows += waiting.request.rows;
        rows <= size
    });
    within.count().max(1)
}

fn wanted(request: &Request, now: Instant) -> bool {
    request.deadline > now && !request.reply.is_closed()
}
