//! Answers: the one place where codes become statuses of HTTP and of gRPC, and the body type handed to the HTTP library.

use std::{
    convert::Infallible,
    fmt::Write as _,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::{
    HeaderMap, Response, StatusCode,
    header::{ACCEPT_ENCODING, ALLOW, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER},
};
use seatrial_protocol::{codings, error_body};
use seatrial_types::{Code, Error};

/// The precise form of `Retry-After`, which only has whole seconds.
const RETRY_AFTER_MS: HeaderName = HeaderName::from_static("retry-after-ms");

pub(crate) const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");
const GRPC_MESSAGE: HeaderName = HeaderName::from_static("grpc-message");
const GRPC_ACCEPT_ENCODING: HeaderName = HeaderName::from_static("grpc-accept-encoding");

/// When gRPC's own libraries try again, where they were told to.
const GRPC_RETRY_PUSHBACK: HeaderName = HeaderName::from_static("grpc-retry-pushback-ms");

/// Our own code, which is finer than gRPC's.
const CODE: HeaderName = HeaderName::from_static("seatrial-code");

pub(crate) const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// A whole body in one piece.
#[derive(Debug)]
pub(crate) struct Whole(Option<Bytes>);

impl Body for Whole {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.0.take().map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0.as_ref().map_or(0, |bytes| bytes.len() as u64))
    }
}

/// An answer of any status.
pub(crate) fn answer(status: StatusCode, content_type: HeaderValue, body: Bytes) -> Response<Whole> {
    let mut response = Response::new(Whole((!body.is_empty()).then_some(body)));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    response
}

/// A JSON answer with status 200.
pub(crate) fn json(body: impl Into<Bytes>) -> Response<Whole> {
    answer(StatusCode::OK, JSON, body.into())
}

/// The answer to a request that failed.
pub(crate) fn refusal(error: &Error) -> Response<Whole> {
    let mut response = answer(status_of(error.code), JSON, error_body(error));
    if error.code == Code::UnsupportedMediaType {
        response.headers_mut().insert(ACCEPT_ENCODING, HeaderValue::from_static(codings::TAKEN));
    }
    if let Some(wait) = error.retry_after {
        say_when(wait, response.headers_mut());
    }
    response
}

/// When to come back. Gives the milliseconds.
fn say_when(wait: Duration, headers: &mut HeaderMap) -> u64 {
    let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
    let millis = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX).max(1);
    headers.insert(RETRY_AFTER, seconds.max(1).into());
    headers.insert(RETRY_AFTER_MS, millis.into());
    millis
}

/// What tells over gRPC how a call failed: in its trailers, or in its header when there is nothing else.
pub(crate) fn grpc_refusal(error: &Error, headers: &mut HeaderMap) {
    headers.insert(GRPC_STATUS, grpc_status_of(error.code).into());
    if let Ok(text) = HeaderValue::try_from(grpc_text(&error.message)) {
        headers.insert(GRPC_MESSAGE, text);
    }
    headers.insert(CODE, HeaderValue::from_static(error.code.as_str()));
    if matches!(error.code, Code::UnsupportedMediaType | Code::Unimplemented) {
        headers.insert(GRPC_ACCEPT_ENCODING, HeaderValue::from_static("identity,gzip,deflate"));
    }
    if let Some(wait) = error.retry_after {
        let millis = say_when(wait, headers);
        headers.insert(GRPC_RETRY_PUSHBACK, millis.into());
    }
}

