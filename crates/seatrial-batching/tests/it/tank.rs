//! A former in dry dock: requests with a name, made-up time, and what came of each.

use std::time::{Duration, Instant};

use bytes::Bytes;
use seatrial_batching::{BatchingMetrics, Config, Policy};
use seatrial_metrics::Registry;
use seatrial_types::{Batch, BatchMode, DataType, Reply, Request, Stages, Tensor};
use tokio::sync::oneshot::Receiver;

pub const TIMEOUT: Duration = Duration::from_secs(1);

/// Full batching, at most 8 rows a batch and 100 in the queue.
pub const CONFIG: Config = Config {
    mode: BatchMode::Full,
    padding: None,
    max_rows: 8,
    queue_rows: 100,
    executors: 1,
    levels: 1,
    policy: Policy::Cost,
};

pub fn metrics() -> BatchingMetrics {
    BatchingMetrics::register(&Registry::new(), &[("model", "m")]).unwrap()
}

/// A request of `rows` rows of `inner` elements. Its name is the first four bytes of its data.
pub fn request(name: u32, shape: &[usize], now: Instant) -> (Request, Receiver<Reply>) {
    let (reply, answer) = tokio::sync::oneshot::channel();
    let data = Bytes::copy_from_slice(&name.to_le_bytes());
    let input = Tensor { datatype: DataType::F32, shape: shape.to_vec(), data };
    let rows = shape.first().copied().unwrap_or(1);
    let (inputs, deadline, stages) = (vec![input], now + TIMEOUT, Stages::start(now));
    (Request { inputs, rows, deadline, priority: 0, wire_bytes: 0, stages, reply }, answer)
}

pub fn name(request: &Request) -> u32 {
    u32::from_le_bytes(request.inputs[0].data[..4].try_into().unwrap())
}

pub fn names(batch: &Batch) -> Vec<u32> {
    batch.requests.iter().map(name).collect()
}
