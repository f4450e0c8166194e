//! The named-feature route: raw fields to tensors, one request to the queue for each length of rows, and the answer
//! row by row. Queue, deadline and headers are those of `infer`.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use hyper::{HeaderMap, Response, body::Incoming, header::CONTENT_ENCODING};
use seatrial_features::{Group, Plan};
use seatrial_protocol::{InferBody, Predicted, codings, encode_predictions};
use seatrial_types::{Code, Dim, Error, Reply, Request, Result, Signature, Stage, Stages};
use tokio::sync::oneshot;

use super::{
    InHand,
    answer::{Whole, refusal},
    body,
    infer::{Answered, INLINE_BYTES, LONGEST, aside, compress, finish, header_timeout, refuse_unread, wait},
};
use crate::{metrics::Inference, model::Model};

/// Bytes whose texts are tokenized on the IO thread itself: about a millisecond of work.
const INLINE_TEXT: usize = 4 << 10;

/// Answers a request of raw fields, and tells what is to be counted of it.
pub(super) async fn predict(
    hand: &mut InHand,
    (name, version): (&str, Option<&str>),
    (headers, body): (&HeaderMap, &mut Incoming),
    mut stages: Stages,
) -> (Response<Whole>, Option<Inference>) {
    let model = match hand.door.catalog.find(name, version) {
        Ok(model) => model.clone(),
        Err(error) => return (refusal(&error), None),
    };
    hand.requests = model.metrics.requests.clone();
    let result = run(hand, &model, (headers, body), &mut stages).await;
    finish(hand, (headers, &model), result, stages)
}

async fn run(
    hand: &mut InHand,
    model: &Arc<Model>,
    (headers, body): (&HeaderMap, &mut Incoming),
    stages: &mut Stages,
) -> Result<Answered> {
    let plan = model.features.as_ref().map(|f| f.plan.clone()).ok_or_else(|| without_features(model))?;
    model.require_ready()?;
    let door = hand.door.clone();
    refuse_unread(model, headers, body, stages.started())?;
    let raw = body::read(&door.limits, body).await?;
    door.metrics.bytes_in.add(raw.len() as u64);
    let wire_bytes = raw.len();
    stages.mark(Stage::Parse, Instant::now());
    let prepared = prepare(model, plan, headers, (raw, door.limits.max_body_bytes)).await;
    stages.mark(Stage::Feature, Instant::now());
    let (rows, groups) = prepared?;
    let timeout = header_timeout(headers)?.unwrap_or(model.timeout()).min(LONGEST);
    let parts = execute(hand, model, (groups, wire_bytes), timeout, stages).await?;
    let (body, coding) = encode(model, headers, (rows, parts)).await?;
    Ok(Answered { body: InferBody { body, header_length: None }, coding, rows })
}

fn without_features(model: &Model) -> Error {
    let name = &model.config.name;
    let text = format!("model `{name}` has no features.yaml: send tensors to `/v2/models/{name}/infer`");
    Error::new(Code::NotFound, text)
}

/// The number of instances, and their tensors by length of their rows.
async fn prepare(
    model: &Arc<Model>,
    plan: Arc<Plan>,
    headers: &HeaderMap,
    (raw, limit): (Bytes, usize),
) -> Result<(usize, Vec<Group>)> {
    let coding = headers.get(CONTENT_ENCODING).map(|v| v.to_str().unwrap_or("?").to_owned());
    let coding = coding.filter(|coding| !coding.eq_ignore_ascii_case("identity"));
    let inline = if plan.tokenizes() { INLINE_TEXT } else { INLINE_BYTES / 4 };
    let heavy = raw.len() > inline || coding.is_some();
    let rows = Rows::of(&model.config.signature);
    let work = move || {
        let body: Bytes = match &coding {
            Some(coding) => codings::inflate(coding, &raw, limit)?.into(),
            None => raw,
        };
        // A short instance may make a long row: the tensors stay within what a body of tensors may hold.
        let bound = limit / plan.row_bytes().max(1);
        let most = rows.most.map_or(bound, |most| most.min(bound));
        let prepared = plan.instances(&body, Some(most.max(1)))?;
        Ok((prepared.rows(), rows.groups(prepared.by_length())?))
    };
    aside(heavy, work).await
}

/// What the signature says about the rows of one request.
#[derive(Clone, Copy)]
struct Rows {
    most: Option<usize>,
    /// The batch axis has one size.
    exact: Option<usize>,
}

impl Rows {
    fn of(signature: &Signature) -> Self {
        let first = |spec: &seatrial_types::TensorSpec| match spec.shape.first() {
            Some(Dim::Free { max, .. }) => (*max, None),
            Some(Dim::Fixed(size)) => (None, Some(*size)),
            None => (None, None),
        };
        let sizes: Vec<_> = signature.inputs.iter().map(first).collect();
        Self {
            most: sizes.iter().filter_map(|(most, _)| *most).min(),
            exact: sizes.iter().find_map(|(_, exact)| *exact),
        }
    }

    /// A model whose batch axis has one size takes that many rows and no other number.
    fn groups(self, groups: Vec<Group>) -> Result<Vec<Group>> {
        let Some(exact) = self.exact else { return Ok(groups) };
        match groups.iter().find(|group| group.rows.len() != exact) {
            None => Ok(groups),
            Some(group) => Err(Error::invalid(format!(
                "there are {} `instances` of one length: this model takes {exact} at a time",
                group.rows.len()
            ))),
        }
    }
}

/// Queues each group and waits for all replies, but not past the deadline. The stages are those of the last reply.
async fn execute(
    hand: &mut InHand,
    model: &Model,
    (groups, wire_bytes): (Vec<Group>, usize),
    timeout: Duration,
    stages: &mut Stages,
) -> Result<Vec<Predicted>> {
    let deadline = stages.started() + timeout;
    let mut waiting = Vec::with_capacity(groups.len());
    for Group { rows, inputs } in groups {
        let (reply, answer) = oneshot::channel();
        let n_rows = if Rows::of(&model.config.signature).exact.is_some() { 1 } else { rows.len() };
        let request =
            Request { inputs, rows: n_rows, deadline, priority: 0, wire_bytes, stages: *stages, reply };
        hand.submitted = true;
        model.queue.submit(request).map_err(|(_, error)| error)?;
        waiting.push((rows, answer));
    }
    let mut parts = Vec::with_capacity(waiting.len());
    let mut latest = *stages;
    for (rows, answer) in waiting {
        let Reply { outcome, stages: marked } = wait(hand, deadline, stages.started(), answer).await?;
        if marked.total() > latest.total() {
            latest = marked;
        }
        *stages = latest;
        parts.push(Predicted { rows, outputs: outcome? });
    }
    stages.mark(Stage::CopyOut, Instant::now());
    Ok(parts)
}

async fn encode(
    model: &Arc<Model>,
    headers: &HeaderMap,
    (rows, parts): (usize, Vec<Predicted>),
) -> Result<(Bytes, Option<&'static str>)> {
    let bytes: usize = parts.iter().flat_map(|part| &part.outputs).map(|tensor| tensor.data.len()).sum();
    let compress = compress(headers);
    let model = model.clone();
    let work = move || Ok(compress(encode_predictions(&model.config.signature, rows, &parts)?));
    aside(bytes > INLINE_BYTES, work).await
}
