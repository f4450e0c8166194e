//! Messages out of the bytes of a call, and back: a flag, a length, and the message, packed or not.

use bytes::{Buf, Bytes, BytesMut};
use hyper::{HeaderMap, body::Incoming};
use seatrial_protocol::codings;
use seatrial_types::{Code, Error, Result};
use tokio::time::timeout;

use super::super::body;
use crate::config::Limits;

/// The flag and the length before each message.
pub(super) const PREFIX: usize = 5;

/// Room made at once for a message that says how long it is; the rest grows as it comes.
const FIRST_ROOM: usize = 1 << 20;

/// How the messages of a call are packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Coding {
    Identity,
    Gzip,
    Deflate,
}

impl Coding {
    /// What the header `grpc-encoding` says.
    pub(super) fn of(headers: &HeaderMap) -> Result<Self> {
        match headers.get("grpc-encoding").map(|value| value.to_str().unwrap_or("?")) {
            None | Some("identity") => Ok(Self::Identity),
            Some("gzip") => Ok(Self::Gzip),
            Some("deflate") => Ok(Self::Deflate),
            Some(other) => Err(Error::new(
                Code::Unimplemented,
                format!("the message coding `{other}` is not taken: expected one of {}", codings::TAKEN),
            )),
        }
    }

    pub(super) const fn name(self) -> Option<&'static str> {
        match self {
            Self::Identity => None,
            Self::Gzip => Some("gzip"),
            Self::Deflate => Some("deflate"),
        }
    }
}

/// A message as it came.
pub(super) struct Packed {
    pub(super) bytes: Bytes,
    /// How it must be unpacked.
    pub(super) coding: Option<&'static str>,
}

impl Packed {
    /// The message itself; at most `limit` bytes.
    pub(super) fn unpack(self, limit: usize) -> Result<Bytes> {
        match self.coding {
            None => Ok(self.bytes),
            Some(coding) => codings::inflate(coding, &self.bytes, limit).map(Bytes::from),
        }
    }
}

/// The messages of one call, in the order in which they come.
pub(super) struct Messages {
    body: Incoming,
    coding: Coding,
    limit: usize,
    /// What has come and is not handed out. Only one of the two holds anything.
    piece: Bytes,
    gathered: BytesMut,
}

impl Messages {
    pub(super) fn new(body: Incoming, coding: Coding, limit: usize) -> Self {
        Self { body, coding, limit, piece: Bytes::new(), gathered: BytesMut::new() }
    }

    /// The next message; `None` when the client has sent its last. A message that came in one piece is not copied.
    pub(super) async fn next(&mut self) -> Result<Option<Packed>> {
        loop {
            if let Some(packed) = self.cut()? {
                return Ok(Some(packed));
            }
            match body::next(&mut self.body).await? {
                Some(piece) => self.hold(piece),
                None if self.piece.is_empty() && self.gathered.is_empty() => return Ok(None),
                None => return Err(Error::invalid("the call ended in the middle of a message")),
            }
        }
    }

    /// The one message of a call that has one, within the time for bodies.
    pub(super) async fn only(&mut self, limits: &Limits) -> Result<Packed> {
        timeout(limits.body_timeout(), self.next())
            .await
            .unwrap_or_else(|_| {
                let text = format!("the message was not complete after {} ms", limits.body_timeout_ms);
                Err(Error::new(Code::RequestTimeout, text))
            })?
            .ok_or_else(|| Error::invalid("the call has no message"))
    }

    /// Whether a message has begun and is not complete.
    pub(super) fn is_amid(&self) -> bool {
        !self.piece.is_empty() || !self.gathered.is_empty()
    }

    fn cut(&mut self) -> Result<Option<Packed>> {
        let held: &[u8] = if self.gathered.is_empty() { &self.piece } else { &self.gathered };
        let Some(([flag, length @ ..], rest)) = held.split_first_chunk::<PREFIX>() else { return Ok(None) };
        let length = u32::from_be_bytes(*length) as usize;
        if length > self.limit {
            return Err(body::too_large(&format!("has `{length}` bytes"), self.limit));
        }
        let coding = match flag {
            0 => None,
            1 => Some(self.coding.name().ok_or_else(|| {
                Error::invalid("a message says that it is packed, but the call has no `grpc-encoding`")
            })?),
            other => {
                return Err(Error::invalid(format!(
                    "a message begins with the flag `{other}`: expected 0 or 1"
                )));
            }
        };
        if rest.len() < length {
            let room = (PREFIX + length).min(FIRST_ROOM);
            self.gathered.reserve(room.saturating_sub(self.gathered.len()));
            return Ok(None);
        }
        if !self.gathered.is_empty() {
            self.piece = self.gathered.split().freeze();
        }
        self.piece.advance(PREFIX);
        Ok(Some(Packed { bytes: self.piece.split_to(length), coding }))
    }

    fn hold(&mut self, piece: Bytes) {
        if self.piece.is_empty() && self.gathered.is_empty() {
            self.piece = piece;
            return;
        }
        if self.gathered.is_empty() {
            self.gathered.extend_from_slice(&self.piece);
            self.piece = Bytes::new();
        }
        self.gathered.extend_from_slice(&piece);
    }
}

/// A buffer that has room for the prefix at its start.
pub(super) fn open_frame() -> Vec<u8> {
    vec![0; PREFIX]
}

/// Closes a buffer of [`open_frame`] behind which a message was written; packed as `coding` says where that is worth it.
pub(super) fn close_frame(frame: Vec<u8>, coding: Coding) -> Result<Bytes> {
    let message = frame.len().saturating_sub(PREFIX);
    if let Some(name) = coding.name() {
        let (packed, done) = codings::deflate_answer(name, Bytes::from(frame).slice(PREFIX..));
        let mut frame = Vec::with_capacity(PREFIX + packed.len());
        frame.push(u8::from(done.is_some()));
        frame.extend_from_slice(&length_of(packed.len())?);
        frame.extend_from_slice(&packed);
        return Ok(frame.into());
    }
    let mut frame = frame;
    let length = length_of(message)?;
    if let Some(place) = frame.get_mut(1..PREFIX) {
        place.copy_from_slice(&length);
    }
    Ok(frame.into())
}

fn length_of(message: usize) -> Result<[u8; 4]> {
    let length = u32::try_from(message).map_err(|_| {
        Error::internal(format!("the answer has {message} bytes, more than a message can have"))
    })?;
    Ok(length.to_be_bytes())
}
