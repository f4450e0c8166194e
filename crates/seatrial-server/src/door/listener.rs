//! The accept loop of one IO thread. All IO threads share one listening socket.

use std::{
    io,
    net::{self, SocketAddr},
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch,
    time::{sleep, timeout},
};

use super::{Door, connection, stream::Wire};
use crate::drain::Stage;

/// Connections that the kernel holds for us until they are accepted.
const BACKLOG: i32 = 4096;

/// How long to rest when the process has no descriptors left.
const EXHAUSTED_PAUSE: Duration = Duration::from_millis(20);

/// When the door closes, how long those are let in who stand before it, and how long nobody must have come for the
/// line to be empty. Whoever comes later is refused by the kernel and has lost nothing.
const LAST_CALL: Duration = Duration::from_millis(50);
const NOBODY_LEFT: Duration = Duration::from_millis(1);

/// Binds the port. `std` asks for the backlog of 128 that a burst of clients overruns, so it is asked for again.
pub(crate) fn bind(host: &str, port: u16) -> io::Result<net::TcpListener> {
    let listener = net::TcpListener::bind((host, port))?;
    rustix::net::listen(&listener, BACKLOG)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// The life of one IO thread: accepts until the drain closes the door, then takes in those that the kernel has
/// accepted for us already, and drives the connections until the drain is over.
pub(crate) async fn run(listener: net::TcpListener, door: Arc<Door>) {
    match TcpListener::from_std(listener) {
        Ok(listener) => accept(&listener, &door).await,
        Err(e) => eprintln!("the listener is lost: {e}"),
    }
    door.listener_closed();
    door.drain.reached(Stage::Over).await;
}

async fn accept(listener: &TcpListener, door: &Arc<Door>) {
    let mut stage = door.drain.watch();
    loop {
        tokio::select! {
            accepted = listener.accept() => take(door, accepted).await,
            () = closing(&mut stage) => break,
        }
    }
    let end = Instant::now() + LAST_CALL;
    while Instant::now() < end
        && let Ok(accepted) = timeout(NOBODY_LEFT, listener.accept()).await
    {
        take(door, accepted).await;
    }
}

async fn closing(stage: &mut watch::Receiver<Stage>) {
    // An error means that the sender has gone, which is the end as well.
    let _ = stage.wait_for(|stage| *stage >= Stage::Closing).await;
}

async fn take(door: &Arc<Door>, accepted: io::Result<(TcpStream, SocketAddr)>) {
    match accepted {
        Ok((stream, _)) => admit(door, stream),
        // The peer went before it was accepted.
        Err(e) if e.kind() == io::ErrorKind::ConnectionAborted => {}
        Err(_) => {
            door.metrics.accept_errors.inc();
            sleep(EXHAUSTED_PAUSE).await;
        }
    }
}

fn admit(door: &Arc<Door>, stream: TcpStream) {
    // Without it an answer would wait for the acknowledgement of the one before. A failure only costs time.
    let _ = stream.set_nodelay(true);
    let wire = Arc::new(Wire::new(stream));
    let door = door.clone();
    if let Some(slot) = door.open_connection() {
        tokio::spawn(async move {
            connection::serve(&door, wire).await;
            drop(slot);
        });
        return;
    }
    door.metrics.refused.inc();
    // Only so many are told why; beyond that the connection is just closed.
    if let Ok(place) = door.refusals.clone().try_acquire_owned() {
        tokio::spawn(async move {
            connection::refuse(&door, &wire).await;
            drop(place);
        });
    }
}
