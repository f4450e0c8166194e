//! The socket under one connection and what is known of it: which phase of a request it is in, and since when. The
//! phases carry the time-outs that the HTTP library lacks, and an answer counts as written when the socket took it.

use std::{
    io::{self, IoSlice},
    pin::Pin,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering::Relaxed},
    },
    task::{Context, Poll, ready},
    time::{Duration, Instant},
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
};

use crate::metrics::Finish;

/// Where a connection stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Phase {
    /// Nothing of a request has come yet.
    Idle,
    /// The first byte of a request is here, its header is not complete.
    Header,
    /// A handler has the request.
    Handling,
    /// The answer is on its way to the socket.
    Writing,
}

/// One connection. All of it is used by the one task that drives the connection; the atomics only satisfy the
/// compiler and are never contended.
#[derive(Debug)]
pub(crate) struct Wire {
    stream: TcpStream,
    opened: Instant,
    phase: AtomicU8,
    /// Nanoseconds from `opened` to the last change of phase or, while writing, the last step forward.
    since: AtomicU64,
    /// What has come may not all have been read: closing must wait for the peer, or a reset could take the answer
    /// away from it.
    unread: AtomicBool,
    /// The answer being written, to be counted when it is out.
    finish: Mutex<Option<Finish>>,
}

impl Wire {
    pub(crate) fn new(stream: TcpStream) -> Self {
        Self {
            stream,
            opened: Instant::now(),
            phase: AtomicU8::new(Phase::Idle as u8),
            since: AtomicU64::new(0),
            unread: AtomicBool::new(false),
            finish: Mutex::new(None),
        }
    }

    pub(crate) fn stream(&self) -> &TcpStream {
        &self.stream
    }

    pub(crate) fn phase(&self) -> Phase {
        match self.phase.load(Relaxed) {
            1 => Phase::Header,
            2 => Phase::Handling,
            3 => Phase::Writing,
            _ => Phase::Idle,
        }
    }

    pub(crate) fn since(&self) -> Instant {
        self.opened + Duration::from_nanos(self.since.load(Relaxed))
    }

    pub(crate) fn note_unread(&self) {
        self.unread.store(true, Relaxed);
    }

    pub(crate) fn has_unread(&self) -> bool {
        self.unread.load(Relaxed)
    }

    /// The header is complete: gives the moment its first byte was seen.
    pub(crate) fn begin_handling(&self, now: Instant) -> Instant {
        let started = if self.phase() == Phase::Header { self.since() } else { now };
        self.enter(Phase::Handling, now);
        started
    }

    /// The answer is ready; `finish` is completed when the socket has taken it.
    pub(crate) fn begin_writing(&self, finish: Finish, now: Instant) {
        self.enter(Phase::Writing, now);
        let earlier = self.finish.lock().unwrap_or_else(PoisonError::into_inner).replace(finish);
        if let Some(earlier) = earlier {
            earlier.written(now);
        }
    }

    /// The connection is over: an answer that is not out by now has not reached anybody.
    pub(crate) fn end(&self) {
        if let Some(finish) = self.finish.lock().unwrap_or_else(PoisonError::into_inner).take() {
            finish.lost();
        }
    }

    fn enter(&self, phase: Phase, now: Instant) {
        self.phase.store(phase as u8, Relaxed);
        self.touch(now);
    }

    fn touch(&self, now: Instant) {
        let nanos = now.saturating_duration_since(self.opened).as_nanos();
        self.since.store(u64::try_from(nanos).unwrap_or(u64::MAX), Relaxed);
    }

    /// Everything buffered is out. With pipelined requests the next one may be in hand by then.
    fn flushed(&self) {
        let finish = self.finish.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(finish) = finish else { return };
        let now = Instant::now();
        if self.phase() == Phase::Writing {
            self.enter(Phase::Idle, now);
        }
        finish.written(now);
    }

    /// The HTTP library answers a malformed header on its own, with an empty body. That is swallowed here, and
    /// `connection` sends an answer in our form instead.
    fn swallows(&self) -> bool {
        matches!(self.phase(), Phase::Idle | Phase::Header)
    }

    fn poll_try_write(
        &self,
        cx: &mut Context<'_>,
        write: impl Fn(&TcpStream) -> io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        loop {
            ready!(self.stream.poll_write_ready(cx))?;
            match write(&self.stream) {
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                Ok(n) => {
                    if self.phase() == Phase::Writing {
                        self.touch(Instant::now());
                    }
                    return Poll::Ready(Ok(n));
                }
                Err(e) => return Poll::Ready(Err(e)),
            }
        }
    }
}

/// The face of a [`Wire`] for the HTTP library.
#[derive(Debug)]
pub(crate) struct Socket(pub(crate) Arc<Wire>);

impl AsyncRead for Socket {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let wire = &self.0;
        loop {
            ready!(wire.stream.poll_read_ready(cx))?;
            match wire.stream.try_read_buf(buf) {
                Ok(n) => {
                    if n > 0 && wire.phase() == Phase::Idle {
                        wire.enter(Phase::Header, Instant::now());
                    }
                    return Poll::Ready(Ok(()));
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                Err(e) => return Poll::Ready(Err(e)),
            }
        }
    }
}

impl AsyncWrite for Socket {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        if self.0.swallows() {
            return Poll::Ready(Ok(buf.len()));
        }
        self.0.poll_try_write(cx, |stream| stream.try_write(buf))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if self.0.swallows() {
            return Poll::Ready(Ok(bufs.iter().map(|b| b.len()).sum()));
        }
        self.0.poll_try_write(cx, |stream| stream.try_write_vectored(bufs))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.flushed();
        Poll::Ready(Ok(()))
    }

    /// Nothing: `connection` shuts the socket down, because it may have an answer of its own to send before.
    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
