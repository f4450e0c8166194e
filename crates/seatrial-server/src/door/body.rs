//! Reading a request's body under its limits of size and time.

use std::{error::Error as _, future::poll_fn, io, pin::Pin};

use bytes::{Bytes, BytesMut};
use hyper::body::{Body as _, Incoming};
use seatrial_types::{Code, Error, Result};
use tokio::time::timeout;

use crate::config::Limits;

/// Room made at once for a body that says how long it is; the rest grows as it comes.
const FIRST_ROOM: usize = 1 << 20;

/// The whole body. What is declared too large is refused before anything is read.
pub(crate) async fn read(limits: &Limits, body: &mut Incoming) -> Result<Bytes> {
    let declared = body.size_hint().exact();
    if let Some(declared) = declared.filter(|n| *n > limits.max_body_bytes as u64) {
        return Err(too_large(&format!("has `{declared}` bytes"), limits.max_body_bytes));
    }
    timeout(limits.body_timeout(), collect(limits.max_body_bytes, body)).await.unwrap_or_else(|_| {
        let text = format!("the request body was not complete after {} ms", limits.body_timeout_ms);
        Err(Error::new(Code::RequestTimeout, text))
    })
}

/// Refuses a body over the limit; `what` tells its size as far as it is known.
pub(crate) fn too_large(what: &str, limit: usize) -> Error {
    Error::new(Code::PayloadTooLarge, format!("the request body {what}: expected at most {limit} bytes"))
}

/// A body that came in one piece is handed on without a copy.
async fn collect(limit: usize, body: &mut Incoming) -> Result<Bytes> {
    let Some(first) = next(body).await? else { return Ok(Bytes::new()) };
    if first.len() > limit {
        return Err(too_large("is longer than the limit", limit));
    }
    if body.is_end_stream() {
        return Ok(first);
    }
    let Some(second) = next(body).await? else { return Ok(first) };
    let rest = body.size_hint().exact().and_then(|n| usize::try_from(n).ok()).unwrap_or_default();
    let mut whole = BytesMut::with_capacity(first.len() + second.len() + rest.min(FIRST_ROOM));
    whole.extend_from_slice(&first);
    let mut piece = Some(second);
    while let Some(bytes) = piece {
        if whole.len() + bytes.len() > limit {
            return Err(too_large("is longer than the limit", limit));
        }
        whole.extend_from_slice(&bytes);
        piece = next(body).await?;
    }
    Ok(whole.freeze())
}

/// The next piece of data; trailers have no meaning here.
pub(super) async fn next(body: &mut Incoming) -> Result<Option<Bytes>> {
    loop {
        match poll_fn(|cx| Pin::new(&mut *body).poll_frame(cx)).await {
            None => return Ok(None),
            Some(Ok(frame)) => {
                if let Ok(data) = frame.into_data() {
                    return Ok(Some(data));
                }
            }
            Some(Err(e)) => return Err(broken(&e)),
        }
    }
}

fn broken(error: &hyper::Error) -> Error {
    let io = error.source().and_then(|e| e.downcast_ref::<io::Error>()).map(io::Error::kind);
    match io {
        Some(io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData) => {
            let why = error.source().map(ToString::to_string).unwrap_or_default();
            Error::invalid(format!("the chunked request body is malformed: {why}"))
        }
        Some(io::ErrorKind::UnexpectedEof) => {
            Error::invalid("the request body ended before its length was reached")
        }
        _ => Error::new(Code::Cancelled, "the client went away while it sent the request body"),
    }
}
