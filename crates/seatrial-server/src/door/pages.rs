//! The routes that only tell: health, metadata, configuration, statistics, index, metrics. What they say is gathered
//! here; its bytes are made by `seatrial-protocol`.

use std::sync::Arc;

use bytes::Bytes;
use hyper::{
    Response, StatusCode,
    header::{CONTENT_TYPE, HeaderValue},
};
use seatrial_protocol::{
    IndexEntry, ModelId, ModelInfo, ModelState, ModelStats, Tally, health, model_config, model_metadata,
    model_ready, model_stats, repository_index, server_metadata,
};
use seatrial_types::{Error, Result};
use serde_json::{Map, Value};

use super::{
    Door,
    answer::{JSON, Whole, answer, json},
    openapi,
    routes::Verb,
};
use crate::model::Model;

/// The extensions of the protocol that work at every door; none is claimed that does not.
pub(super) const EXTENSIONS: &[&str] = &[
    "binary_tensor_data",
    "classification",
    "model_configuration",
    "parameters",
    "schedule_policy",
    "statistics",
];

/// Loading and unloading, which only HTTP offers, and only where somebody reads packages.
const LOADS: &str = "model_repository";

/// The text format of Prometheus.
const EXPOSITION: HeaderValue = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");

pub(super) fn server(door: &Door) -> Response<Whole> {
    let loads = door.repository.takes_loads().then_some(LOADS);
    let extensions: Vec<&str> = EXTENSIONS.iter().copied().chain(loads).collect();
    json(server_metadata(env!("CARGO_PKG_VERSION"), &extensions))
}

/// Alive as long as it answers.
pub(super) fn live(door: &Door) -> Response<Whole> {
    json(health(door.is_ready(), true))
}

pub(super) fn ready(door: &Door) -> Response<Whole> {
    let ready = door.is_ready();
    answer(ready_status(ready), JSON, health(ready, true))
}

pub(super) fn metrics(door: &Door) -> Response<Whole> {
    for features in door.catalog.all().iter().filter_map(|model| model.features.as_ref()) {
        features.count();
    }
    let mut response = json(door.registry.render());
    response.headers_mut().insert(CONTENT_TYPE, EXPOSITION);
    response
}

pub(super) fn openapi(door: &Door) -> Response<Whole> {
    let models = door.catalog.all();
    json(openapi::document(models.iter().map(AsRef::as_ref), door.repository.takes_loads()))
}

/// Names and states in the form of the repository index.
pub(super) fn models(door: &Door) -> Response<Whole> {
    json(repository_index(&entries(door, false)))
}

/// The repository index; `{"ready": true}` leaves out what is not.
pub(super) fn index(door: &Door, body: &[u8]) -> Result<Response<Whole>> {
    Ok(json(repository_index(&entries(door, only_ready(body)?))))
}

/// Reads the filter by hand: a derived reader would take a list for an object.
fn only_ready(body: &[u8]) -> Result<bool> {
    if body.is_empty() {
        return Ok(false);
    }
    let wrong = |why: String| Error::invalid(format!("the body of the repository index is wrong: {why}"));
    let filter: Map<String, Value> = serde_json::from_slice(body).map_err(|e| wrong(e.to_string()))?;
    match filter.get("ready") {
        None => Ok(false),
        Some(Value::Bool(ready)) => Ok(*ready),
        Some(_) => Err(wrong("`ready` must be true or false".to_owned())),
    }
}

/// Loads a version or makes a resident one active; the parameter `version` chooses one.
pub(super) async fn load(door: &Door, name: &str, body: &[u8]) -> Result<Response<Whole>> {
    let parameters = parameters(body)?;
    if let Some(key) = parameters.keys().find(|key| *key == "config" || key.starts_with("file:")) {
        let text = format!("the parameter `{key}` is not taken: what is served comes from a package");
        return Err(Error::invalid(text));
    }
    door.repository.load(name, version(&parameters)?).await?;
    Ok(json(Bytes::new()))
}

/// Unloads one version, or all.
pub(super) async fn unload(door: &Door, name: &str, body: &[u8]) -> Result<Response<Whole>> {
    door.repository.unload(name, version(&parameters(body)?)?).await?;
    Ok(json(Bytes::new()))
}

