//! What the server says about itself and its models: metadata, configuration, readiness, the repository index.

use bytes::Bytes;
use seatrial_types::{BatchMode, Batching, DataType, Dim, Error, Signature, TensorSpec};
use serde::Serialize;
use serde_json::{Value, json};

use crate::encode::ModelId;

/// Triton's name for models that ONNX Runtime runs; its clients look at it.
pub(crate) const PLATFORM: &str = "onnxruntime_onnx";

/// What descriptions of one model are made from.
#[derive(Clone, Copy, Debug)]
pub struct ModelInfo<'a> {
    /// The version that is described, as it is called on the wire.
    pub id: &'a ModelId,
    /// Every version that can be asked for.
    pub versions: &'a [String],
    /// Version of the package, for people.
    pub semantic_version: &'a str,
    /// Digest of the package.
    pub digest: &'a str,
    /// Inputs and outputs.
    pub signature: &'a Signature,
    /// How requests are joined, and why.
    pub batching: &'a Batching,
}

/// The body of an error: the text, and the code for programs.
pub fn error_body(error: &Error) -> Bytes {
    body(&json!({"error": error.message, "code": error.code.as_str()}))
}

/// Name, version and those extensions of the protocol that work.
pub fn server_metadata(version: &str, extensions: &[&str]) -> Bytes {
    body(&json!({"name": "seatrial", "version": version, "extensions": extensions}))
}

/// Both answers in one body: clients of either path parse it, and some read the one key, some the other.
pub fn health(ready: bool, live: bool) -> Bytes {
    body(&json!({"ready": ready, "live": live}))
}

/// Whether one model answers.
pub fn model_ready(id: &ModelId, ready: bool) -> Bytes {
    body(&json!({"name": id.name, "version": id.version, "ready": ready}))
}

/// Inputs and outputs with -1 for free dimensions, and what the package says about itself.
pub fn model_metadata(model: &ModelInfo<'_>) -> Bytes {
    let tensors = |specs: &[TensorSpec]| specs.iter().map(tensor_metadata).collect::<Vec<_>>();
    body(&json!({
        "name": model.id.name,
        "versions": model.versions,
        "platform": PLATFORM,
        "inputs": tensors(&model.signature.inputs),
        "outputs": tensors(&model.signature.outputs),
        "parameters": {
            "batching": mode_name(model.batching.mode),
            "batching_why": model.batching.why,
            "max_rows": model.batching.max_rows,
            "digest": model.digest,
            "semantic_version": model.semantic_version,
        },
    }))
}

fn tensor_metadata(spec: &TensorSpec) -> Value {
    let mut tensor = json!({"name": spec.name, "datatype": spec.datatype, "shape": sizes(&spec.shape)});
    let mut parameters = serde_json::Map::new();
    if let Some(labels) = &spec.labels {
        parameters.insert("labels".into(), json!(labels));
    }
    if let Some((low, high)) = spec.range {
        parameters.insert("range".into(), json!([bound(spec.datatype, low), bound(spec.datatype, high)]));
    }
    if let (false, Some(object)) = (parameters.is_empty(), tensor.as_object_mut()) {
        object.insert("parameters".into(), Value::Object(parameters));
    }
    tensor
}

/// A bound of a range as its type writes numbers: `7`, not `7.0`, for a whole number type.
fn bound(datatype: DataType, value: f64) -> Value {
    let float = matches!(datatype, DataType::F16 | DataType::BF16 | DataType::F32 | DataType::F64);
    if float || value.fract() != 0.0 { json!(value) } else { json!(value as i64) }
}

const fn mode_name(mode: BatchMode) -> &'static str {
    match mode {
        BatchMode::Full => "full",
        BatchMode::EqualLength => "equal-length",
        BatchMode::None => "none",
    }
}

pub(crate) fn sizes(shape: &[Dim]) -> Vec<i64> {
    shape
        .iter()
        .map(|dim| if let Dim::Fixed(size) = dim { i64::try_from(*size).unwrap_or(-1) } else { -1 })
        .collect()
}

/// The configuration in Triton's words, without the batch dimension when requests are joined.
pub fn model_config(model: &ModelInfo<'_>) -> Bytes {
    let batched = is_batched(model);
    let dims =
        |specs: &[TensorSpec]| specs.iter().map(|spec| tensor_config(spec, batched)).collect::<Vec<_>>();
    let mut config = json!({
        "name": model.id.name,
        "platform": PLATFORM,
        "backend": "onnxruntime",
        "version_policy": {"latest": {"num_versions": 1}},
        "max_batch_size": if batched { model.batching.max_rows } else { 0 },
        "input": dims(&model.signature.inputs),
        "output": dims(&model.signature.outputs),
        "model_transaction_policy": {"decoupled": false},
    });
    if let (true, Some(object)) = (batched, config.as_object_mut()) {
        let (rows, delay_us) = preferred(model.batching);
        let batching = json!({"preferred_batch_size": rows, "max_queue_delay_microseconds": delay_us});
        object.insert("dynamic_batching".into(), batching);
    }
    body(&config)
}

/// Joined requests need a free first dimension everywhere; Triton's words have no other batching.
pub(crate) fn is_batched(model: &ModelInfo<'_>) -> bool {
    let mut specs = model.signature.inputs.iter().chain(&model.signature.outputs);
    model.batching.mode != BatchMode::None
        && specs.all(|spec| matches!(spec.shape.first(), Some(Dim::Free { .. })))
}

/// Sizes worth waiting for and the longest wait in microseconds, where the policy has them.
pub(crate) fn preferred(batching: &Batching) -> (&[usize], u64) {
    let fixed = batching.preferred.as_ref();
    fixed.map_or((&[], 0), |fixed| (&fixed.rows, fixed.max_delay_ms.saturating_mul(1000)))
}

fn tensor_config(spec: &TensorSpec, batched: bool) -> Value {
    let dims: Vec<i64> = sizes(&spec.shape).into_iter().skip(usize::from(batched)).collect();
    json!({"name": spec.name, "data_type": config_type(spec.datatype), "dims": dims})
}

fn config_type(datatype: DataType) -> String {
    match datatype {
        DataType::Bytes => "TYPE_STRING".to_owned(),
        other => format!("TYPE_{other}"),
    }
}

/// Whether a model of the repository can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum ModelState {
    /// It answers.
    Ready,
    /// It does not answer; the reason says why.
    Unavailable,
    /// It will answer soon.
    Loading,
    /// It no longer takes requests.
    Unloading,
}

impl ModelState {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Ready => "READY",
            Self::Unavailable => "UNAVAILABLE",
            Self::Loading => "LOADING",
            Self::Unloading => "UNLOADING",
        }
    }
}

/// One line of the repository index.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct IndexEntry {
    /// Which model and version.
    #[serde(flatten)]
    pub id: ModelId,
    /// Its state.
    pub state: ModelState,
    /// Why it is in this state, if there is something to say.
    pub reason: String,
}

/// The repository index.
pub fn repository_index(entries: &[IndexEntry]) -> Bytes {
    body(&entries)
}

/// JSON of values whose keys are all strings, which is why it cannot fail.
pub(crate) fn body<T: Serialize + ?Sized>(value: &T) -> Bytes {
    Bytes::from(serde_json::to_vec(value).unwrap_or_default())
}
