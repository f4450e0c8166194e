//! How fast the queue drained of late, for the hint that a refused client gets.

use std::time::{Duration, Instant};

/// Weight that one more measured batch leaves to those before it: the last ten or so decide.
const MEMORY: f64 = 0.9;

/// The hint as long as nothing was measured.
const UNMEASURED: Duration = Duration::from_millis(100);

const SHORTEST: Duration = Duration::from_millis(1);
const LONGEST: Duration = Duration::from_secs(5);

/// Rows and the time they took, the latest weighing most. Only time under load counts: from one take to the next one,
/// or to the moment that an executor found nothing to do.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    rows: f64,
    seconds: f64,
    running: Option<Running>,
}

#[derive(Clone, Copy, Debug)]
struct Running {
    since: Instant,
    rows: usize,
}

impl Pace {
    /// An executor took a batch.
    pub(crate) fn taken(&mut self, rows: usize, now: Instant) {
        self.idle(now);
        self.running = Some(Running { since: now, rows });
    }

    /// An executor found nothing to do.
    pub(crate) fn idle(&mut self, now: Instant) {
        if let Some(running) = self.running.take() {
            self.rows = self.rows * MEMORY + running.rows as f64;
            self.seconds = self.seconds * MEMORY + now.saturating_duration_since(running.since).as_secs_f64();
        }
    }

    /// How long `rows` waiting rows are likely to take.
    pub(crate) fn time_for(&self, rows: usize, now: Instant) -> Duration {
        let seconds = rows as f64 * self.seconds_per_row(now);
        if seconds.is_finite() && seconds > 0.0 {
            Self::bounded(Duration::from_secs_f64(seconds.min(LONGEST.as_secs_f64())))
        } else {
            UNMEASURED
        }
    }

    /// A hint that is worth giving: clients neither come back at once nor stay away for good.
    pub(crate) fn bounded(hint: Duration) -> Duration {
        hint.clamp(SHORTEST, LONGEST)
    }

    /// The measured pace, or a slower one when the batch that runs now has taken longer already.
    fn seconds_per_row(&self, now: Instant) -> f64 {
        let measured = self.seconds / self.rows;
        let Some(running) = self.running else { return measured };
        let so_far = now.saturating_duration_since(running.since).as_secs_f64() / running.rows as f64;
        if measured.is_nan() { so_far } else { measured.max(so_far) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(start: Instant, ms: u64) -> Instant {
        start + Duration::from_millis(ms)
    }

    #[test]
    fn the_hint_follows_the_measured_pace_within_its_bounds() {
        let t0 = Instant::now();
        let mut pace = Pace::default();
        assert_eq!(pace.time_for(1000, t0), UNMEASURED);
        pace.taken(10, t0);
        assert_eq!(
            pace.time_for(100, at(t0, 20)),
            Duration::from_millis(200),
            "the running batch is all we know"
        );
        pace.idle(at(t0, 40)); // 4 ms a row
        assert_eq!(pace.time_for(100, at(t0, 5000)), Duration::from_millis(400), "idle time is not counted");
        assert_eq!(pace.time_for(1_000_000, at(t0, 5000)), LONGEST);
        for _ in 0..200 {
            pace.taken(10, at(t0, 6000));
            pace.taken(10, at(t0, 6001)); // 0.1 ms a row
        }
        assert_eq!(pace.time_for(1, at(t0, 6001)), SHORTEST);
        let hundred = pace.time_for(1000, at(t0, 6001));
        assert!(hundred < Duration::from_millis(110), "the old pace is forgotten, got {hundred:?}");
        assert_eq!(pace.time_for(100, at(t0, 7001)), LONGEST, "a batch that hangs slows the estimate");
    }
}
