//! The one list of error codes. Doors translate a code to their protocol's status; nobody else does.

use std::{fmt, time::Duration};

/// Why a request was not answered. The text form is stable and goes to clients as `code`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Code {
    /// The request is wrong: names, types, shapes, values or syntax.
    InvalidArgument,
    /// No such path, model or version.
    NotFound,
    /// The path exists but not for this method.
    MethodNotAllowed,
    /// The client took too long to send its header or body.
    RequestTimeout,
    /// The body or what it declares is larger than the limit.
    PayloadTooLarge,
    /// The content coding or type is not taken.
    UnsupportedMediaType,
    /// The queue or the memory is full; try again after the hint.
    ResourceExhausted,
    /// The client went away or cancelled.
    Cancelled,
    /// A fault of ours or of the model.
    Internal,
    /// A part of the protocol that this server does not have.
    Unimplemented,
    /// Not ready, or draining.
    Unavailable,
    /// The deadline passed before an answer was ready.
    DeadlineExceeded,
}

impl Code {
    /// Every code, for documentation and tests.
    pub const ALL: [Self; 12] = [
        Self::InvalidArgument,
        Self::NotFound,
        Self::MethodNotAllowed,
        Self::RequestTimeout,
        Self::PayloadTooLarge,
        Self::UnsupportedMediaType,
        Self::ResourceExhausted,
        Self::Cancelled,
        Self::Internal,
        Self::Unimplemented,
        Self::Unavailable,
        Self::DeadlineExceeded,
    ];

    /// The stable text of the code.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::InvalidArgument => "invalid_argument",
            Self::NotFound => "not_found",
            Self::MethodNotAllowed => "method_not_allowed",
            Self::RequestTimeout => "request_timeout",
            Self::PayloadTooLarge => "payload_too_large",
            Self::UnsupportedMediaType => "unsupported_media_type",
            Self::ResourceExhausted => "resource_exhausted",
            Self::Cancelled => "cancelled",
            Self::Internal => "internal",
            Self::Unimplemented => "unimplemented",
            Self::Unavailable => "unavailable",
            Self::DeadlineExceeded => "deadline_exceeded",
        }
    }
}

/// A refusal or failure of one request: a code, a text for people, and when to come back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// What kind it is.
    pub code: Code,
    /// What was wrong, naming the field, what came and what was expected.
    pub message: String,
    /// When a retry has a chance; set for `ResourceExhausted` and `Unavailable`.
    pub retry_after: Option<Duration>,
}

/// What fallible functions of the data plane return.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// An error without a retry hint.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), retry_after: None }
    }

    /// A client's mistake.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(Code::InvalidArgument, message)
    }

    /// A fault of ours or of the model.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(Code::Internal, message)
    }

    /// The same error with a hint when to come back.
    #[must_use]
    pub fn retry_after(mut self, wait: Duration) -> Self {
        self.retry_after = Some(wait);
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code.as_str(), self.message)
    }
}

impl std::error::Error for Error {}
