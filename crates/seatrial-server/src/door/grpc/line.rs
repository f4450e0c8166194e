//! One HTTP/2 connection: what is known of it for its time-outs, and the socket under it.

use std::{
    io::{self, IoSlice},
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed},
    },
    task::{Context, Poll, ready},
    time::{Duration, Instant},
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
};

/// What a client sends before anything else.
const PREFACE_BYTES: u64 = 24;

/// All of it is used by tasks of one thread; the atomics only satisfy the compiler and are never contended.
#[derive(Debug)]
pub(super) struct Line {
    opened: Instant,
    /// Calls from their header to the end of their answer.
    calls: AtomicUsize,
    /// Answers that are ready and of which the peer has not taken all.
    unfinished: AtomicUsize,
    /// Bytes that have come, counted until the preface is known to be complete.
    received: AtomicU64,
    /// Nanoseconds from `opened` to the last call, end of a call, or step forward of an answer.
    since: AtomicU64,
}

impl Line {
    pub(super) fn new() -> Self {
        Self {
            opened: Instant::now(),
            calls: AtomicUsize::new(0),
            unfinished: AtomicUsize::new(0),
            received: AtomicU64::new(0),
            since: AtomicU64::new(0),
        }
    }

    pub(super) fn since(&self) -> Instant {
        self.opened + Duration::from_nanos(self.since.load(Relaxed))
    }

    pub(super) fn is_idle(&self) -> bool {
        self.calls.load(Relaxed) == 0
    }

    pub(super) fn is_writing(&self) -> bool {
        self.unfinished.load(Relaxed) > 0
    }

    /// Whether the peer has said that it speaks HTTP/2.
    pub(super) fn has_begun(&self) -> bool {
        self.received.load(Relaxed) >= PREFACE_BYTES
    }

    fn touch(&self) {
        let nanos = self.opened.elapsed().as_nanos();
        self.since.store(u64::try_from(nanos).unwrap_or(u64::MAX), Relaxed);
    }
}

/// A call on its line, from its header to the end of its answer.
#[derive(Debug)]
pub(super) struct OnLine {
    line: Arc<Line>,
    unfinished: bool,
}

impl OnLine {
    pub(super) fn new(line: &Arc<Line>) -> Self {
        line.calls.fetch_add(1, Relaxed);
        line.touch();
        Self { line: line.clone(), unfinished: false }
    }

    /// The answer is ready or a part of it was taken; `more` of it waits for the peer.
    pub(super) fn step(&mut self, more: bool) {
        self.line.touch();
        if more != self.unfinished {
            let counter = &self.line.unfinished;
            if more {
                counter.fetch_add(1, Relaxed)
            } else {
                counter.fetch_sub(1, Relaxed)
            };
            self.unfinished = more;
        }
    }
}

impl Drop for OnLine {
    fn drop(&mut self) {
        self.step(false);
        self.line.calls.fetch_sub(1, Relaxed);
    }
}

/// The socket, for the HTTP library.
#[derive(Debug)]
pub(super) struct Port {
    pub(super) stream: TcpStream,
    pub(super) line: Arc<Line>,
}

impl AsyncRead for Port {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buf))?;
        if !self.line.has_begun() {
            self.line.received.fetch_add((buf.filled().len() - before) as u64, Relaxed);
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Port {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
