//! One inference message: decoding, queue, reply, encoding. The way through the engine is that of HTTP.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use hyper::{HeaderMap, StatusCode};
use seatrial_protocol::{
    AnswerShape, InferCall,
    message::{Envelope, InferMessage, encode_message, stream_error},
};
use seatrial_types::{Error, Request, Result, Stage, Stages, Tensor};
use tokio::sync::oneshot;

use super::{
    super::{
        InHand,
        answer::status_of,
        infer::{INLINE_BYTES, LONGEST, aside, execute, on_request},
    },
    frames::{Coding, Packed, close_frame, open_frame},
};
use crate::{
    metrics::{Finish, Inference},
    model::Model,
};

/// What the header of a call says about all of its messages.
#[derive(Clone, Debug)]
pub(super) struct Terms {
    pub(super) coding: Coding,
    /// When the whole call has lost its worth.
    pub(super) until: Option<Instant>,
}

impl Terms {
    pub(super) fn of(headers: &HeaderMap, now: Instant) -> Result<Self> {
        let until = timeout(headers)?.map(|timeout| now + timeout.min(LONGEST));
        Ok(Self { coding: Coding::of(headers)?, until })
    }

    /// When the answer loses its worth: what the message says, else the model's own time, and never after the call.
    fn deadline(&self, call: Option<&InferCall>, model: &Model, started: Instant) -> Instant {
        let told = call.and_then(|call| call.timeout).map(|timeout| started + timeout.min(LONGEST));
        match (told, self.until) {
            (Some(told), Some(until)) => told.min(until),
            (told, until) => told.or(until).unwrap_or(started + model.timeout()),
        }
    }
}

/// How an inference ended.
pub(super) struct Outcome {
    /// The frame of the answer.
    pub(super) result: Result<Bytes>,
    /// The client's own name for the request, as far as it was read.
    id: String,
    model: Option<Arc<Model>>,
    stages: Stages,
    rows: usize,
}

impl Outcome {
    /// What remains to be counted.
    pub(super) fn finish(&self, hand: &InHand) -> Finish {
        let (stages, rows) = (self.stages, self.rows);
        let inference = |model: &Arc<Model>| Inference { metrics: model.metrics.clone(), stages, rows };
        Finish {
            requests: hand.requests.clone(),
            status: self.result.as_ref().map_or_else(|error| status_of(error.code), |_| StatusCode::OK),
            inference: self.model.as_ref().map(inference),
        }
    }

    /// Adds what only comes on request.
    pub(super) fn on_request(&self, asked: &HeaderMap, headers: &mut HeaderMap) {
        if let Some(model) = &self.model {
            on_request(asked, headers, model, &self.stages);
        }
    }

    /// The frame for a stream, where an error is a message like any other.
    pub(super) fn into_frame(self) -> Bytes {
        self.result
            .or_else(|error| {
                let mut frame = open_frame();
                frame.extend_from_slice(&stream_error(&error.message, &self.id));
                close_frame(frame, Coding::Identity)
            })
            .unwrap_or_default()
    }
}

/// Answers one message.
pub(super) async fn infer(
    hand: &mut InHand,
    terms: &Terms,
    (packed, envelope): (Packed, Envelope),
    stages: Stages,
) -> Outcome {
    let mut outcome = Outcome { result: Ok(Bytes::new()), id: String::new(), model: None, stages, rows: 0 };
    let result = run(hand, terms, (packed, envelope), &mut outcome).await;
    hand.submitted = false;
    outcome.result = result;
    outcome.stages.mark(Stage::Encode, Instant::now());
    outcome
}

