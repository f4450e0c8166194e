//! One connection from accept to close: drives the HTTP library, keeps the time-outs that it lacks, and says in our
//! own form what is wrong with a request that never reached a route.

use std::{
    pin::pin,
    sync::Arc,
    time::{Duration, Instant},
};

use hyper::{StatusCode, service::service_fn};
use hyper_util::rt::TokioIo;
use rustix::net::Shutdown;
use seatrial_protocol::error_body;
use seatrial_types::{Code, Error};
use tokio::time::{Sleep, sleep, timeout};

use super::{
    Door, handle,
    stream::{Phase, Socket, Wire},
};
use crate::drain::Stage;

/// While draining, how long a kept-alive connection must have been silent before it is closed: a client that is about
/// to send its next request gets an answer and `Connection: close` instead of a reset.
const QUIET: Duration = Duration::from_millis(500);

/// How long, and for how many bytes, a peer is listened to after the last answer, so that what it still sends does
/// not reset the connection and take the answer away.
const LINGER: Duration = Duration::from_secs(2);
const LINGER_BYTES: usize = 4 << 20;

/// How long a peer may take to receive an answer of ours that does not pass through the HTTP library.
const OWN_ANSWER: Duration = Duration::from_secs(1);

/// Why a connection ended.
enum End {
    Http(hyper::Result<()>),
    /// Nothing came for too long, or long enough in a drain.
    Quiet,
    SlowHeader,
    SlowReader,
}

/// Serves one connection until its end.
pub(crate) async fn serve(door: &Arc<Door>, wire: Arc<Wire>) {
    let end = drive(door, &wire).await;
    let unanswered = matches!(wire.phase(), Phase::Idle | Phase::Header);
    wire.end();
    let own = if unanswered { complaint(door, &end) } else { None };
    if let Some((status, error)) = &own {
        door.metrics.no_model.count(status.as_u16());
        send(&wire, &raw_answer(*status, error, "")).await;
    }
    let _ = rustix::net::shutdown(wire.stream(), Shutdown::Write);
    if own.is_some() || wire.has_unread() {
        let _ = timeout(LINGER, discard(&wire)).await;
    }
}

/// Turns away a connection for which there is no room.
pub(crate) async fn refuse(door: &Door, wire: &Wire) {
    let limit = door.limits.max_connections;
    let error = Error::new(Code::Unavailable, format!("{limit} connections are open, which is the limit"));
    door.metrics.no_model.count(StatusCode::SERVICE_UNAVAILABLE.as_u16());
    send(wire, &raw_answer(StatusCode::SERVICE_UNAVAILABLE, &error, "retry-after: 1\r\n")).await;
    let _ = rustix::net::shutdown(wire.stream(), Shutdown::Write);
    let _ = timeout(LINGER, discard(wire)).await;
}

async fn drive(door: &Arc<Door>, wire: &Arc<Wire>) -> End {
    let service = service_fn(|request| handle(door.clone(), wire.clone(), request));
    let mut connection = pin!(door.http.serve_connection(TokioIo::new(Socket(wire.clone())), service));
    let mut stage = door.drain.watch();
    let mut closing = door.drain.closing_since();
    let mut timer = pin!(sleep(door.tick));
    loop {
        tokio::select! {
            biased;
            result = connection.as_mut() => return End::Http(result),
            _ = stage.wait_for(|stage| *stage >= Stage::Closing), if closing.is_none() => {
                closing = Some(Instant::now());
            }
            () = timer.as_mut() => {}
        }
        match overdue(door, wire, closing) {
            Some(end) => return end,
            None => rearm(door, wire, closing, timer.as_mut()),
        }
    }
}

/// When the connection must have moved on, and what it is guilty of if it has not. Handlers have deadlines of their
/// own.
fn deadline(door: &Door, wire: &Wire, closing: Option<Instant>) -> Option<(Instant, End)> {
    let limits = &door.limits;
    let since = wire.since();
    match wire.phase() {
        Phase::Idle => {
            let idle = since + limits.idle_timeout();
            Some((closing.map_or(idle, |closing| idle.min(since.max(closing) + QUIET)), End::Quiet))
        }
        Phase::Header => Some((since + limits.header_timeout(), End::SlowHeader)),
        Phase::Handling => None,
        Phase::Writing => Some((since + limits.body_timeout(), End::SlowReader)),
    }
}

fn overdue(door: &Door, wire: &Wire, closing: Option<Instant>) -> Option<End> {
    deadline(door, wire, closing).filter(|(at, _)| *at <= Instant::now()).map(|(_, end)| end)
}

/// Sets the timer to the deadline, but not further off than the shortest time-out: a phase that begins meanwhile is
/// then still seen in time, and no phase has to touch the timer.
fn rearm(door: &Door, wire: &Wire, closing: Option<Instant>, timer: std::pin::Pin<&mut Sleep>) {
    let latest = Instant::now() + if closing.is_some() { door.tick.min(QUIET) } else { door.tick };
    let at = deadline(door, wire, closing).map_or(latest, |(at, _)| at.min(latest));
    timer.reset(at.into());
}

/// What to tell a client whose request never reached a route.
fn complaint(door: &Door, end: &End) -> Option<(StatusCode, Error)> {
    let limits = &door.limits;
    match end {
        End::SlowHeader => {
            let text = format!("the request header was not complete after {} ms", limits.header_timeout_ms);
            Some((StatusCode::REQUEST_TIMEOUT, Error::new(Code::RequestTimeout, text)))
        }
        End::Http(Err(e)) if e.is_parse_too_large() => {
            let text = format!(
                "the request header is too large: expected at most {} bytes and {} lines",
                limits.max_header_bytes, limits.max_headers
            );
            Some((StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, Error::invalid(text)))
        }
        End::Http(Err(e)) if e.is_parse_version_h2() => Some((
            StatusCode::BAD_REQUEST,
            Error::invalid("HTTP/2 is not spoken on this port: expected HTTP/1.1 or HTTP/1.0"),
        )),
        End::Http(Err(e)) if e.is_parse() => {
            Some((StatusCode::BAD_REQUEST, Error::invalid(format!("this is no valid HTTP/1.1 request: {e}"))))
        }
        _ => None,
    }
}

fn raw_answer(status: StatusCode, error: &Error, more: &str) -> Vec<u8> {
    let body = error_body(error);
    let mut out = format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n{more}connection: close\r\n\r\n",
        body.len()
    )
    .into_bytes();
    out.extend_from_slice(&body);
    out
}

async fn send(wire: &Wire, bytes: &[u8]) {
    let write = async {
        let mut rest = bytes;
        while !rest.is_empty() {
            wire.stream().writable().await?;
            match wire.stream().try_write(rest) {
                Ok(n) => rest = rest.get(n..).unwrap_or_default(),
                Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => {}
                Err(e) => return Err(e),
            }
        }
        Ok(())
    };
    // The client may be gone; then there is nobody left to tell.
    let _ = timeout(OWN_ANSWER, write).await;
}

async fn discard(wire: &Wire) {
    // On the heap: as part of the task it would be there for every connection's whole life.
    let mut room = vec![0; 16 << 10];
    let mut total = 0;
    while total < LINGER_BYTES && wire.stream().readable().await.is_ok() {
        match wire.stream().try_read(&mut room) {
            Ok(0) => return,
            Ok(n) => total += n,
            Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(_) => return,
        }
    }
}
