//! One inference request: body, decoding, queue, reply, encoding. Work that would hold up the other connections of
//! this IO thread goes to a helper thread.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use hyper::{
    HeaderMap, Response, StatusCode,
    body::Incoming,
    header::{ACCEPT_ENCODING, CONTENT_ENCODING, HeaderName, HeaderValue},
};
use seatrial_protocol::{AnswerShape, InferBody, InferCall, codings, decode_infer, encode_infer};
use seatrial_types::{Code, Error, Reply, Request, Result, Stage, Stages, Tensor};
use tokio::{sync::oneshot, time::timeout_at};

use super::{
    InHand,
    answer::{JSON, Whole, answer, refusal},
    body,
};
use crate::{metrics::Inference, model::Model};

/// The protocol's name for the length of the JSON part.
pub(crate) const HEADER_LENGTH: HeaderName = HeaderName::from_static("inference-header-content-length");
const TIMEOUT_MS: HeaderName = HeaderName::from_static("seatrial-timeout-ms");
const STAGES: HeaderName = HeaderName::from_static("seatrial-stages");
const DIGEST: HeaderName = HeaderName::from_static("seatrial-model-digest");
const BINARY: HeaderValue = HeaderValue::from_static("application/octet-stream");

/// Bytes that are decoded or encoded on the IO thread itself: about a millisecond of work.
pub(super) const INLINE_BYTES: usize = 256 << 10;

/// No deadline lies further off, whatever a client asks for.
pub(super) const LONGEST: Duration = Duration::from_hours(24);

/// A request that goes well, on its way to the bytes of its answer.
pub(super) struct Answered {
    pub(super) body: InferBody,
    pub(super) coding: Option<&'static str>,
    pub(super) rows: usize,
}

/// Answers an inference request, and tells what is to be counted of it.
pub(super) async fn infer(
    hand: &mut InHand,
    (name, version): (&str, Option<&str>),
    (headers, body): (&HeaderMap, &mut Incoming),
    mut stages: Stages,
) -> (Response<Whole>, Option<Inference>) {
    let model = match hand.door.catalog.find(name, version) {
        Ok(model) => model,
        Err(error) => return (refusal(&error), None),
    };
    hand.requests = model.metrics.requests.clone();
    let result = run(hand, &model, (headers, body), &mut stages).await;
    finish(hand, (headers, &model), result, stages)
}

/// The answer to a request that came to a model, and what is to be counted of it.
pub(super) fn finish(
    hand: &mut InHand,
    (headers, model): (&HeaderMap, &Model),
    result: Result<Answered>,
    mut stages: Stages,
) -> (Response<Whole>, Option<Inference>) {
    hand.submitted = false;
    let (mut response, rows) = match result {
        Ok(answered) => {
            let rows = answered.rows;
            (success(answered), rows)
        }
        Err(error) => (refusal(&error), 0),
    };
    stages.mark(Stage::Encode, Instant::now());
    on_request(headers, response.headers_mut(), model, &stages);
    (response, Some(Inference { metrics: model.metrics.clone(), stages, rows }))
}

async fn run(
    hand: &mut InHand,
    model: &Arc<Model>,
    (headers, body): (&HeaderMap, &mut Incoming),
    stages: &mut Stages,
) -> Result<Answered> {
    model.require_ready()?;
    let header_length = header_length(headers)?;
    let door = hand.door.clone();
    refuse_unread(model, headers, body, stages.started())?;
    let raw = body::read(&door.limits, body).await?;
    door.metrics.bytes_in.add(raw.len() as u64);
    let wire_bytes = raw.len();
    let call = decode(model, headers, (raw, header_length), door.limits.max_body_bytes).await?;
    stages.mark(Stage::Parse, Instant::now());
    let deadline = deadline(&call, headers, model, stages.started())?;
    let (rows, priority) = (call.rows, call.priority);
    let (inputs, shape) = call.into_parts();
    let (reply, answer) = oneshot::channel();
    let request = Request { inputs, rows, deadline, priority, wire_bytes, stages: *stages, reply };
    let outputs = execute(hand, model, (request, answer), stages).await?;
    let (body, coding) = encode(model, headers, (shape, outputs)).await?;
    Ok(Answered { body, coding, rows })
}

