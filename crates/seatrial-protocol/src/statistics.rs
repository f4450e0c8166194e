//! Model statistics in the words of Triton's extension, from plain counters.

use bytes::Bytes;
use serde::Serialize;
use serde_json::{Map, json};

use crate::{description::body, encode::ModelId};

/// How often something happened and how long it took in all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Tally {
    /// Times.
    pub count: u64,
    /// Nanoseconds in all.
    pub ns: u64,
}

/// The counters of one model version since it was loaded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModelStats {
    /// Milliseconds since 1970 of the last request; 0 when there was none.
    pub last_inference_ms: u64,
    /// Rows that went through the model.
    pub inference_count: u64,
    /// Runs of the model. `inference_count / execution_count` is the mean batch.
    pub execution_count: u64,
    /// Requests answered, from arrival to answer.
    pub success: Tally,
    /// Requests failed.
    pub fail: Tally,
    /// Time in the queue.
    pub queue: Tally,
    /// Time to join inputs. The three compute counts must be equal, or `perf_analyzer` refuses them.
    pub compute_input: Tally,
    /// Time in the model.
    pub compute_infer: Tally,
    /// Time to split outputs.
    pub compute_output: Tally,
    /// The same by size of batch, as far as it was counted.
    pub batches: Vec<BatchStats>,
}

/// The counters of one size of batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct BatchStats {
    /// Rows of the batch.
    pub batch_size: u64,
    /// Time to join inputs.
    pub compute_input: Tally,
    /// Time in the model.
    pub compute_infer: Tally,
    /// Time to split outputs.
    pub compute_output: Tally,
}

/// Statistics of the models that were asked for.
pub fn model_stats(models: &[(&ModelId, &ModelStats)]) -> Bytes {
    let entries: Vec<_> = models
        .iter()
        .map(|(id, stats)| {
            json!({
                "name": id.name,
                "version": id.version,
                "last_inference": stats.last_inference_ms,
                "inference_count": stats.inference_count,
                "execution_count": stats.execution_count,
                "inference_stats": {
                    "success": stats.success,
                    "fail": stats.fail,
                    "queue": stats.queue,
                    "compute_input": stats.compute_input,
                    "compute_infer": stats.compute_infer,
                    "compute_output": stats.compute_output,
                    "cache_hit": Tally::default(),
                    "cache_miss": Tally::default(),
                },
                "response_stats": Map::new(),
                "batch_stats": stats.batches,
                "memory_usage": [],
            })
        })
        .collect();
    body(&json!({"model_stats": entries}))
}
