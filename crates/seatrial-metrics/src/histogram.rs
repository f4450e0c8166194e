//! A histogram with fixed bucket edges. The total is the sum of the buckets and is not stored beside them, so every
//! reading agrees with itself however many threads record meanwhile.

use std::{
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Duration,
};

use crate::value::add_f64;

/// Counts of observations by bucket. A value on an edge belongs to the bucket that the edge closes (`le`).
#[derive(Debug)]
pub struct Histogram {
    edges: Box<[f64]>,
    /// One more than `edges`: the last one holds what lies above all edges.
    buckets: Box<[AtomicU64]>,
    sum: AtomicU64,
}

/// One reading of a histogram.
#[derive(Clone, Debug, PartialEq)]
pub struct Snapshot {
    /// Upper edges, ascending, without the infinite one.
    pub edges: Vec<f64>,
    /// Observations in each bucket on its own; one more than `edges`.
    pub counts: Vec<u64>,
    /// Sum of all observed values.
    pub sum: f64,
}

impl Histogram {
    /// A histogram that belongs to no registry. `edges` must be ascending.
    pub fn new(edges: &[f64]) -> Self {
        let buckets = edges.iter().map(|_| AtomicU64::new(0)).chain([AtomicU64::new(0)]).collect();
        Self { edges: edges.into(), buckets, sum: AtomicU64::new(0f64.to_bits()) }
    }

    /// Records one value. `NaN` is not a measurement and is left out.
    pub fn observe(&self, value: f64) {
        if value.is_nan() {
            return;
        }
        let bucket = self.edges.partition_point(|edge| *edge < value);
        if let Some(count) = self.buckets.get(bucket) {
            count.fetch_add(1, Relaxed);
        }
        add_f64(&self.sum, value);
    }

    /// Records a time in seconds.
    pub fn observe_duration(&self, time: Duration) {
        self.observe(time.as_secs_f64());
    }

    /// The state now. `counts` and what is derived from them agree; `sum` may run ahead or behind by the
    /// observations that are being recorded at this moment.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot {
            edges: self.edges.to_vec(),
            counts: self.buckets.iter().map(|count| count.load(Relaxed)).collect(),
            sum: f64::from_bits(self.sum.load(Relaxed)),
        }
    }

    pub(crate) fn edges(&self) -> &[f64] {
        &self.edges
    }
}

impl Snapshot {
    /// Number of observations.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Observations at or below each edge, the infinite one last: the `_bucket` values of the text format.
    pub fn cumulative(&self) -> impl Iterator<Item = (f64, u64)> + '_ {
        let edges = self.edges.iter().copied().chain([f64::INFINITY]);
        edges.zip(&self.counts).scan(0, |total, (edge, count)| {
            *total += count;
            Some((edge, *total))
        })
    }
}

/// Whether edges may close buckets: at least one, finite and ascending.
pub(crate) fn ascending(edges: &[f64]) -> bool {
    !edges.is_empty() && edges.iter().all(|e| e.is_finite()) && edges.is_sorted_by(|a, b| a < b)
}
