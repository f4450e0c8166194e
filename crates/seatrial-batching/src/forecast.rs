//! When the work that waits will be done: the measured costs, corrected by how long runs take now.

use std::time::{Duration, Instant};

use seatrial_types::Ticket;

use crate::CostTable;

/// Weight of the latest run in the averages: the last ten or so decide.
const WEIGHT: f64 = 0.1;

/// A single run moves an average by no more than this factor of it.
const LARGEST_STEP: f64 = 4.0;

/// Bodies further back than about this many do not tell how much work a byte holds.
const BODIES: f64 = 200.0;

/// Expected waits are lengthened by this much before a request is refused or taken: half of those that would just make
/// it would otherwise just miss it.
const CAUTION: f64 = 1.1;

/// The expectations of one model. Before there is a table it expects nothing.
#[derive(Debug)]
pub(crate) struct Forecast {
    executors: usize,
    table: Option<CostTable>,
    max_rows: usize,
    /// Time of a run over what the table says for it: the machine against the machine at warm-up.
    speed: f64,
    /// Time of a run over the least work that its requests could have been: the machine, padding and small batches.
    drain: f64,
    /// Seconds of work and bytes of the bodies that held it, the latest weighing most.
    bodies: (f64, f64),
    running: Vec<Running>,
    last_ticket: u64,
}

#[derive(Clone, Copy, Debug)]
struct Running {
    ticket: Ticket,
    since: Instant,
    /// What the table said; `None` before there was one.
    expected: Option<f64>,
    work: f64,
}

impl Forecast {
    pub(crate) fn new(executors: usize, max_rows: usize) -> Self {
        Self {
            executors: executors.max(1),
            table: None,
            max_rows,
            speed: 1.0,
            drain: 1.0,
            bodies: (0.0, 0.0),
            running: Vec::new(),
            last_ticket: 0,
        }
    }

    pub(crate) fn set_table(&mut self, table: CostTable) {
        self.table = Some(table);
    }

    pub(crate) const fn table(&self) -> Option<&CostTable> {
        self.table.as_ref()
    }

    /// Time of a run now over that at warm-up.
    pub(crate) const fn speed(&self) -> f64 {
        self.speed
    }

    /// The least that a request costs the executors, as measured at warm-up: its rows' share of the cheapest batch.
    pub(crate) fn work(&self, rows: usize, length: usize) -> Duration {
        let Some(table) = &self.table else { return Duration::ZERO };
        table.least_per_row(length, self.max_rows) * u32::try_from(rows.max(1)).unwrap_or(u32::MAX)
    }

    /// The time of one run, as it would be now.
    pub(crate) fn run(&self, rows: usize, length: usize) -> Duration {
        let seconds = self.table.as_ref().map_or(0.0, |table| table.seconds(rows.max(1), length));
        Duration::try_from_secs_f64(seconds * self.speed).unwrap_or_default()
    }

    /// A request was taken in.
    pub(crate) fn admitted(&mut self, work: Duration, wire_bytes: usize) {
        if wire_bytes > 0 {
            let keep = 1.0 - 1.0 / BODIES;
            self.bodies.0 = self.bodies.0 * keep + work.as_secs_f64();
            self.bodies.1 = self.bodies.1 * keep + wire_bytes as f64;
        }
    }

    /// The work in a body of which only the size is known.
    pub(crate) fn work_in(&self, wire_bytes: usize) -> Duration {
        let (seconds, bytes) = self.bodies;
        let work = if bytes > 0.0 { seconds / bytes * wire_bytes as f64 } else { 0.0 };
        Duration::try_from_secs_f64(work).unwrap_or_default()
    }

    /// How long it will be until `queued` work is done and one request that takes `own` behind it; `None` when nothing
    /// is known, or when an executor is free and nothing waits: then the only way to find out is to run it.
    pub(crate) fn finish(&self, queued: Duration, own: Duration, now: Instant) -> Option<Duration> {
        self.table.as_ref()?;
        if queued.is_zero() && self.running.len() < self.executors {
            return None;
        }
        let running: f64 = self.running.iter().map(|running| self.remaining(running, now)).sum();
        let wait = (queued.as_secs_f64() * self.drain + running) / self.executors as f64;
        Duration::try_from_secs_f64(wait * CAUTION + own.as_secs_f64()).ok()
    }

    /// A batch was handed out.
    pub(crate) fn taken(&mut self, (rows, length): (usize, usize), work: Duration, now: Instant) -> Ticket {
        self.last_ticket += 1;
        let ticket = Ticket(self.last_ticket);
        let expected = self.table.as_ref().map(|table| table.seconds(rows.max(1), length));
        self.running.push(Running { ticket, since: now, expected, work: work.as_secs_f64() });
        ticket
    }

