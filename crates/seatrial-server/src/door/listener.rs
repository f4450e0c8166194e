//! The accept loop of one IO thread. All IO threads share one listening socket.

use std::{
    io,
    net::{self, SocketAddr},
    sync::Arc,
    time::{Duration, Instant},
};

use socket2::{SockFilter, SockRef};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch,
    time::{sleep, timeout},
};

use super::{Door, connection, grpc, stream::Wire};
use crate::drain::Stage;

/// Connections that the kernel holds for us until they are accepted.
const BACKLOG: i32 = 4096;

/// How long to rest when the process has no descriptors left.
const EXHAUSTED_PAUSE: Duration = Duration::from_millis(20);

/// When the door closes, how long those are let in at most who stand before it, and how long nobody must have come
/// for the line to be empty.
const LAST_CALL: Duration = Duration::from_millis(50);
const NOBODY_LEFT: Duration = Duration::from_millis(1);

/// Binds the port. `std` asks for the backlog of 128 that a burst of clients overruns, so it is asked for again.
pub(crate) fn bind(host: &str, port: u16) -> io::Result<net::TcpListener> {
    let listener = net::TcpListener::bind((host, port))?;
    rustix::net::listen(&listener, BACKLOG)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// What is spoken behind a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tongue {
    Http,
    Grpc,
}

/// The listening sockets of the server.
pub(crate) struct Listeners {
    /// For HTTP.
    pub(crate) http: net::TcpListener,
    /// For gRPC, where it is wanted.
    pub(crate) grpc: Option<net::TcpListener>,
}

impl Listeners {
    /// The same sockets for one more thread.
    pub(crate) fn try_clone(&self) -> io::Result<Self> {
        let grpc = self.grpc.as_ref().map(net::TcpListener::try_clone).transpose()?;
        Ok(Self { http: self.http.try_clone()?, grpc })
    }
}

/// The life of one IO thread: accepts until the drain closes the doors, then takes in those that the kernel has
/// accepted for us already, and drives the connections until the drain is over.
pub(crate) async fn run(listeners: Listeners, door: Arc<Door>) {
    let grpc = async {
        if let Some(listener) = listeners.grpc {
            listen(listener, &door, Tongue::Grpc).await;
        }
    };
    tokio::join!(listen(listeners.http, &door, Tongue::Http), grpc);
    door.listener_closed();
    door.drain.reached(Stage::Over).await;
}

async fn listen(listener: net::TcpListener, door: &Arc<Door>, tongue: Tongue) {
    match TcpListener::from_std(listener) {
        Ok(listener) => accept(&listener, door, tongue).await,
        Err(e) => eprintln!("the listener is lost: {e}"),
    }
}

async fn accept(listener: &TcpListener, door: &Arc<Door>, tongue: Tongue) {
    let mut stage = door.drain.watch();
    loop {
        tokio::select! {
            accepted = listener.accept() => take(door, accepted, tongue).await,
            () = closing(&mut stage) => break,
        }
    }
    if let Err(e) = bar(listener) {
        eprintln!("the listener takes connections until it is closed: {e}");
    }
    let end = Instant::now() + LAST_CALL;
    while Instant::now() < end
        && let Ok(accepted) = timeout(NOBODY_LEFT, listener.accept()).await
    {
        take(door, accepted, tongue).await;
    }
}

/// Lets no new connection come about on the socket while those that stand before it are let in. Otherwise the kernel
/// would go on to accept for us, and reset whoever came between the last call and the closing, a request already
/// sent with him. Whoever knocks from now on gets no answer until the socket is closed and then a refusal: he has
/// lost nothing. A packet filter of one instruction: return 0, which drops the packet (Linux, socket filters).
fn bar(listener: &TcpListener) -> io::Result<()> {
    const RETURN: u16 = 0x06;
    SockRef::from(listener).attach_filter(&[SockFilter::new(RETURN, 0, 0, 0)])
}

async fn closing(stage: &mut watch::Receiver<Stage>) {
    // An error means that the sender has gone, which is the end as well.
    let _ = stage.wait_for(|stage| *stage >= Stage::Closing).await;
}

async fn take(door: &Arc<Door>, accepted: io::Result<(TcpStream, SocketAddr)>, tongue: Tongue) {
    match accepted {
        Ok((stream, _)) => admit(door, stream, tongue),
        // The peer went before it was accepted.
        Err(e) if e.kind() == io::ErrorKind::ConnectionAborted => {}
        Err(_) => {
            door.metrics.accept_errors.inc();
            sleep(EXHAUSTED_PAUSE).await;
        }
    }
}

fn admit(door: &Arc<Door>, stream: TcpStream, tongue: Tongue) {
    // Without it an answer would wait for the acknowledgement of the one before. A failure only costs time.
    let _ = stream.set_nodelay(true);
    let door = door.clone();
    match (door.open_connection(), tongue) {
        (Some(slot), Tongue::Http) => drop(tokio::spawn(async move {
            connection::serve(&door, Arc::new(Wire::new(stream))).await;
            drop(slot);
        })),
        (Some(slot), Tongue::Grpc) => drop(tokio::spawn(async move {
            grpc::connection::serve(&door, stream).await;
            drop(slot);
        })),
        (None, _) => refuse(door, stream, tongue),
    }
}

/// Turns away a connection for which there is no room.
fn refuse(door: Arc<Door>, stream: TcpStream, tongue: Tongue) {
    door.metrics.refused.inc();
    // Only so many are told why; beyond that the connection is just closed, which says it all over gRPC.
    if tongue == Tongue::Http
        && let Ok(place) = door.refusals.clone().try_acquire_owned()
    {
        let wire = Wire::new(stream);
        tokio::spawn(async move {
            connection::refuse(&door, &wire).await;
            drop(place);
        });
    }
}
