//! One HTTP/2 connection from accept to close, with the time-outs that the HTTP library lacks.

use std::{
    pin::pin,
    sync::Arc,
    time::{Duration, Instant},
};

use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::{net::TcpStream, time::sleep};

use super::{
    super::Door,
    handle,
    line::{Line, Port},
};
use crate::drain::Stage;

/// How long a peer that was asked to leave may stay without a call. It is told which calls still count, and answers.
const FAREWELL: Duration = Duration::from_millis(500);

/// What is to be done with a connection whose time is up.
enum Due {
    /// Nothing until then.
    At(Instant),
    /// Tell the peer to leave; calls that are here or on their way are still answered.
    Leave,
    /// Cut it.
    Cut,
}

/// Serves one connection until its end.
pub(in crate::door) async fn serve(door: &Arc<Door>, stream: TcpStream) {
    let line = Arc::new(Line::new());
    let service = {
        let (door, line) = (door.clone(), line.clone());
        service_fn(move |request| handle(door.clone(), line.clone(), request))
    };
    let port = TokioIo::new(Port { stream, line: line.clone() });
    let mut connection = pin!(door.http2.serve_connection(port, service));
    let mut stage = door.drain.watch();
    let mut closing = door.drain.closing_since().is_some();
    let mut left = None;
    let mut timer = pin!(sleep(door.tick));
    loop {
        tokio::select! {
            biased;
            // However it ends, whoever is left to tell was told by the library.
            _ = connection.as_mut() => return,
            _ = stage.wait_for(|stage| *stage >= Stage::Closing), if !closing => closing = true,
            () = timer.as_mut() => {}
        }
        if closing && left.is_none() {
            left = Some(Instant::now());
            connection.as_mut().graceful_shutdown();
        }
        match due(door, &line, left) {
            Due::At(at) => timer.as_mut().reset(at.into()),
            Due::Leave => {
                left = Some(Instant::now());
                connection.as_mut().graceful_shutdown();
                timer.as_mut().reset((Instant::now() + FAREWELL).into());
            }
            Due::Cut => return,
        }
    }
}

/// Not further off than the shortest time-out, so that no call has to touch the timer.
fn due(door: &Door, line: &Line, left: Option<Instant>) -> Due {
    let (limits, since) = (&door.limits, line.since());
    let (at, then) = if !line.has_begun() {
        (since + limits.header_timeout(), Due::Cut)
    } else if line.is_writing() {
        (since + limits.body_timeout(), Due::Cut)
    } else if !line.is_idle() {
        (Instant::now() + door.tick, Due::Cut)
    } else if let Some(left) = left {
        (since.max(left) + FAREWELL, Due::Cut)
    } else {
        (since + limits.idle_timeout(), Due::Leave)
    };
    let now = Instant::now();
    if at <= now { then } else { Due::At(at.min(now + door.tick)) }
}