    /// A batch was run.
    pub(crate) fn done(&mut self, ticket: Ticket, now: Instant) {
        let Some(at) = self.running.iter().position(|running| running.ticket == ticket) else { return };
        let running = self.running.swap_remove(at);
        let took = now.saturating_duration_since(running.since).as_secs_f64();
        if let Some(expected) = running.expected {
            self.speed = follow(self.speed, took, expected);
            self.drain = follow(self.drain, took, running.work);
        }
    }

    /// Seconds until a running batch is done. One that is overdue is taken to need as long again as it is late.
    fn remaining(&self, running: &Running, now: Instant) -> f64 {
        let so_far = now.saturating_duration_since(running.since).as_secs_f64();
        (running.expected.unwrap_or_default() * self.speed - so_far).abs()
    }
}

fn follow(average: f64, took: f64, expected: f64) -> f64 {
    if expected <= 0.0 {
        return average;
    }
    let latest = (took / expected).clamp(average / LARGEST_STEP, average * LARGEST_STEP);
    (average + WEIGHT * (latest - average)).clamp(1e-3, 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// 10 ms for a run of one row, 20 ms for eight.
    fn forecast(executors: usize) -> Forecast {
        let mut forecast = Forecast::new(executors, 8);
        forecast.set_table(CostTable::new([(1, 1, ms(10)), (8, 1, ms(20))]).unwrap());
        forecast
    }

    fn near(found: Option<Duration>, expected_ms: f64) {
        let off = found.unwrap().as_secs_f64() * 1e3 - expected_ms;
        assert!(off.abs() < 0.01, "{found:?} is not {expected_ms} ms");
    }

    #[test]
    fn what_waits_and_what_runs_are_shared_by_the_executors() {
        let t0 = Instant::now();
        let mut forecast = forecast(2);
        assert_eq!(forecast.work(4, 1), ms(10));
        assert_eq!(forecast.finish(ms(0), ms(10), t0), None, "an executor is free");
        forecast.taken((1, 1), ms(10), t0);
        assert_eq!(forecast.finish(ms(0), ms(10), t0), None, "the other one is free");
        forecast.taken((8, 1), ms(20), t0);
        near(forecast.finish(ms(0), ms(10), t0), 15.0 * 1.1 + 10.0);
        near(forecast.finish(ms(40), ms(10), t0 + ms(5)), (40.0 + 5.0 + 15.0) / 2.0 * 1.1 + 10.0);
    }

    #[test]
    fn without_a_table_nothing_is_expected() {
        let t0 = Instant::now();
        let mut forecast = Forecast::new(1, 8);
        let ticket = forecast.taken((1, 1), ms(0), t0);
        forecast.done(ticket, t0 + ms(500));
        assert_eq!(forecast.finish(ms(0), ms(0), t0 + ms(500)), None);
        assert_eq!(forecast.work(3, 3), ms(0));
    }

    #[test]
    fn a_machine_that_became_slower_is_followed_and_forgotten_again() {
        let mut now = Instant::now();
        let mut forecast = forecast(1);
        let mut runs = |forecast: &mut Forecast, took: Duration, n: usize| {
            for _ in 0..n {
                let ticket = forecast.taken((1, 1), ms(5), now);
                now += took;
                forecast.done(ticket, now);
            }
        };
        runs(&mut forecast, ms(30), 60);
        assert!((forecast.speed() - 3.0).abs() < 0.02, "three times slower, found {}", forecast.speed());
        assert!((forecast.run(1, 1).as_secs_f64() - 0.030).abs() < 2e-4);
        runs(&mut forecast, ms(5000), 1);
        assert!(forecast.speed() < 4.0, "one stall is not believed, found {}", forecast.speed());
        runs(&mut forecast, ms(10), 80);
        assert!((forecast.speed() - 1.0).abs() < 0.02, "found {}", forecast.speed());
    }

    #[test]
    fn a_batch_that_hangs_is_expected_to_go_on_hanging() {
        let t0 = Instant::now();
        let mut forecast = forecast(1);
        forecast.taken((1, 1), ms(10), t0);
        near(forecast.finish(ms(0), ms(0), t0 + ms(1010)), 1100.0);
    }

    #[test]
    fn the_size_of_a_body_tells_the_work_in_it() {
        let mut forecast = forecast(1);
        assert_eq!(forecast.work_in(1000), ms(0), "nothing was seen yet");
        for _ in 0..1000 {
            forecast.admitted(ms(2), 100);
        }
        assert!((forecast.work_in(1000).as_secs_f64() - 0.020).abs() < 1e-6);
        for _ in 0..2000 {
            forecast.admitted(ms(2), 400);
        }
        assert!((forecast.work_in(1000).as_secs_f64() - 0.005).abs() < 1e-4, "other clients, other bodies");
    }
}
