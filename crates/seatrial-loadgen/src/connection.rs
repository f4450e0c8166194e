//! One connection and the request on it. Non-blocking, edge-triggered; the attack decides, this only moves bytes.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use rustix::{
    event::epoll,
    fd::OwnedFd,
    io::Errno,
    net::{
        AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, bind, connect, ipproto, recv, send,
        socket_with, sockopt,
    },
};

use crate::{
    response::{Response, Step, Violation},
    row::Outcome,
};

/// Connections that share one source address. Far more than this to one port make the kernel's search for a free
/// source port slow enough to stall the timetable.
const PER_SOURCE: usize = 2048;
const SOURCES: usize = 16;

/// A connection's place in the pool, reused for one socket after the other.
#[derive(Debug)]
pub struct Connection {
    socket: Option<OwnedFd>,
    connected: bool,
    answered: bool,
    /// Distinguishes events of this socket from late events of its forerunner; the attack checks it.
    pub generation: u32,
    /// The request that is out.
    pub flight: Option<Flight>,
    /// The answer that is coming in.
    pub response: Response,
}

/// A request that is out.
#[derive(Clone, Copy, Debug)]
pub struct Flight {
    /// Its number in the run; tells a deadline apart from that of the next request in the same place.
    pub number: u64,
    /// When it was due.
    pub intended: i64,
    /// When the client began with it.
    pub sent: i64,
    /// When the first byte of the answer was there.
    pub first_byte: Option<i64>,
    /// Number of the entry.
    pub body: u32,
    /// Bytes written so far.
    pub written: usize,
    /// Bytes read so far.
    pub bytes_in: u64,
    /// Whether it has had its second try.
    pub retried: bool,
}

/// What came of moving bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Moved {
    /// Nothing to decide yet.
    Wait,
    /// The answer is whole.
    Answered,
    /// The request has failed.
    Failed(Outcome, String),
    /// The peer closed a reused connection before any byte of an answer: it may not have seen the request.
    Stale,
    /// An idle connection ended.
    IdleEnded,
}

impl Connection {
    /// A place without a socket; `bodyless` for HEAD.
    pub fn new(bodyless: bool) -> Self {
        Self {
            socket: None,
            connected: false,
            answered: false,
            generation: 0,
            flight: None,
            response: Response::new(bodyless),
        }
    }

    /// Whether there is a socket.
    pub const fn is_open(&self) -> bool {
        self.socket.is_some()
    }

    /// Begins to connect and tells epoll; the caller writes when the socket is connected.
    pub fn open(&mut self, epoll: &OwnedFd, slot: usize, target: SocketAddr) -> Result<(), Errno> {
        self.generation = self.generation.wrapping_add(1);
        let family = if target.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let socket = socket_with(family, SocketType::STREAM, flags, Some(ipproto::TCP))?;
        sockopt::set_tcp_nodelay(&socket, true)?;
        if let Some(source) = source(slot, target) {
            bind(&socket, &source)?;
        }
        self.connected = match connect(&socket, &target) {
            Ok(()) => true,
            Err(Errno::INPROGRESS) => false,
            Err(error) => return Err(error),
        };
        let interest =
            epoll::EventFlags::IN | epoll::EventFlags::OUT | epoll::EventFlags::RDHUP | epoll::EventFlags::ET;
        let token = u64::from(self.generation) << 32 | slot as u64;
        epoll::add(epoll, &socket, epoll::EventData::new_u64(token), interest)?;
        self.answered = false;
        self.response.reset();
        self.socket = Some(socket);
        Ok(())
    }

    /// Closes the socket; the place can be opened again.
    pub fn close(&mut self) {
        self.socket = None;
        self.connected = false;
    }

    /// Closes with a reset, so that a client that gives up leaves no port behind in `TIME_WAIT`.
    pub fn abort(&mut self) {
        if let Some(socket) = &self.socket {
            // The option only spares a port; without it the close is an ordinary one.
            let _ = sockopt::set_socket_linger(socket, Some(std::time::Duration::ZERO));
        }
        self.close();
    }

