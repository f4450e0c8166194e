//! The body of an answer: its messages, then the trailers that tell how the call went.

use std::{
    convert::Infallible,
    future::Future as _,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Instant,
};

use bytes::Bytes;
use http_body::{Body, Frame};
use hyper::{HeaderMap, Response, StatusCode, header::HeaderValue};
use seatrial_types::{Error, Result};
use tokio::{sync::mpsc, task::JoinHandle};

use super::{
    super::answer::{GRPC_STATUS, grpc_refusal},
    line::OnLine,
};
use crate::metrics::Finish;

/// An answer goes out in pieces of this size, so that a peer that does not read is noticed and costs no more.
const PIECE: usize = 64 << 10;

const GRPC: HeaderValue = HeaderValue::from_static("application/grpc");

/// Something a stream will send, in its turn.
pub(super) enum Next {
    /// A frame that is ready.
    Now(Bytes),
    /// A frame that is being made.
    Later(Pending),
    /// The end, other than a good one.
    End(Error),
}

/// An answer in the making and what is to be counted of it. Given up when dropped: the client has gone.
pub(super) struct Pending(pub(super) JoinHandle<(Bytes, Finish)>);

impl Drop for Pending {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Where the next message comes from.
enum Source {
    /// There is no other; the call went well.
    Last,
    /// They come bit by bit. Beside the queue the one whose turn it is.
    Queue(mpsc::Receiver<Next>, Option<Next>),
    /// Even the trailers are out.
    Done,
}

pub(super) struct Reply {
    /// What is left of the message that is on its way.
    left: Bytes,
    source: Source,
    /// What is to be counted of it.
    finish: Option<Finish>,
    call: OnLine,
}

impl Reply {
    /// One message.
    pub(super) fn one(frame: Bytes, finish: Finish, mut call: OnLine) -> Response<Self> {
        // The library does not ask for the message before the peer has room for it, which may be never.
        call.step(true);
        response(Self { left: frame, source: Source::Last, finish: Some(finish), call })
    }

    /// Messages as they come.
    pub(super) fn stream(next: mpsc::Receiver<Next>, call: OnLine) -> Response<Self> {
        response(Self { left: Bytes::new(), source: Source::Queue(next, None), finish: None, call })
    }

    /// No message, and why. The whole answer is its header.
    pub(super) fn refusal(error: &Error, finish: Finish, call: OnLine) -> Response<Self> {
        let mut response = response(Self { left: Bytes::new(), source: Source::Done, finish: None, call });
        grpc_refusal(error, response.headers_mut());
        finish.written(Instant::now());
        response
    }

    /// The answer to what is no gRPC.
    pub(super) fn foreign(status: StatusCode, finish: Finish, call: OnLine) -> Response<Self> {
        let mut response =
            Response::new(Self { left: Bytes::new(), source: Source::Done, finish: None, call });
        *response.status_mut() = status;
        finish.written(Instant::now());
        response
    }

    /// Bytes of the message that are not out.
    pub(super) fn size(&self) -> usize {
        self.left.len()
    }

    fn piece(&mut self) -> Frame<Bytes> {
        let piece = self.left.split_to(self.left.len().min(PIECE));
        self.call.step(true);
        Frame::data(piece)
    }

    /// The trailers, once there are no more messages.
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Frame<Bytes>>> {
        let outcome = match &mut self.source {
            Source::Done => return Poll::Ready(None),
            Source::Last => Ok(()),
            Source::Queue(queue, turn) => {
                if turn.is_none() {
                    *turn = ready!(queue.poll_recv(cx));
                }
                match turn {
                    None => Ok(()),
                    Some(Next::End(error)) => Err(error.clone()),
                    Some(Next::Now(frame)) => {
                        self.left = std::mem::take(frame);
                        *turn = None;
                        return Poll::Ready(Some(self.piece()));
                    }
                    Some(Next::Later(pending)) => match ready!(Pin::new(&mut pending.0).poll(cx)) {
                        Ok((frame, finish)) => {
                            (self.left, self.finish) = (frame, Some(finish));
                            *turn = None;
                            return Poll::Ready(Some(self.piece()));
                        }
                        Err(_) => Err(Error::internal("the request could not be processed")),
                    },
                }
            }
        };
        self.source = Source::Done;
        Poll::Ready(Some(trailers(outcome)))
    }
}

impl Drop for Reply {
    fn drop(&mut self) {
        if let Some(finish) = self.finish.take() {
            finish.lost();
        }
    }
}

fn response(reply: Reply) -> Response<Reply> {
    let mut response = Response::new(reply);
    response.headers_mut().insert(hyper::header::CONTENT_TYPE, GRPC);
    response
}

fn trailers(outcome: Result<()>) -> Frame<Bytes> {
    let mut trailers = HeaderMap::with_capacity(1);
    match outcome {
        Ok(()) => drop(trailers.insert(GRPC_STATUS, HeaderValue::from_static("0"))),
        Err(error) => grpc_refusal(&error, &mut trailers),
    }
    Frame::trailers(trailers)
}

impl Body for Reply {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<std::result::Result<Frame<Bytes>, Infallible>>> {
        if !self.left.is_empty() {
            return Poll::Ready(Some(Ok(self.piece())));
        }
        // The library asks again once the peer has room for all of the message before.
        self.call.step(false);
        if let Some(finish) = self.finish.take() {
            finish.written(Instant::now());
        }
        self.poll_next(cx).map(|frame| frame.map(Ok))
    }

    fn is_end_stream(&self) -> bool {
        self.left.is_empty() && matches!(self.source, Source::Done)
    }
}