/// Refuses a request whose body was not read yet, when what waits leaves no time for it. A time-out that only the body
/// tells is not known here, so a client that wants longer than the model's own says so in the header.
pub(super) fn refuse_unread(
    model: &Model,
    headers: &HeaderMap,
    body: &Incoming,
    started: Instant,
) -> Result<()> {
    let timeout = header_timeout(headers)?.unwrap_or(model.timeout()).min(LONGEST);
    let bytes = hyper::body::Body::size_hint(body).exact().and_then(|n| usize::try_from(n).ok());
    model.queue.would_refuse(bytes.unwrap_or_default(), started + timeout).map_or(Ok(()), Err)
}

/// Queues the request and waits for its reply, but not past its deadline.
pub(super) async fn execute(
    hand: &mut InHand,
    model: &Model,
    (request, answer): (Request, oneshot::Receiver<Reply>),
    stages: &mut Stages,
) -> Result<Vec<Tensor>> {
    let deadline = request.deadline;
    model.queue.submit(request).map_err(|(_, error)| error)?;
    hand.submitted = true;
    let Reply { outcome, stages: marked } = wait(hand, deadline, stages.started(), answer).await?;
    *stages = marked;
    stages.mark(Stage::CopyOut, Instant::now());
    outcome
}

/// The reply to a request that is queued.
pub(super) async fn wait(
    hand: &InHand,
    deadline: Instant,
    started: Instant,
    answer: oneshot::Receiver<Reply>,
) -> Result<Reply> {
    match timeout_at(deadline.into(), answer).await {
        Ok(Ok(reply)) => Ok(reply),
        Ok(Err(_)) => Err(Error::internal("the executor dropped the request without a reply")),
        Err(_) => {
            hand.door.abandoned.notify_one();
            let ms = deadline.saturating_duration_since(started).as_millis();
            Err(Error::new(Code::DeadlineExceeded, format!("no answer within the deadline of {ms} ms")))
        }
    }
}

async fn decode(
    model: &Arc<Model>,
    headers: &HeaderMap,
    (raw, header_length): (Bytes, Option<usize>),
    limit: usize,
) -> Result<InferCall> {
    let coding = headers.get(CONTENT_ENCODING).map(|v| v.to_str().unwrap_or("?").to_owned());
    let coding = coding.filter(|coding| !coding.eq_ignore_ascii_case("identity"));
    let heavy = raw.len() > INLINE_BYTES || coding.is_some();
    let model = model.clone();
    let work = move || {
        let body = match &coding {
            Some(coding) => codings::inflate(coding, &raw, limit)?.into(),
            None => raw,
        };
        decode_infer(&model.config.signature, body, header_length)
    };
    aside(heavy, work).await
}

async fn encode(
    model: &Arc<Model>,
    headers: &HeaderMap,
    (shape, outputs): (AnswerShape, Vec<Tensor>),
) -> Result<(InferBody, Option<&'static str>)> {
    let compress = compress(headers);
    let heavy = outputs.iter().map(|t| t.data.len()).sum::<usize>() > INLINE_BYTES;
    let model = model.clone();
    let work = move || {
        let InferBody { body, header_length } =
            encode_infer(&model.id, &model.config.signature, &shape, &outputs)?;
        let (body, coding) = compress(body);
        Ok((InferBody { body, header_length }, coding))
    };
    aside(heavy, work).await
}

/// What compresses an answer as the client takes it, and names the coding.
pub(super) fn compress(
    headers: &HeaderMap,
) -> impl FnOnce(Bytes) -> (Bytes, Option<&'static str>) + Send + 'static {
    let accepts = headers.get(ACCEPT_ENCODING).and_then(|v| v.to_str().ok()).map(str::to_owned);
    move |body| match accepts {
        Some(accepts) => codings::deflate_answer(&accepts, body),
        None => (body, None),
    }
}

/// Runs `work` here, or on a helper thread when it is heavy.
pub(super) async fn aside<T: Send + 'static>(
    heavy: bool,
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    if !heavy {
        return work();
    }
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(_) => Err(Error::internal("the request could not be processed")),
    }
}

