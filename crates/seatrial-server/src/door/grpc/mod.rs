//! The gRPC door: HTTP/2 calls with protocol buffers, on a port of their own. Routing, the header of a call and its end;
//! what is answered is decided where it is for HTTP.

pub(super) mod connection;
mod frames;
mod infer;
mod line;
mod reply;
mod service;
mod stream;

use std::{convert::Infallible, sync::Arc, time::Instant};

use hyper::{
    HeaderMap, Method, Request, Response, StatusCode,
    body::Incoming,
    header::{CONTENT_TYPE, HeaderValue},
};
use seatrial_protocol::message::Envelope;
use seatrial_types::{Code, Error, Result, Stages};

use self::{
    frames::Messages,
    infer::Terms,
    line::{Line, OnLine},
    reply::Reply,
    service::{Question, SMALL},
};
use super::{Door, InHand, answer::status_of};
use crate::metrics::Finish;

/// What a call asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wanted {
    Infer,
    StreamInfer,
    Watch,
    Reflection,
    Told(Question),
}

/// The call that a path names.
fn wanted(path: &str) -> Result<Wanted> {
    let inference = path.strip_prefix("/inference.GRPCInferenceService/").map(|method| match method {
        "ModelInfer" => Some(Wanted::Infer),
        "ModelStreamInfer" => Some(Wanted::StreamInfer),
        "ServerLive" => Some(Wanted::Told(Question::Live)),
        "ServerReady" => Some(Wanted::Told(Question::Ready)),
        "ModelReady" => Some(Wanted::Told(Question::ModelReady)),
        "ServerMetadata" => Some(Wanted::Told(Question::Server)),
        "ModelMetadata" => Some(Wanted::Told(Question::Model)),
        "ModelConfig" => Some(Wanted::Told(Question::Config)),
        "ModelStatistics" => Some(Wanted::Told(Question::Statistics)),
        "RepositoryIndex" => Some(Wanted::Told(Question::Index)),
        _ => None,
    });
    let found = match (inference, path) {
        (Some(found), _) => found,
        (None, "/grpc.health.v1.Health/Check") => Some(Wanted::Told(Question::Health)),
        (None, "/grpc.health.v1.Health/Watch") => Some(Wanted::Watch),
        (
            None,
            "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"
            | "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
        ) => Some(Wanted::Reflection),
        _ => None,
    };
    found.ok_or_else(|| {
        let shown: String = path.chars().take(200).collect();
        Error::new(Code::Unimplemented, format!("there is no method `{shown}` on this server"))
    })
}

/// Answers one call.
async fn handle(
    door: Arc<Door>,
    line: Arc<Line>,
    request: Request<Incoming>,
) -> std::result::Result<Response<Reply>, Infallible> {
    let now = Instant::now();
    let call = OnLine::new(&line);
    let mut hand = InHand::new(&door);
    let (parts, body) = request.into_parts();
    let response = match misplaced(&parts.method, &parts.headers) {
        Some(status) => Reply::foreign(status, finish(&hand, status), call),
        None => respond(&mut hand, (parts.uri.path(), &parts.headers), body, (call, now)).await,
    };
    hand.answered = true;
    door.metrics.bytes_out.add(response.body().size() as u64);
    Ok(response)
}

/// The status for what is no gRPC at all.
fn misplaced(method: &Method, headers: &HeaderMap) -> Option<StatusCode> {
    let content_type = headers.get(CONTENT_TYPE).map_or(&[][..], HeaderValue::as_bytes);
    if !matches!(content_type, b"application/grpc" | b"application/grpc+proto") {
        return Some(StatusCode::UNSUPPORTED_MEDIA_TYPE);
    }
    (method != Method::POST).then_some(StatusCode::METHOD_NOT_ALLOWED)
}

