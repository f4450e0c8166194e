//! The HTTP door: from an accepted connection to a route's handler and back. What an answer means is decided in
//! `infer` and `pages`; what it says in bytes is decided in `seatrial-protocol`.

mod answer;
mod body;
mod connection;
mod grpc;
mod infer;
pub(crate) mod listener;
mod openapi;
mod pages;
mod predict;
mod routes;
mod stream;

use std::{
    convert::Infallible,
    sync::{
        Arc,
        atomic::{
            AtomicUsize,
            Ordering::{Relaxed, SeqCst},
        },
    },
    time::{Duration, Instant},
};

use hyper::{
    Request, Response,
    body::{Body as _, Incoming},
    header::{CONNECTION, HeaderValue},
    server::conn::{http1, http2},
};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use seatrial_metrics::Registry;
use seatrial_types::{Result, Stage, Stages};
use tokio::sync::{Notify, Semaphore};

use self::{
    answer::Whole,
    routes::{Route, Verb},
    stream::Wire,
};
use crate::{
    catalog::Catalog,
    config::Limits,
    drain::Drain,
    metrics::{CLIENT_GONE, Finish, RequestCounts, ServerMetrics},
    repository::Repository,
};

/// What all connections of all IO threads share.
pub(crate) struct Door {
    pub(crate) limits: Limits,
    pub(crate) catalog: Catalog,
    /// Where versions are loaded and unloaded.
    pub(crate) repository: Repository,
    pub(crate) registry: Registry,
    pub(crate) metrics: ServerMetrics,
    pub(crate) drain: Drain,
    /// Somebody gave up waiting: what he left in the queue should go.
    pub(crate) abandoned: Notify,
    /// A listener was closed or the last connection has gone.
    emptier: Notify,
    http: http1::Builder,
    http2: http2::Builder<TokioExecutor>,
    /// The shortest of the time-outs, which is how often a connection looks at its clock.
    tick: Duration,
    /// IO threads that still accept.
    listeners: AtomicUsize,
    open: AtomicUsize,
    in_flight: AtomicUsize,
    /// Places for connections over the limit while they are told so.
    refusals: Arc<Semaphore>,
}

/// Connections over the limit that are told so at the same time.
const REFUSALS: usize = 64;

/// Calls of one HTTP/2 connection at the same time. Clients hold the rest back.
const STREAMS: u32 = 1024;

/// What a client may send of a message, and of all messages, before it was read: a large message is not held up by
/// the way to the client and back.
const STREAM_WINDOW: u32 = 1 << 20;
const CONNECTION_WINDOW: u32 = 4 << 20;

fn http2_of(limits: &Limits) -> http2::Builder<TokioExecutor> {
    let mut http2 = http2::Builder::new(TokioExecutor::new());
    http2
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS)
        // Cancelled calls are an everyday thing; only a flood of them is an attack.
        .max_pending_accept_reset_streams(STREAMS as usize)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_header_list_size(u32::try_from(limits.max_header_bytes).unwrap_or(u32::MAX))
        .keep_alive_interval(limits.idle_timeout())
        .keep_alive_timeout(limits.header_timeout())
        .auto_date_header(false);
    http2
}

/// A place among the open connections; given back when dropped.
struct Slot(Arc<Door>);

impl Door {
    pub(crate) fn new(
        limits: Limits,
        (catalog, repository): (Catalog, Repository),
        registry: Registry,
        metrics: ServerMetrics,
    ) -> Self {
        let mut http = http1::Builder::new();
        http.max_headers(limits.max_headers)
            .max_header_size(limits.max_header_bytes)
            .header_read_timeout(None);
        let http2 = http2_of(&limits);
        let tick = limits.header_timeout().min(limits.body_timeout()).min(limits.idle_timeout());
        Self {
            limits,
            catalog,
            repository,
            registry,
            metrics,
            drain: Drain::new(),
            abandoned: Notify::new(),
            emptier: Notify::new(),
            http,
            http2,
            tick,
            listeners: AtomicUsize::new(0),
            open: AtomicUsize::new(0),
            in_flight: AtomicUsize::new(0),
            refusals: Arc::new(Semaphore::new(REFUSALS)),
        }
    }

    /// Ready means: there is a model, every one is loaded, warmed up and has lately proved that it works, and nobody has
    /// asked the server to leave.
    pub(crate) fn is_ready(&self) -> bool {
        !self.drain.is_draining() && self.catalog.is_ready()
    }

    pub(crate) fn expect_listeners(&self, n: usize) {
        self.listeners.store(n, SeqCst);
    }

    /// Waits until nobody accepts any more and every connection is closed.
    pub(crate) async fn emptied(&self) {
        while self.listeners.load(SeqCst) > 0 || self.open.load(SeqCst) > 0 {
            self.emptier.notified().await;
        }
    }