fn success(answered: Answered) -> Response<Whole> {
    let Answered { body: InferBody { body, header_length }, coding, .. } = answered;
    let mut response = answer(StatusCode::OK, if header_length.is_some() { BINARY } else { JSON }, body);
    let headers = response.headers_mut();
    if let Some(length) = header_length {
        headers.insert(HEADER_LENGTH, length.into());
    }
    if let Some(coding) = coding {
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static(coding));
    }
    response
}

/// Adds the headers that only come on request.
pub(super) fn on_request(asked: &HeaderMap, headers: &mut HeaderMap, model: &Model, stages: &Stages) {
    let asked = |name: &HeaderName| asked.get(name).is_some_and(|v| v == "1");
    if asked(&STAGES)
        && let Ok(value) = HeaderValue::try_from(stage_header(stages))
    {
        headers.insert(STAGES, value);
    }
    if asked(&DIGEST)
        && let Ok(value) = HeaderValue::try_from(&model.config.digest)
    {
        headers.insert(DIGEST, value);
    }
}

/// Every stage up to encoding in microseconds. Writing happens after this header and is in the histogram only.
fn stage_header(stages: &Stages) -> String {
    let micros = |stage: Stage| stages.spent(stage).as_secs_f64() * 1e6;
    let before_write = Stage::ALL.into_iter().filter(|stage| *stage != Stage::Write);
    before_write.map(|stage| format!("{}={:.1}", stage.name(), micros(stage))).collect::<Vec<_>>().join(";")
}

fn header_length(headers: &HeaderMap) -> Result<Option<usize>> {
    number(headers, &HEADER_LENGTH)?
        .map(|n| {
            usize::try_from(n)
                .map_err(|_| Error::invalid(format!("header `{HEADER_LENGTH}` is `{n}`: too large")))
        })
        .transpose()
}

/// When the answer loses its worth: what the request says, else its header, else what the model's package says.
fn deadline(call: &InferCall, headers: &HeaderMap, model: &Model, started: Instant) -> Result<Instant> {
    let timeout = call.timeout.or(header_timeout(headers)?).unwrap_or(model.timeout());
    Ok(started + timeout.min(LONGEST))
}

pub(super) fn header_timeout(headers: &HeaderMap) -> Result<Option<Duration>> {
    Ok(number(headers, &TIMEOUT_MS)?.map(Duration::from_millis).filter(|t| !t.is_zero()))
}

fn number(headers: &HeaderMap, name: &HeaderName) -> Result<Option<u64>> {
    let Some(value) = headers.get(name) else { return Ok(None) };
    let text = value.to_str().unwrap_or("?");
    // `parse` alone would take a plus sign.
    let digits = text.bytes().all(|b| b.is_ascii_digit());
    match text.parse() {
        Ok(number) if digits => Ok(Some(number)),
        _ => Err(Error::invalid(format!("header `{name}` is `{text}`: expected a whole number"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stage_header_has_every_stage_but_write_in_microseconds() {
        let start = Instant::now();
        let mut stages = Stages::start(start);
        stages.mark(Stage::Accept, start + Duration::from_nanos(12_340));
        stages.mark(Stage::Run, start + Duration::from_nanos(152_340));
        assert_eq!(
            stage_header(&stages),
            "accept=12.3;parse=0.0;feature=0.0;queue=0.0;form=0.0;copy_in=0.0;run=140.0;copy_out=0.0;encode=0.0"
        );
    }

    #[test]
    fn header_numbers_are_digits_only() {
        let of = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(HEADER_LENGTH, HeaderValue::from_str(text).unwrap());
            header_length(&headers).map_err(|e| e.message)
        };
        assert_eq!(of("12"), Ok(Some(12)));
        assert_eq!(header_length(&HeaderMap::new()), Ok(None));
        for wrong in ["", "+1", "-1", "1.0", "0x1", "99999999999999999999"] {
            assert!(of(wrong).unwrap_err().contains("expected a whole number"), "{wrong}");
        }
    }
}