async fn respond(
    hand: &mut InHand,
    (path, headers): (&str, &HeaderMap),
    body: Incoming,
    (call, now): (OnLine, Instant),
) -> Response<Reply> {
    let prepared = wanted(path).and_then(|wanted| Ok((wanted, Terms::of(headers, now)?)));
    let (wanted, terms) = match prepared {
        Ok(prepared) => prepared,
        Err(error) => return refuse(hand, &error, call),
    };
    let door = hand.door.clone();
    let limit = match wanted {
        Wanted::Infer | Wanted::StreamInfer => door.limits.max_body_bytes,
        _ => SMALL,
    };
    let mut messages = Messages::new(body, terms.coding, limit);
    let mut response = match wanted {
        Wanted::Infer => return one(hand, headers, (messages, &terms), (call, now)).await,
        Wanted::StreamInfer => Reply::stream(stream::inference(&door, messages, terms.clone()), call),
        Wanted::Reflection => Reply::stream(stream::reflection(&door, messages), call),
        Wanted::Watch => match messages.only(&door.limits).await.and_then(service::watched) {
            Ok(service) => Reply::stream(stream::watch(&door, service, terms.coding), call),
            Err(error) => return refuse(hand, &error, call),
        },
        Wanted::Told(question) => {
            let packed = messages.only(&door.limits).await;
            match packed.and_then(|packed| service::answer(&door, question, packed, terms.coding)) {
                Ok(frame) => Reply::one(frame, finish(hand, StatusCode::OK), call),
                Err(error) => return refuse(hand, &error, call),
            }
        }
    };
    say_coding(&terms, response.headers_mut());
    response
}

/// One inference.
async fn one(
    hand: &mut InHand,
    headers: &HeaderMap,
    (mut messages, terms): (Messages, &Terms),
    (call, now): (OnLine, Instant),
) -> Response<Reply> {
    let stages = Stages::start(now);
    let limits = hand.door.limits.clone();
    let packed = match messages.only(&limits).await {
        Ok(packed) => packed,
        Err(error) => return refuse(hand, &error, call),
    };
    let outcome = infer::infer(hand, terms, (packed, Envelope::Alone), stages).await;
    let finish = outcome.finish(hand);
    if hand.door.drain.is_draining() {
        hand.door.drain.note(finish.status);
    }
    let mut response = match &outcome.result {
        Ok(frame) => Reply::one(frame.clone(), finish, call),
        Err(error) => Reply::refusal(error, finish, call),
    };
    outcome.on_request(headers, response.headers_mut());
    say_coding(terms, response.headers_mut());
    response
}

fn refuse(hand: &InHand, error: &Error, call: OnLine) -> Response<Reply> {
    Reply::refusal(error, finish(hand, status_of(error.code)), call)
}

fn finish(hand: &InHand, status: StatusCode) -> Finish {
    Finish { requests: hand.requests.clone(), status, inference: None }
}

/// Messages come back packed as they came.
fn say_coding(terms: &Terms, headers: &mut HeaderMap) {
    if let Some(name) = terms.coding.name() {
        headers.insert("grpc-encoding", HeaderValue::from_static(name));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_lead_to_calls() {
        let infer = "/inference.GRPCInferenceService/ModelInfer";
        assert_eq!(wanted(infer).ok(), Some(Wanted::Infer));
        assert_eq!(wanted("/grpc.health.v1.Health/Watch").ok(), Some(Wanted::Watch));
        for unknown in
            ["", "/", "/inference.GRPCInferenceService/", "/inference.GRPCInferenceService/TraceSetting"]
        {
            assert_eq!(wanted(unknown).map_err(|e| e.code), Err(Code::Unimplemented), "{unknown}");
        }
    }

    #[test]
    fn what_is_no_grpc_is_told_in_http() {
        let of = |method: Method, content_type: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
            misplaced(&method, &headers).map(|status| status.as_u16())
        };
        assert_eq!(of(Method::POST, "application/grpc"), None);
        assert_eq!(of(Method::POST, "application/grpc+proto"), None);
        assert_eq!(of(Method::GET, "application/grpc"), Some(405));
        for other in ["application/json", "application/grpc-web", "application/grpc+json", ""] {
            assert_eq!(of(Method::POST, other), Some(415), "{other}");
        }
    }
}
