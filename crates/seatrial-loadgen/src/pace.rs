//! Who decides when the next request is due: a timetable (open loop) or the answers (closed loop).

use std::{cmp::Reverse, collections::BinaryHeap};

/// A worker of a closed loop that could not connect waits this long, so that a dead port is not hammered.
const BACK_OFF_NS: i64 = 10_000_000;

/// The pace of a run. Times are nanoseconds from its origin; nothing here reads a clock.
pub trait Pace: Send {
    /// When the next request is due; `None` when there is none, or none before an answer comes.
    fn due(&self) -> Option<i64>;
    /// Takes the request that [`Pace::due`] spoke of.
    fn take(&mut self);
    /// A request has ended at `now`; `reached` is false when there was no connection.
    fn ended(&mut self, now: i64, reached: bool);
    /// How many requests were due up to `now`, taken or not.
    fn intended(&self, now: i64) -> u64;
    /// How many requests have not been taken; zero for a closed loop, whose number nobody knows.
    fn left(&self) -> u64;
}

/// Requests fall due on a timetable that the server cannot slow down.
#[derive(Debug)]
pub struct Open {
    times: Vec<i64>,
    taken: usize,
}

impl Open {
    /// A pace of rising times.
    pub const fn new(times: Vec<i64>) -> Self {
        Self { times, taken: 0 }
    }
}

impl Pace for Open {
    fn due(&self) -> Option<i64> {
        self.times.get(self.taken).copied()
    }

    fn take(&mut self) {
        self.taken += 1;
    }

    fn ended(&mut self, _now: i64, _reached: bool) {}

    fn intended(&self, now: i64) -> u64 {
        self.times.partition_point(|time| *time <= now) as u64
    }

    fn left(&self) -> u64 {
        self.times.len().saturating_sub(self.taken) as u64
    }
}

/// Each of a number of clients sends its next request when its last one has ended.
#[derive(Debug)]
pub struct Closed {
    ready: BinaryHeap<Reverse<i64>>,
    until: i64,
    taken: u64,
}

impl Closed {
    /// `connections` clients that start nothing at or after `until`.
    pub fn new(connections: usize, until: i64) -> Self {
        Self { ready: std::iter::repeat_n(Reverse(0), connections).collect(), until, taken: 0 }
    }
}

impl Pace for Closed {
    fn due(&self) -> Option<i64> {
        self.ready.peek().map(|Reverse(time)| *time).filter(|time| *time < self.until)
    }

    fn take(&mut self) {
        self.ready.pop();
        self.taken += 1;
    }

    fn ended(&mut self, now: i64, reached: bool) {
        self.ready.push(Reverse(if reached { now } else { now + BACK_OFF_NS }));
    }

    fn intended(&self, _now: i64) -> u64 {
        self.taken
    }

    fn left(&self) -> u64 {
        0
    }
}
