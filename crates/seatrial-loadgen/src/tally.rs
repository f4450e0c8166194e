//! Counts of a run, and the events that carry them.

use serde::Serialize;

use crate::row::Outcome;

/// Cumulative counts.
#[derive(Debug, Default)]
pub struct Tally {
    next_number: u64,
    /// Requests begun.
    pub sent: u64,
    /// Requests out now.
    pub in_flight: u64,
    /// Whole answers, whatever their status.
    pub completed: u64,
    /// Whole answers with a 2xx status.
    pub ok: u64,
    /// Everything sent that did not end well.
    pub errors: u64,
    /// Requests that found no free place.
    pub not_sent: u64,
    /// Sockets opened.
    pub sockets: u64,
    /// Second tries after a stale connection.
    pub retries: u64,
    /// What went wrong first, for people.
    pub first_error: Option<String>,
}

/// The figures of one second, cumulative.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Second {
    /// Seconds from the start.
    pub t: f64,
    /// Requests due so far.
    pub intended: u64,
    /// Requests begun.
    pub sent: u64,
    /// Whole answers.
    pub completed: u64,
    /// Whole answers with a 2xx status.
    pub ok: u64,
    /// Everything sent that did not end well.
    pub errors: u64,
    /// Requests that found no free place.
    pub not_sent: u64,
    /// Requests out.
    pub in_flight: u64,
}

/// The end of a run. Lateness quantiles are rounded up to bucket edges at most 1.6 % apart; the exact ones come from
/// the rows.
#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs, reason = "each name says it with its unit; docs/guides/bench.md explains them")]
pub struct Done {
    #[serde(flatten)]
    pub last: Second,
    /// Of the thread that sends, including `spin_s`.
    pub cpu_s: f64,
    /// Spent looking for the last microseconds before a request was due.
    pub spin_s: f64,
    pub wall_s: f64,
    pub run_queue_wait_s: Option<f64>,
    pub late_p50_us: Option<f64>,
    pub late_p99_us: Option<f64>,
    pub late_max_us: Option<f64>,
    pub sockets: u64,
    pub retries: u64,
    pub cut_short: bool,
    /// Requests of the timetable that a stop kept from falling due.
    pub never_due: u64,
    /// Requests that were still out when a stop's grace ended; they have no row.
    pub abandoned: u64,
    pub first_error: Option<String>,
}

impl Tally {
    /// The number of the next request.
    pub fn number(&mut self) -> u64 {
        self.next_number += 1;
        self.next_number - 1
    }

    /// Counts the end of a request.
    pub fn count(&mut self, outcome: Outcome) {
        match outcome {
            Outcome::Ok => {
                self.ok += 1;
                self.completed += 1;
            }
            Outcome::HttpError => {
                self.errors += 1;
                self.completed += 1;
            }
            Outcome::NotSent => self.not_sent += 1,
            Outcome::Timeout | Outcome::Connect | Outcome::Reset | Outcome::Protocol => self.errors += 1,
        }
    }

    /// Keeps the first thing that went wrong.
    pub fn remember(&mut self, why: impl FnOnce() -> String) {
        self.first_error.get_or_insert_with(why);
    }

    /// The counts at `now`.
    pub fn second(&self, now: i64, intended: u64) -> Second {
        Second {
            t: now as f64 / 1e9,
            intended,
            sent: self.sent,
            completed: self.completed,
            ok: self.ok,
            errors: self.errors,
            not_sent: self.not_sent,
            in_flight: self.in_flight,
        }
    }
}
