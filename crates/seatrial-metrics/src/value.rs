//! The two plain values: a counter that only grows and a gauge that goes both ways.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A count that only grows.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Counts one.
    pub fn inc(&self) {
        self.add(1);
    }

    /// Counts `n`.
    pub fn add(&self, n: u64) {
        self.0.fetch_add(n, Relaxed);
    }

    /// The count so far.
    pub fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// A value that goes up and down.
#[derive(Debug)]
pub struct Gauge(AtomicU64);

impl Default for Gauge {
    fn default() -> Self {
        Self(AtomicU64::new(0f64.to_bits()))
    }
}

impl Gauge {
    /// Replaces the value.
    pub fn set(&self, value: f64) {
        self.0.store(value.to_bits(), Relaxed);
    }

    /// Adds `delta`, which may be negative.
    pub fn add(&self, delta: f64) {
        add_f64(&self.0, delta);
    }

    /// The value now.
    pub fn get(&self) -> f64 {
        f64::from_bits(self.0.load(Relaxed))
    }
}

/// Adds to an `f64` kept as bits.
pub(crate) fn add_f64(cell: &AtomicU64, delta: f64) {
    let _ = cell.fetch_update(Relaxed, Relaxed, |bits| Some((f64::from_bits(bits) + delta).to_bits()));
}
