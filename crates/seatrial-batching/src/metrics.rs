//! What the queue of one model counts, under its metric names.

use std::sync::Arc;

use seatrial_metrics::{Counter, Gauge, Histogram, Labels, Registry, RegistryError};
use seatrial_types::Release;

/// Edges of the wait of a batch's oldest request, in seconds: from 100 microseconds, under which nobody waits, to
/// ten seconds, over which no deadline is likely to reach.
const WAIT_EDGES: [f64; 15] =
    [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0];

/// Edges of the rows of a batch. The same for every model, whatever its own limit: a family has one set of edges.
const ROW_EDGES: [f64; 11] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0];

/// Handles of one model's queue.
#[derive(Clone, Debug)]
pub struct BatchingMetrics {
    /// Rows waiting now.
    pub queued_rows: Arc<Gauge>,
    /// The most rows of a batch; its fill is the rows of a batch over this.
    pub max_rows: Arc<Gauge>,
    /// Rows of each released batch.
    pub batch_rows: Arc<Histogram>,
    /// How long the oldest request of each released batch waited.
    pub oldest_wait: Arc<Histogram>,
    /// Batches by reason of release, in the order of `Release::ALL`.
    pub released: [Arc<Counter>; Release::ALL.len()],
    /// Requests dropped since their deadline passed, before or in the queue.
    pub dropped_deadline: Arc<Counter>,
    /// Requests dropped since their client had gone.
    pub dropped_client_gone: Arc<Counter>,
    /// Requests refused since the queue was full.
    pub dropped_full: Arc<Counter>,
    /// Requests refused since they could not have been done by their deadline.
    pub dropped_late: Arc<Counter>,
    /// Positions along the length that requests came with, in released batches of models that are padded.
    pub positions_useful: Arc<Counter>,
    /// Positions that were added to make the rows of a batch equally long.
    pub positions_padding: Arc<Counter>,
    /// Time of runs now over their time at warm-up.
    pub cost_ratio: Arc<Gauge>,
}

impl BatchingMetrics {
    /// Registers the series of one model, named by `labels`.
    pub fn register(registry: &Registry, labels: Labels) -> Result<Self, RegistryError> {
        let released = |reason: Release| {
            let labels = [labels, &[("reason", reason.name())]].concat();
            registry.counter("seatrial_batching_released_total", "Batches released, by reason.", &labels)
        };
        let dropped = |reason: &str| {
            let labels = [labels, &[("reason", reason)]].concat();
            registry.counter("seatrial_batching_dropped_total", "Requests not run, by reason.", &labels)
        };
        let positions = |kind: &str| {
            let labels = [labels, &[("kind", kind)]].concat();
            let help = "Positions along the length in released batches of padded models, by kind.";
            registry.counter("seatrial_batching_positions_total", help, &labels)
        };
        let [full, idle, deadline, cost, bucket_age, single] = Release::ALL.map(released);
        Ok(Self {
            queued_rows: registry.gauge("seatrial_batching_queued_rows", "Rows waiting now.", labels)?,
            max_rows: registry.gauge("seatrial_batching_max_rows", "The most rows of a batch.", labels)?,
            batch_rows: registry.histogram(
                "seatrial_batching_batch_rows",
                "Rows of each released batch.",
                labels,
                &ROW_EDGES,
            )?,
            oldest_wait: registry.histogram(
                "seatrial_batching_oldest_wait_seconds",
                "Wait of the oldest request of each released batch.",
                labels,
                &WAIT_EDGES,
            )?,
            released: [full?, idle?, deadline?, cost?, bucket_age?, single?],
            dropped_deadline: dropped("deadline")?,
            dropped_client_gone: dropped("client_gone")?,
            dropped_full: dropped("full")?,
            dropped_late: dropped("late")?,
            positions_useful: positions("useful")?,
            positions_padding: positions("padding")?,
            cost_ratio: registry.gauge(
                "seatrial_batching_cost_ratio",
                "Time of runs now over their time at warm-up.",
                labels,
            )?,
        })
    }

    pub(crate) fn released(&self, reason: Release) -> &Counter {
        let [full, idle, deadline, cost, bucket_age, single] = &self.released;
        match reason {
            Release::Full => full,
            Release::Idle => idle,
            Release::Deadline => deadline,
            Release::Cost => cost,
            Release::BucketAge => bucket_age,
            Release::Single => single,
        }
    }
}