/// A message as gRPC writes it: printable ASCII without `%`, everything else as `%` and two hex digits.
fn grpc_text(message: &str) -> String {
    let mut out = String::with_capacity(message.len());
    for byte in message.bytes() {
        if (b' '..=b'~').contains(&byte) && byte != b'%' {
            out.push(char::from(byte));
        } else {
            // Writing to a string does not fail.
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

/// The answer to a method that the route does not take.
pub(crate) fn method_not_allowed(method: &hyper::Method, allow: &'static str) -> Response<Whole> {
    let text = format!("the method `{method}` does not fit this path: expected {allow}");
    let mut response = refusal(&Error::new(Code::MethodNotAllowed, text));
    response.headers_mut().insert(ALLOW, HeaderValue::from_static(allow));
    response
}

/// The HTTP status of a code. 499 is the usual status for a client that went away.
pub(crate) fn status_of(code: Code) -> StatusCode {
    match code {
        Code::InvalidArgument => StatusCode::BAD_REQUEST,
        Code::NotFound => StatusCode::NOT_FOUND,
        Code::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
        Code::RequestTimeout => StatusCode::REQUEST_TIMEOUT,
        Code::PayloadTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        Code::UnsupportedMediaType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
        Code::ResourceExhausted => StatusCode::TOO_MANY_REQUESTS,
        Code::Cancelled => {
            StatusCode::from_u16(crate::metrics::CLIENT_GONE).unwrap_or(StatusCode::BAD_REQUEST)
        }
        Code::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        Code::Unimplemented => StatusCode::NOT_IMPLEMENTED,
        Code::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        Code::DeadlineExceeded => StatusCode::GATEWAY_TIMEOUT,
    }
}

/// The gRPC status of a code. A message over the limit is what gRPC's own libraries call an exhausted resource.
pub(crate) const fn grpc_status_of(code: Code) -> u16 {
    match code {
        Code::Cancelled => 1,
        Code::InvalidArgument => 3,
        Code::DeadlineExceeded | Code::RequestTimeout => 4,
        Code::NotFound => 5,
        Code::ResourceExhausted | Code::PayloadTooLarge => 8,
        Code::MethodNotAllowed | Code::UnsupportedMediaType | Code::Unimplemented => 12,
        Code::Internal => 13,
        Code::Unavailable => 14,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grpc_refusal_has_status_text_and_when_to_come_back() {
        let error =
            Error::new(Code::ResourceExhausted, "100 % full \u{1f600}").retry_after(Duration::from_millis(3));
        let mut headers = HeaderMap::new();
        grpc_refusal(&error, &mut headers);
        let text = |name: &str| headers[name].to_str().unwrap();
        assert_eq!(text("grpc-status"), "8");
        assert_eq!(text("grpc-message"), "100 %25 full %F0%9F%98%80");
        assert_eq!((text("retry-after-ms"), text("grpc-retry-pushback-ms")), ("3", "3"));
        assert_eq!(text("seatrial-code"), "resource_exhausted");
    }

    #[test]
    fn codes_keep_their_kind_over_grpc() {
        // Equal statuses of HTTP's classes: what is the client's fault never becomes the server's.
        for code in Code::ALL {
            let servers = matches!(grpc_status_of(code), 13 | 14);
            let expected = matches!(code, Code::Internal | Code::Unavailable);
            assert_eq!(servers, expected, "{code:?}");
        }
    }

    #[test]
    fn every_code_has_a_status_of_its_own() {
        let mut statuses: Vec<_> = Code::ALL.into_iter().map(|c| status_of(c).as_u16()).collect();
        statuses.sort_unstable();
        assert_eq!(statuses, [400, 404, 405, 408, 413, 415, 429, 499, 500, 501, 503, 504]);
    }

    #[test]
    fn a_refusal_says_when_to_come_back() {
        let hint = |wait| {
            let response = refusal(&Error::new(Code::ResourceExhausted, "full").retry_after(wait));
            let text = |name: &str| response.headers()[name].to_str().unwrap().to_owned();
            (text("retry-after"), text("retry-after-ms"))
        };
        assert_eq!(hint(Duration::from_millis(3)), ("1".into(), "3".into()));
        assert_eq!(hint(Duration::from_micros(10)), ("1".into(), "1".into()));
        assert_eq!(hint(Duration::from_millis(2001)), ("3".into(), "2001".into()));
    }
}
