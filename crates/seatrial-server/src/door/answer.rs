//! Answers: the one place where codes become HTTP statuses, and the body type handed to the HTTP library.

use std::{
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::{
    Response, StatusCode,
    header::{ACCEPT_ENCODING, ALLOW, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER},
};
use seatrial_protocol::{codings, error_body};
use seatrial_types::{Code, Error};

/// The precise form of `Retry-After`, which only has whole seconds.
const RETRY_AFTER_MS: HeaderName = HeaderName::from_static("retry-after-ms");

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
        let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
        let millis = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX).max(1);
        response.headers_mut().insert(RETRY_AFTER, seconds.max(1).into());
        response.headers_mut().insert(RETRY_AFTER_MS, millis.into());
    }
    response
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

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