async fn run(
    hand: &mut InHand,
    terms: &Terms,
    (packed, envelope): (Packed, Envelope),
    outcome: &mut Outcome,
) -> Result<Bytes> {
    let limit = hand.door.limits.max_body_bytes;
    hand.door.metrics.bytes_in.add(packed.bytes.len() as u64);
    let message = open(packed, limit).await?;
    message.id().clone_into(&mut outcome.id);
    let model = hand.door.catalog.find(message.model_name(), message.model_version())?;
    outcome.model = Some(model.clone());
    hand.requests = model.metrics.requests.clone();
    model.require_ready()?;
    let started = outcome.stages.started();
    let wire_bytes = message.size();
    model.queue.would_refuse(wire_bytes, terms.deadline(None, &model, started)).map_or(Ok(()), Err)?;
    let call = decode(&model, message).await?;
    outcome.stages.mark(Stage::Parse, Instant::now());
    let deadline = terms.deadline(Some(&call), &model, started);
    let (rows, priority) = (call.rows, call.priority);
    let (inputs, shape) = call.into_parts();
    let (reply, answer) = oneshot::channel();
    let stages = outcome.stages;
    let request = Request { inputs, rows, deadline, priority, wire_bytes, stages, reply };
    let outputs = execute(hand, &model, (request, answer), &mut outcome.stages).await?;
    outcome.rows = rows;
    encode(&model, terms.coding, (shape, envelope), outputs).await
}

async fn open(packed: Packed, limit: usize) -> Result<InferMessage> {
    let heavy = packed.coding.is_some();
    aside(heavy, move || InferMessage::read(packed.unpack(limit)?)).await
}

async fn decode(model: &Arc<Model>, message: InferMessage) -> Result<InferCall> {
    let heavy = message.size() > INLINE_BYTES;
    let model = model.clone();
    aside(heavy, move || message.decode(&model.config.signature)).await
}

async fn encode(
    model: &Arc<Model>,
    coding: Coding,
    (shape, envelope): (AnswerShape, Envelope),
    outputs: Vec<Tensor>,
) -> Result<Bytes> {
    let heavy = outputs.iter().map(|t| t.data.len()).sum::<usize>() > INLINE_BYTES;
    let model = model.clone();
    let work = move || {
        let mut frame = open_frame();
        encode_message(&mut frame, (&model.id, &model.config.signature), (&shape, envelope), &outputs)?;
        close_frame(frame, coding)
    };
    aside(heavy, work).await
}

/// The header `grpc-timeout`: at most eight digits and a unit.
fn timeout(headers: &HeaderMap) -> Result<Option<Duration>> {
    let Some(value) = headers.get("grpc-timeout") else { return Ok(None) };
    let text = value.to_str().unwrap_or("?");
    let parsed = text.split_at_checked(text.len().saturating_sub(1)).and_then(|(digits, unit)| {
        let well_formed = (1..=8).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_digit());
        let number: u64 = digits.parse().ok().filter(|_| well_formed)?;
        Some(match unit {
            "H" => Duration::from_secs(number * 3600),
            "M" => Duration::from_secs(number * 60),
            "S" => Duration::from_secs(number),
            "m" => Duration::from_millis(number),
            "u" => Duration::from_micros(number),
            "n" => Duration::from_nanos(number),
            _ => return None,
        })
    });
    let wrong = || Error::invalid(format!("header `grpc-timeout` is `{text}`: expected digits and a unit"));
    parsed.map(Some).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grpc_timeout_is_digits_and_a_unit() {
        let of = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert("grpc-timeout", text.parse().unwrap());
            timeout(&headers).ok().flatten()
        };
        assert_eq!(of("2H"), Some(Duration::from_hours(2)));
        assert_eq!(of("99999999S"), Some(Duration::from_secs(99_999_999)));
        assert_eq!(of("250m"), Some(Duration::from_millis(250)));
        assert_eq!((of("7u"), of("0n")), (Some(Duration::from_micros(7)), Some(Duration::ZERO)));
        for wrong in ["", "S", "1", "1s", "-1S", "+1S", "123456789S", "1 S", "1.5S"] {
            assert_eq!(of(wrong), None, "{wrong}");
        }
    }
}
