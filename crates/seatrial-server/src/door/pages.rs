//! The routes that only tell: health, metadata, configuration, statistics, index, metrics. What they say is gathered
//! here; its bytes are made by `seatrial-protocol`.

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

/// The extensions of the protocol that work here; none is claimed that does not.
pub(super) const EXTENSIONS: [&str; 6] = [
    "binary_tensor_data",
    "classification",
    "model_configuration",
    "parameters",
    "schedule_policy",
    "statistics",
];

/// The text format of Prometheus.
const EXPOSITION: HeaderValue = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");

pub(super) fn server() -> Response<Whole> {
    json(server_metadata(env!("CARGO_PKG_VERSION"), &EXTENSIONS))
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
    for features in door.catalog.all().into_iter().filter_map(|model| model.features.as_ref()) {
        features.count();
    }
    let mut response = json(door.registry.render());
    response.headers_mut().insert(CONTENT_TYPE, EXPOSITION);
    response
}

pub(super) fn openapi(door: &Door) -> Response<Whole> {
    json(openapi::document(door.catalog.all().into_iter().map(AsRef::as_ref)))
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

pub(super) fn all_stats(door: &Door) -> Response<Whole> {
    stats(door.catalog.all().into_iter())
}

pub(super) fn model(door: &Door, name: &str, version: Option<&str>, verb: Verb) -> Result<Response<Whole>> {
    let model = door.catalog.find(name, version)?;
    Ok(match verb {
        Verb::Ready => {
            let ready = is_model_ready(door, model);
            answer(ready_status(ready), JSON, model_ready(&model.id, ready))
        }
        Verb::Config => json(model_config(&info(model, &[]))),
        Verb::Stats if version.is_none() => stats(door.catalog.versions(name)?.iter()),
        Verb::Stats => stats([model].into_iter()),
        // `Infer` has a handler of its own and never comes here.
        Verb::Metadata | Verb::Infer | Verb::Predict => {
            let versions: Vec<String> =
                door.catalog.versions(name)?.iter().map(|m| m.config.version.clone()).collect();
            json(model_metadata(&info(model, &versions)))
        }
    })
}

/// Whether a model takes requests.
pub(super) fn is_model_ready(door: &Door, model: &Model) -> bool {
    model.is_ready() && !door.drain.is_draining()
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
    let draining = door.drain.is_draining();
    let entry = |model: &Model| {
        let (state, reason) = match (model.is_ready(), draining) {
            (_, true) => (ModelState::Unloading, "the server is draining"),
            (true, false) => (ModelState::Ready, ""),
            (false, false) => (ModelState::Loading, "the model is being loaded"),
        };
        IndexEntry { id: model.id.clone(), state, reason: reason.to_owned() }
    };
    let entries = door.catalog.all().into_iter().map(|model| entry(model));
    entries.filter(|entry| !only_ready || entry.state == ModelState::Ready).collect()
}

fn stats<'a>(models: impl Iterator<Item = &'a std::sync::Arc<Model>>) -> Response<Whole> {
    let read: Vec<(&ModelId, ModelStats)> = models.map(|model| (&model.id, statistics(model))).collect();
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