/// The parameters of a call to load or unload.
fn parameters(body: &[u8]) -> Result<Map<String, Value>> {
    if body.is_empty() {
        return Ok(Map::new());
    }
    let wrong = |why: String| Error::invalid(format!("the body is wrong: {why}"));
    let mut call: Map<String, Value> = serde_json::from_slice(body).map_err(|e| wrong(e.to_string()))?;
    match call.remove("parameters") {
        None | Some(Value::Null) => Ok(Map::new()),
        Some(Value::Object(parameters)) => Ok(parameters),
        Some(_) => Err(wrong("`parameters` must be an object".to_owned())),
    }
}

fn version(parameters: &Map<String, Value>) -> Result<Option<&str>> {
    match parameters.get("version") {
        None => Ok(None),
        Some(Value::String(version)) => Ok(Some(version)),
        Some(other) => {
            Err(Error::invalid(format!("the parameter `version` is `{other}`: expected a string")))
        }
    }
}

pub(super) fn all_stats(door: &Door) -> Response<Whole> {
    stats(&door.catalog.all())
}

pub(super) fn model(door: &Door, name: &str, version: Option<&str>, verb: Verb) -> Result<Response<Whole>> {
    let model = door.catalog.find(name, version)?;
    Ok(match verb {
        Verb::Ready => {
            let ready = is_model_ready(door, &model);
            answer(ready_status(ready), JSON, model_ready(&model.id, ready))
        }
        Verb::Config => json(model_config(&info(&model, &[]))),
        Verb::Stats if version.is_none() => stats(&door.catalog.versions(name)?),
        Verb::Stats => stats(&[model]),
        // `Infer` has a handler of its own and never comes here.
        Verb::Metadata | Verb::Infer | Verb::Predict => {
            let versions: Vec<String> =
                door.catalog.versions(name)?.iter().map(|m| m.config.version.clone()).collect();
            json(model_metadata(&info(&model, &versions)))
        }
    })
}

/// Whether a model takes requests.
pub(super) fn is_model_ready(door: &Door, model: &Model) -> bool {
    model.works() && !door.drain.is_draining()
}

fn ready_status(ready: bool) -> StatusCode {
    if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE }
}

/// What descriptions of a model are made from.
pub(super) fn info<'a>(model: &'a Model, versions: &'a [String]) -> ModelInfo<'a> {
    let config = &model.config;
    ModelInfo {
        id: &model.id,
        versions,
        semantic_version: &config.version,
        digest: &config.digest,
        signature: &config.signature,
        batching: &config.batching,
    }
}

/// The repository index.
pub(super) fn entries(door: &Door, only_ready: bool) -> Vec<IndexEntry> {
    let mut entries = door.catalog.index();
    if door.drain.is_draining() {
        for entry in &mut entries {
            entry.state = ModelState::Unloading;
            "the server is draining".clone_into(&mut entry.reason);
        }
    }
    entries.retain(|entry| !only_ready || entry.state == ModelState::Ready);
    entries
}

fn stats(models: &[Arc<Model>]) -> Response<Whole> {
    let read: Vec<(&ModelId, ModelStats)> =
        models.iter().map(|model| (&model.id, statistics(model))).collect();
    let lines: Vec<(&ModelId, &ModelStats)> = read.iter().map(|(id, stats)| (*id, stats)).collect();
    json(model_stats(&lines))
}

/// What was counted of one model.
pub(super) fn statistics(model: &Model) -> ModelStats {
    let totals = model.metrics.statistics();
    let per_request = |ns| Tally { count: totals.success.0, ns };
    ModelStats {
        last_inference_ms: totals.last_inference_ms,
        inference_count: totals.rows,
        execution_count: model.batches.batch_rows.snapshot().count(),
        success: Tally { count: totals.success.0, ns: totals.success.1 },
        fail: Tally { count: totals.fail.0, ns: totals.fail.1 },
        queue: per_request(totals.queue_ns),
        compute_input: per_request(totals.input_ns),
        compute_infer: per_request(totals.infer_ns),
        compute_output: per_request(totals.output_ns),
        batches: Vec::new(),
    }
}
