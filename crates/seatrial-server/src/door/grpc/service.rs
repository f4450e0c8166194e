//! The calls that only tell: health, metadata, configuration, statistics, index. What they tell is gathered where it is
//! for HTTP.

use bytes::Bytes;
use prost::Message;
use seatrial_protocol::{
    message::{model_config_message, model_metadata_message, model_stats_message, repository_index_message},
    proto::{
        health::{HealthCheckRequest, HealthCheckResponse, health_check_response::ServingStatus},
        inference as proto,
    },
    reflection::services,
};
use seatrial_types::{Code, Error, Result};

use super::{
    super::{
        Door,
        pages::{EXTENSIONS, entries, info, is_model_ready, statistics},
    },
    frames::{Coding, Packed, close_frame, open_frame},
};
use crate::model::Model;

/// The largest message of a call that only asks.
pub(super) const SMALL: usize = 64 << 10;

/// A call that has one small message each way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Question {
    Live,
    Ready,
    ModelReady,
    Server,
    Model,
    Config,
    Statistics,
    Index,
    Health,
}

/// Answers a question.
pub(super) fn answer(door: &Door, question: Question, packed: Packed, coding: Coding) -> Result<Bytes> {
    let message = packed.unpack(SMALL)?;
    match question {
        Question::Live => frame_of(&proto::ServerLiveResponse { live: true }, coding),
        Question::Ready => frame_of(&proto::ServerReadyResponse { ready: door.is_ready() }, coding),
        Question::ModelReady => {
            let asked: proto::ModelReadyRequest = read(message)?;
            // Triton's clients expect no error for a model that is not there.
            let ready =
                find(door, &asked.name, &asked.version).is_ok_and(|model| is_model_ready(door, &model));
            frame_of(&proto::ModelReadyResponse { ready }, coding)
        }
        Question::Server => frame_of(&server(), coding),
        Question::Model => {
            let asked: proto::ModelMetadataRequest = read(message)?;
            let model = find(door, &asked.name, &asked.version)?;
            let versions = versions(door, &asked.name)?;
            frame_of(&model_metadata_message(&info(&model, &versions)), coding)
        }
        Question::Config => {
            let asked: proto::ModelConfigRequest = read(message)?;
            let model = find(door, &asked.name, &asked.version)?;
            frame_of(&model_config_message(&info(&model, &[])), coding)
        }
        Question::Statistics => frame_of(&stats(door, &read(message)?)?, coding),
        Question::Index => {
            let asked: proto::RepositoryIndexRequest = read(message)?;
            frame_of(&repository_index_message(&entries(door, asked.ready)), coding)
        }
        Question::Health => {
            let asked: HealthCheckRequest = read(message)?;
            let health = health(door, &asked.service);
            if health.status() == ServingStatus::ServiceUnknown {
                let text = format!("there is no service `{}` on this server", asked.service);
                return Err(Error::new(Code::NotFound, text));
            }
            frame_of(&health, coding)
        }
    }
}

/// A message as a frame.
pub(super) fn frame_of(message: &impl Message, coding: Coding) -> Result<Bytes> {
    let mut frame = open_frame();
    frame.extend_from_slice(&message.encode_to_vec());
    close_frame(frame, coding)
}

/// Whether a service serves. The server as a whole has the empty name.
pub(super) fn health(door: &Door, service: &str) -> HealthCheckResponse {
    let known = service.is_empty() || services().iter().any(|name| name == service);
    let status = match (known, door.is_ready()) {
        (false, _) => ServingStatus::ServiceUnknown,
        (true, true) => ServingStatus::Serving,
        (true, false) => ServingStatus::NotServing,
    };
    HealthCheckResponse { status: status.into() }
}

/// The question of a call that goes on with the answers.
pub(super) fn watched(packed: Packed) -> Result<String> {
    read::<HealthCheckRequest>(packed.unpack(SMALL)?).map(|request| request.service)
}

fn read<M: Message + Default>(message: Bytes) -> Result<M> {
    M::decode(message).map_err(|e| Error::invalid(format!("the protobuf message is malformed: {e}")))
}

fn server() -> proto::ServerMetadataResponse {
    proto::ServerMetadataResponse {
        name: "seatrial".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        extensions: EXTENSIONS.iter().map(|&name| name.to_owned()).collect(),
    }
}

/// An empty version leaves the choice to the server.
fn find(door: &Door, name: &str, version: &str) -> Result<std::sync::Arc<Model>> {
    door.catalog.find(name, Some(version).filter(|version| !version.is_empty()))
}

fn versions(door: &Door, name: &str) -> Result<Vec<String>> {
    Ok(door.catalog.versions(name)?.iter().map(|model| model.config.version.clone()).collect())
}

fn stats(door: &Door, asked: &proto::ModelStatisticsRequest) -> Result<proto::ModelStatisticsResponse> {
    let models = match (asked.name.as_str(), asked.version.as_str()) {
        ("", _) => door.catalog.all(),
        (name, "") => door.catalog.versions(name)?,
        (name, version) => vec![door.catalog.find(name, Some(version))?],
    };
    let read: Vec<_> = models.iter().map(|model| (&model.id, statistics(model))).collect();
    let lines: Vec<_> = read.iter().map(|(id, stats)| (*id, stats)).collect();
    Ok(model_stats_message(&lines))
}