    /// Whether there is a socket without a request.
    pub const fn is_idle(&self) -> bool {
        self.socket.is_some() && self.flight.is_none()
    }

    /// Finishes a connect that was in progress.
    pub fn confirm(&mut self) -> Result<(), Errno> {
        if let (Some(socket), false) = (&self.socket, self.connected) {
            sockopt::socket_error(socket)??;
            self.connected = true;
        }
        Ok(())
    }

    /// Writes what is left of the request.
    pub fn write(&mut self, request: &[u8]) -> Moved {
        let (Some(socket), true, Some(flight)) = (&self.socket, self.connected, &mut self.flight) else {
            return Moved::Wait;
        };
        while let Some(rest) = request.get(flight.written..).filter(|rest| !rest.is_empty()) {
            match send(socket, rest, SendFlags::NOSIGNAL) {
                Ok(count) => flight.written += count,
                Err(Errno::AGAIN) => return Moved::Wait,
                Err(Errno::INTR) => {}
                Err(error) => return self.broken(&format!("the connection broke while writing: {error}")),
            }
        }
        Moved::Wait
    }

    /// Reads what is there, through a buffer that all connections share. With `to_the_end` the peer is known to have
    /// closed, and its last bytes and the end came in one event.
    pub fn read(&mut self, buffer: &mut [u8], to_the_end: bool, now: impl Fn() -> i64) -> Moved {
        loop {
            let Some(socket) = &self.socket else { return Moved::Wait };
            let count = match recv(socket, &mut *buffer, RecvFlags::empty()) {
                Ok((0, _)) => return self.end_of_stream(),
                Ok((count, _)) => count,
                Err(Errno::AGAIN) => return Moved::Wait,
                Err(Errno::INTR) => continue,
                Err(error) => return self.broken(&format!("the connection broke: {error}")),
            };
            let Some(flight) = &mut self.flight else { return Moved::IdleEnded };
            flight.first_byte.get_or_insert_with(&now);
            flight.bytes_in += count as u64;
            match self.response.feed(buffer.get(..count).unwrap_or_default()) {
                Ok(Step::Done) => return Moved::Answered,
                Err(Violation(why)) => return Moved::Failed(Outcome::Protocol, why.to_owned()),
                // Edge-triggered: a full buffer may have left bytes behind, a short read has not; what comes after it,
                // the end included, is an event of its own.
                Ok(Step::More) if count < buffer.len() && !to_the_end => return Moved::Wait,
                Ok(Step::More) => {}
            }
        }
    }

    /// Makes the connection ready for its next request; returns whether it is fit for one.
    pub fn settle(&mut self, request_bytes: usize) -> bool {
        let whole = self.flight.take().is_some_and(|flight| flight.written >= request_bytes);
        let fit = whole && self.response.reusable();
        self.answered = true;
        self.response.reset();
        if !fit {
            self.close();
        }
        fit
    }

    fn end_of_stream(&mut self) -> Moved {
        match &self.flight {
            None => Moved::IdleEnded,
            Some(flight) if flight.bytes_in > 0 => match self.response.end_of_stream() {
                Ok(()) => Moved::Answered,
                Err(Violation(why)) => Moved::Failed(Outcome::Reset, why.to_owned()),
            },
            Some(_) => self.broken("the connection was closed without an answer"),
        }
    }

    fn broken(&self, why: &str) -> Moved {
        match &self.flight {
            None => Moved::IdleEnded,
            Some(flight) if self.answered && !flight.retried && flight.bytes_in == 0 => Moved::Stale,
            Some(_) => Moved::Failed(Outcome::Reset, why.to_owned()),
        }
    }
}

/// The source address of a place in the pool; `None` leaves the choice to the kernel.
fn source(slot: usize, target: SocketAddr) -> Option<SocketAddr> {
    let loopback = matches!(target.ip(), IpAddr::V4(address) if address.is_loopback());
    let block = slot / PER_SOURCE;
    (loopback && block > 0).then(|| {
        let last = u8::try_from((block - 1) % SOURCES + 1).unwrap_or(1);
        SocketAddr::from((Ipv4Addr::new(127, 0, 1, last), 0))
    })
}
