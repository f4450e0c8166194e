//! The pulse of one version: which of its executors run and since when, and when one last succeeded. Executors write
//! it, the watch over health reads it.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{
            AtomicBool, AtomicU64,
            Ordering::{Relaxed, Release},
        },
    },
    time::{Duration, Instant},
};

use seatrial_types::{Result, Runner, Tensor};

/// Since when an executor runs, in microseconds of the pulse; 0 while it does not.
type Since = Arc<AtomicU64>;

/// Written by the executors of one version.
pub(crate) struct Pulse {
    origin: Instant,
    last_ok: AtomicU64,
    executors: Mutex<Vec<Since>>,
    /// What is wrong, in words; written by the watch, read by doors.
    fault: Mutex<Option<String>>,
    faulty: AtomicBool,
    /// The longest run before readiness in microseconds.
    slowest: AtomicU64,
}

impl Pulse {
    pub(crate) fn new() -> Self {
        Self {
            origin: Instant::now(),
            last_ok: AtomicU64::new(0),
            executors: Mutex::new(Vec::new()),
            fault: Mutex::new(None),
            faulty: AtomicBool::new(false),
            slowest: AtomicU64::new(0),
        }
    }

    /// A runner that leaves its trace here.
    pub(crate) fn watched(self: &Arc<Self>, runner: Box<dyn Runner>) -> Box<dyn Runner> {
        let since = Since::default();
        self.executors.lock().unwrap_or_else(PoisonError::into_inner).push(since.clone());
        Box::new(Watched { runner, since, pulse: self.clone() })
    }

    pub(crate) fn note_slowest(&self, run: Duration) {
        self.slowest.fetch_max(u64::try_from(run.as_micros()).unwrap_or(u64::MAX), Relaxed);
    }

    pub(crate) fn slowest(&self) -> Duration {
        Duration::from_micros(self.slowest.load(Relaxed))
    }

    /// How long ago a run succeeded, or the version was made.
    pub(crate) fn silence(&self) -> Duration {
        Duration::from_micros(self.now().saturating_sub(self.last_ok.load(Relaxed)))
    }

    /// How long the longest of the runs that are under way has taken so far.
    pub(crate) fn longest_run(&self) -> Duration {
        let executors = self.executors.lock().unwrap_or_else(PoisonError::into_inner);
        let earliest = executors.iter().map(|since| since.load(Relaxed)).filter(|since| *since > 0).min();
        earliest.map_or(Duration::ZERO, |since| Duration::from_micros(self.now().saturating_sub(since)))
    }

    pub(crate) fn is_faulty(&self) -> bool {
        self.faulty.load(Relaxed)
    }

    pub(crate) fn fault(&self) -> Option<String> {
        self.fault.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Says what is wrong, or that nothing is; true when that is news.
    pub(crate) fn set_fault(&self, fault: Option<String>) -> bool {
        let faulty = fault.is_some();
        *self.fault.lock().unwrap_or_else(PoisonError::into_inner) = fault;
        self.faulty.swap(faulty, Release) != faulty
    }

    fn now(&self) -> u64 {
        u64::try_from(self.origin.elapsed().as_micros()).unwrap_or(u64::MAX).max(1)
    }
}

struct Watched {
    runner: Box<dyn Runner>,
    since: Since,
    pulse: Arc<Pulse>,
}

/// Ends a run in the books also when it panics.
struct Running<'a>(&'a AtomicU64);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.store(0, Relaxed);
    }
}

impl Runner for Watched {
    fn run(&mut self, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
        self.since.store(self.pulse.now(), Relaxed);
        let _running = Running(&self.since);
        let outcome = self.runner.run(inputs);
        if outcome.is_ok() {
            self.pulse.last_ok.store(self.pulse.now(), Relaxed);
        }
        outcome
    }
}
