//! Metadata, configuration, statistics and the repository index.

use bytes::Bytes;
use seatrial_protocol::{
    BatchStats, IndexEntry, ModelId, ModelInfo, ModelState, ModelStats, Tally, health, model_config,
    model_metadata, model_ready, model_stats, repository_index, server_metadata,
};
use seatrial_types::{BatchMode, Batching, DataType, Signature};
use serde_json::{Value, json};

use crate::signatures::{echo, spec};

fn parsed(body: &Bytes) -> Value {
    serde_json::from_slice(body).unwrap()
}

fn id() -> ModelId {
    ModelId { name: "ctr".into(), version: "1".into() }
}

fn described(signature: &Signature, mode: BatchMode, describe: impl Fn(&ModelInfo<'_>) -> Bytes) -> Value {
    let batching =
        Batching { mode, max_rows: 64, why: "rows independent".into(), padding: None, preferred: None };
    let versions = ["1".to_owned()];
    parsed(&describe(&ModelInfo {
        id: &id(),
        versions: &versions,
        semantic_version: "1.0.0",
        digest: "abc",
        signature,
        batching: &batching,
    }))
}

#[test]
fn the_server_says_only_what_it_has() {
    assert_eq!(
        parsed(&server_metadata("0.1.0", &["binary_tensor_data"])),
        json!({"name": "seatrial", "version": "0.1.0", "extensions": ["binary_tensor_data"]})
    );
    assert_eq!(parsed(&health(false, true)), json!({"ready": false, "live": true}));
    assert_eq!(parsed(&model_ready(&id(), true)), json!({"name": "ctr", "version": "1", "ready": true}));
}

#[test]
fn metadata_shows_free_dimensions_and_why_it_is_batched() {
    let mut signature = echo(DataType::I64, &["batch<64", "2"]);
    signature.outputs[0].labels = Some(vec!["a".into(), "b".into()]);
    signature.inputs[0].range = Some((0.0, 7.0));
    let metadata = described(&signature, BatchMode::EqualLength, model_metadata);
    assert_eq!(
        metadata,
        json!({
            "name": "ctr", "versions": ["1"], "platform": "onnxruntime_onnx",
            "inputs": [{"name": "x", "datatype": "INT64", "shape": [-1, 2], "parameters": {"range": [0, 7]}}],
            "outputs": [{"name": "y", "datatype": "INT64", "shape": [-1, 2], "parameters": {"labels": ["a", "b"]}}],
            "parameters": {"batching": "equal-length", "batching_why": "rows independent", "max_rows": 64,
                           "digest": "abc", "semantic_version": "1.0.0"},
        })
    );
}

#[test]
fn the_configuration_leaves_the_batch_out_when_it_batches() {
    let signature = echo(DataType::Bytes, &["batch", "seq", "2"]);
    let config = described(&signature, BatchMode::Full, model_config);
    assert_eq!(config["max_batch_size"], 64);
    assert_eq!(config["input"], json!([{"name": "x", "data_type": "TYPE_STRING", "dims": [-1, 2]}]));
    assert!(config["dynamic_batching"].is_object());
    let config = described(&signature, BatchMode::None, model_config);
    assert_eq!((&config["max_batch_size"], &config["dynamic_batching"]), (&json!(0), &Value::Null));
    assert_eq!(config["output"][0]["dims"], json!([-1, -1, 2]));

    let mut scalar = echo(DataType::F32, &["batch", "2"]);
    scalar.outputs.push(spec("mean", DataType::F32, &[]));
    let config = described(&scalar, BatchMode::Full, model_config);
    assert_eq!(config["max_batch_size"], 0, "an output without rows has no place in Triton's batches");
    assert_eq!(config["output"][1], json!({"name": "mean", "data_type": "TYPE_FP32", "dims": []}));
}

#[test]
fn statistics_have_the_shape_that_clients_read() {
    let tally = Tally { count: 3, ns: 900 };
    let stats = ModelStats {
        last_inference_ms: 5,
        inference_count: 12,
        execution_count: 3,
        success: tally,
        compute_infer: tally,
        batches: vec![BatchStats { batch_size: 4, compute_infer: tally, ..BatchStats::default() }],
        ..ModelStats::default()
    };
    let entry = &parsed(&model_stats(&[(&id(), &stats)]))["model_stats"][0];
    assert_eq!(
        (&entry["name"], &entry["version"], &entry["last_inference"]),
        (&json!("ctr"), &json!("1"), &json!(5))
    );
    assert_eq!(entry["inference_stats"]["success"], json!({"count": 3, "ns": 900}));
    for key in [
        "success",
        "fail",
        "queue",
        "compute_input",
        "compute_infer",
        "compute_output",
        "cache_hit",
        "cache_miss",
    ] {
        assert!(entry["inference_stats"][key]["count"].is_u64(), "{key}");
    }
    assert_eq!(entry["batch_stats"][0]["compute_infer"], json!({"count": 3, "ns": 900}));
    assert_eq!(entry["batch_stats"][0]["batch_size"], 4);
}

#[test]
fn the_index_lists_states_in_capitals() {
    let entry = IndexEntry { id: id(), state: ModelState::Unavailable, reason: "file is gone".into() };
    assert_eq!(
        parsed(&repository_index(&[entry])),
        json!([{"name": "ctr", "version": "1", "state": "UNAVAILABLE", "reason": "file is gone"}])
    );
}