    fn listener_closed(&self) {
        self.listeners.fetch_sub(1, SeqCst);
        self.emptier.notify_one();
    }

    pub(crate) fn in_flight(&self) -> usize {
        self.in_flight.load(Relaxed)
    }

    fn open_connection(self: &Arc<Self>) -> Option<Slot> {
        if self.open.fetch_add(1, SeqCst) >= self.limits.max_connections {
            self.open.fetch_sub(1, SeqCst);
            return None;
        }
        self.metrics.accepted.inc();
        self.metrics.connections.add(1.0);
        Some(Slot(self.clone()))
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.metrics.connections.add(-1.0);
        if self.0.open.fetch_sub(1, SeqCst) == 1 {
            self.0.emptier.notify_one();
        }
    }
}

/// A request that a handler has. When the client goes, the HTTP library drops the handler and this with it.
struct InHand {
    door: Arc<Door>,
    /// Where the request is counted; the model's once it is known.
    requests: Arc<RequestCounts>,
    /// An executor or the queue may hold the request.
    submitted: bool,
    answered: bool,
}

impl InHand {
    fn new(door: &Arc<Door>) -> Self {
        door.in_flight.fetch_add(1, Relaxed);
        door.metrics.in_flight.add(1.0);
        Self {
            door: door.clone(),
            requests: door.metrics.no_model.clone(),
            submitted: false,
            answered: false,
        }
    }
}

impl Drop for InHand {
    fn drop(&mut self) {
        self.door.in_flight.fetch_sub(1, Relaxed);
        self.door.metrics.in_flight.add(-1.0);
        if !self.answered {
            self.requests.count(CLIENT_GONE);
        }
        if self.submitted {
            self.door.abandoned.notify_one();
        }
    }
}

/// Answers one request.
async fn handle(
    door: Arc<Door>,
    wire: Arc<Wire>,
    request: Request<Incoming>,
) -> std::result::Result<Response<Whole>, Infallible> {
    let now = Instant::now();
    let mut stages = Stages::start(wire.begin_handling(now));
    stages.mark(Stage::Accept, now);
    let mut hand = InHand::new(&door);
    let (mut response, finish) = respond(&mut hand, &wire, request, stages).await;
    hand.answered = true;
    door.metrics.bytes_out.add(http_body::Body::size_hint(response.body()).lower());
    if door.drain.is_draining() {
        door.drain.note(response.status());
        close_after(&mut response);
    }
    wire.begin_writing(finish, Instant::now());
    Ok(response)
}

async fn respond(
    hand: &mut InHand,
    wire: &Wire,
    request: Request<Incoming>,
    stages: Stages,
) -> (Response<Whole>, Finish) {
    let (parts, mut body) = request.into_parts();
    let (mut response, inference) = match routes::route(parts.uri.path()) {
        Err(error) => (answer::refusal(&error), None),
        Ok(route) if !route.takes(&parts.method) => {
            (answer::method_not_allowed(&parts.method, route.allow()), None)
        }
        Ok(Route::Model { name, version, verb: Verb::Infer }) => {
            infer::infer(hand, (&name, version.as_deref()), (&parts.headers, &mut body), stages).await
        }
        Ok(Route::Model { name, version, verb: Verb::Predict }) => {
            predict::predict(hand, (&name, version.as_deref()), (&parts.headers, &mut body), stages).await
        }
        Ok(route) => {
            (page(&hand.door, &route, &mut body).await.unwrap_or_else(|e| answer::refusal(&e)), None)
        }
    };
    if !body.is_end_stream() {
        wire.note_unread();
        close_after(&mut response);
    }
    let finish = Finish { requests: hand.requests.clone(), status: response.status(), inference };
    (response, finish)
}

/// Everything but inference. Bodies of these routes are small by nature and are read only where one has a meaning.
async fn page(door: &Door, route: &Route<'_>, body: &mut Incoming) -> Result<Response<Whole>> {
    match route {
        Route::Server => Ok(pages::server(door)),
        Route::Live => Ok(pages::live(door)),
        Route::Ready => Ok(pages::ready(door)),
        Route::Models => Ok(pages::models(door)),
        Route::AllStats => Ok(pages::all_stats(door)),
        Route::Index => pages::index(door, &body::read(&door.limits, body).await?),
        Route::Load(name) => {
            let wanted = body::read(&door.limits, body).await?;
            pages::load(door, name, &wanted).await
        }
        Route::Unload(name) => {
            let wanted = body::read(&door.limits, body).await?;
            pages::unload(door, name, &wanted).await
        }
        Route::Metrics => Ok(pages::metrics(door)),
        Route::OpenApi => Ok(pages::openapi(door)),
        Route::Model { name, version, verb } => pages::model(door, name, version.as_deref(), *verb),
    }
}

fn close_after(response: &mut Response<Whole>) {
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
}
