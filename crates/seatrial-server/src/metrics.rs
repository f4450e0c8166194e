//! What the door counts. Handles are made once per model, so that a request costs atomic additions and no lookup.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use hyper::StatusCode;
use seatrial_metrics::{Counter, Gauge, Histogram, Registry, RegistryError};
use seatrial_protocol::{IndexEntry, ModelState};
use seatrial_types::{Stage, Stages};

/// Every status that an answer of this server can have; 499 stands for clients that went before their answer.
const STATUSES: [u16; 16] = [200, 400, 404, 405, 408, 413, 414, 415, 429, 431, 499, 500, 501, 503, 504, 0];

/// Edges of a single stage in seconds, from 5 microseconds: most stages of a small request end there.
const STAGE_EDGES: [f64; 19] = [
    0.000_005, 0.000_01, 0.000_025, 0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025,
    0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0,
];

/// Figures of the whole server.
#[derive(Debug)]
pub(crate) struct ServerMetrics {
    pub(crate) connections: Arc<Gauge>,
    pub(crate) accepted: Arc<Counter>,
    pub(crate) refused: Arc<Counter>,
    pub(crate) accept_errors: Arc<Counter>,
    pub(crate) bytes_in: Arc<Counter>,
    pub(crate) bytes_out: Arc<Counter>,
    pub(crate) in_flight: Arc<Gauge>,
    /// Requests that belong to no model: health, metadata, unknown paths, malformed headers.
    pub(crate) no_model: Arc<RequestCounts>,
    /// Time of loads while the server runs.
    pub(crate) load_seconds: Arc<Histogram>,
}

/// How a call to load a model ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LoadOutcome {
    /// A new version is active.
    Loaded,
    /// A resident version is active that was not before.
    Activated,
    /// It was the active version already.
    Unchanged,
    /// Nothing has changed.
    Failed,
}

impl LoadOutcome {
    const ALL: [Self; 4] = [Self::Loaded, Self::Activated, Self::Unchanged, Self::Failed];

    const fn name(self) -> &'static str {
        match self {
            Self::Loaded => "loaded",
            Self::Activated => "activated",
            Self::Unchanged => "unchanged",
            Self::Failed => "failed",
        }
    }
}

/// The states of a version in the repository index.
const STATES: [(ModelState, &str); 4] = [
    (ModelState::Ready, "ready"),
    (ModelState::Loading, "loading"),
    (ModelState::Unloading, "unloading"),
    (ModelState::Unavailable, "unavailable"),
];

/// Edges of the time to load in seconds.
const LOAD_EDGES: [f64; 12] = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 120.0];

/// Answers by status, of one model or of none.
#[derive(Debug)]
pub(crate) struct RequestCounts([Arc<Counter>; STATUSES.len()]);

/// Figures of one model.
#[derive(Debug)]
pub(crate) struct ModelMetrics {
    pub(crate) requests: Arc<RequestCounts>,
    request_seconds: Arc<Histogram>,
    stage_seconds: [Arc<Histogram>; Stage::ALL.len()],
    totals: Totals,
}

/// Sums for the statistics extension of the protocol. Times are in nanoseconds.
#[derive(Debug, Default)]
struct Totals {
    success: Span,
    fail: Span,
    queue_ns: AtomicU64,
    input_ns: AtomicU64,
    infer_ns: AtomicU64,
    output_ns: AtomicU64,
    rows: AtomicU64,
    last_inference_ms: AtomicU64,
}

#[derive(Debug, Default)]
struct Span {
    count: AtomicU64,
    ns: AtomicU64,
}

/// One reading of [`Totals`].
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Statistics {
    pub(crate) success: (u64, u64),
    pub(crate) fail: (u64, u64),
    pub(crate) queue_ns: u64,
    pub(crate) input_ns: u64,
    pub(crate) infer_ns: u64,
    pub(crate) output_ns: u64,
    pub(crate) rows: u64,
    pub(crate) last_inference_ms: u64,
}

impl ServerMetrics {
    pub(crate) fn register(registry: &Registry) -> Result<Self, RegistryError> {
        let version = [("version", env!("CARGO_PKG_VERSION"))];
        registry.gauge("seatrial_server_info", "Always 1; the label tells the version.", &version)?.set(1.0);
        let bytes = |direction| {
            let labels = [("direction", direction)];
            registry.counter("seatrial_server_body_bytes_total", "Bytes of bodies, by direction.", &labels)
        };
        let connections = |outcome| {
            let labels = [("outcome", outcome)];
            registry.counter("seatrial_server_connections_total", "Connections, by outcome.", &labels)
        };
        Ok(Self {
            connections: registry.gauge("seatrial_server_connections", "Connections open now.", &[])?,
            accepted: connections("accepted")?,
            refused: connections("refused")?,
            accept_errors: connections("error")?,
            bytes_in: bytes("in")?,
            bytes_out: bytes("out")?,
            in_flight: registry.gauge(
                "seatrial_server_requests_in_flight",
                "Requests being handled now.",
                &[],
            )?,
            no_model: Arc::new(RequestCounts::register(registry, "")?),
            load_seconds: registry.histogram(
                "seatrial_server_load_seconds",
                "Time to load a new version while the server runs, warm-up included.",
                &[],
                &LOAD_EDGES,
            )?,
        })
    }
}

/// Counts a call to load. Names that no model has are counted under none.
pub(crate) fn count_load(registry: &Registry, model: &str, outcome: LoadOutcome) {
    if let Ok(counter) = loads(registry, model, outcome) {
        counter.inc();
    }
}

fn loads(registry: &Registry, model: &str, outcome: LoadOutcome) -> Result<Arc<Counter>, RegistryError> {
    let labels = [("model", model), ("outcome", outcome.name())];
    registry.counter("seatrial_server_loads_total", "Calls to load a version, by outcome.", &labels)
}

/// Brings the state of every version up to date.
pub(crate) fn publish_states(registry: &Registry, index: &[IndexEntry]) {
    for entry in index {
        for (state, name) in STATES {
            let labels =
                [("model", entry.id.name.as_str()), ("version", entry.id.version.as_str()), ("state", name)];
            let help = "1 for the state that a version is in, 0 for the others.";
            if let Ok(gauge) = registry.gauge("seatrial_server_model_state", help, &labels) {
                gauge.set(f64::from(u8::from(entry.state == state)));
            }
        }
    }
}

impl RequestCounts {
    fn register(registry: &Registry, model: &str) -> Result<Self, RegistryError> {
        let count = |status: u16| {
            let code = if status == 0 { "other".to_owned() } else { status.to_string() };
            let labels = [("model", model), ("code", code.as_str())];
            registry.counter("seatrial_server_requests_total", "Requests, by model and HTTP status.", &labels)
        };
        let counters: Vec<_> = STATUSES.into_iter().map(count).collect::<Result<_, _>>()?;
        counters
            .try_into()
            .map(Self)
            .map_err(|_| RegistryError::Name("seatrial_server_requests_total".to_owned()))
    }

    pub(crate) fn count(&self, status: u16) {
        let index = STATUSES.iter().position(|s| *s == status).unwrap_or(STATUSES.len() - 1);
        if let Some(counter) = self.0.get(index) {
            counter.inc();
        }
    }
}

impl ModelMetrics {
    /// `name` is the label; versions of one model share their series.
    pub(crate) fn register(registry: &Registry, name: &str, edges_s: &[f64]) -> Result<Self, RegistryError> {
        let stage = |stage: Stage| {
            let labels = [("model", name), ("stage", stage.name())];
            registry.histogram(
                "seatrial_server_stage_seconds",
                "Time of successful inference requests in each stage.",
                &labels,
                &STAGE_EDGES,
            )
        };
        let stages: Vec<_> = Stage::ALL.into_iter().map(stage).collect::<Result<_, _>>()?;
        // A counter that begins at its first event hides that event from a rate.
        for outcome in LoadOutcome::ALL {
            loads(registry, name, outcome)?;
        }
        Ok(Self {
            requests: Arc::new(RequestCounts::register(registry, name)?),
            request_seconds: registry.histogram(
                "seatrial_server_request_seconds",
                "Time of successful inference requests, first byte in to last byte out.",
                &[("model", name)],
                edges_s,
            )?,
            stage_seconds: stages.try_into().map_err(|_| miscounted("seatrial_server_stage_seconds"))?,
            totals: Totals::default(),
        })
    }

    pub(crate) fn statistics(&self) -> Statistics {
        let totals = &self.totals;
        let span = |s: &Span| (s.count.load(Relaxed), s.ns.load(Relaxed));
        Statistics {
            success: span(&totals.success),
            fail: span(&totals.fail),
            queue_ns: totals.queue_ns.load(Relaxed),
            input_ns: totals.input_ns.load(Relaxed),
            infer_ns: totals.infer_ns.load(Relaxed),
            output_ns: totals.output_ns.load(Relaxed),
            rows: totals.rows.load(Relaxed),
            last_inference_ms: totals.last_inference_ms.load(Relaxed),
        }
    }

    fn succeeded(&self, stages: &Stages, rows: usize) {
        self.request_seconds.observe_duration(stages.total());
        for (stage, histogram) in Stage::ALL.into_iter().zip(&self.stage_seconds) {
            histogram.observe_duration(stages.spent(stage));
        }
        let totals = &self.totals;
        totals.success.add(stages.total());
        totals.queue_ns.fetch_add(nanos(stages.spent(Stage::Queue) + stages.spent(Stage::Form)), Relaxed);
        totals.input_ns.fetch_add(nanos(stages.spent(Stage::CopyIn)), Relaxed);
        totals.infer_ns.fetch_add(nanos(stages.spent(Stage::Run)), Relaxed);
        totals.output_ns.fetch_add(nanos(stages.spent(Stage::CopyOut)), Relaxed);
        totals.rows.fetch_add(rows as u64, Relaxed);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        totals.last_inference_ms.store(u64::try_from(now.as_millis()).unwrap_or(u64::MAX), Relaxed);
    }

    fn failed(&self, stages: &Stages) {
        self.totals.fail.add(stages.total());
    }
}

impl Span {
    fn add(&self, time: Duration) {
        self.count.fetch_add(1, Relaxed);
        self.ns.fetch_add(nanos(time), Relaxed);
    }
}

/// For arrays that are made from lists of their own length, which is why it does not happen.
fn miscounted(name: &str) -> RegistryError {
    RegistryError::Labels(name.to_owned())
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// What remains to be counted of a request once its answer is out, or is known to be lost.
#[derive(Debug)]
pub(crate) struct Finish {
    pub(crate) requests: Arc<RequestCounts>,
    pub(crate) status: StatusCode,
    pub(crate) inference: Option<Inference>,
}

/// The part of [`Finish`] that only inference requests have.
#[derive(Debug)]
pub(crate) struct Inference {
    pub(crate) metrics: Arc<ModelMetrics>,
    pub(crate) stages: Stages,
    pub(crate) rows: usize,
}

impl Finish {
    /// The socket has taken the whole answer.
    pub(crate) fn written(self, now: Instant) {
        self.requests.count(self.status.as_u16());
        let Some(Inference { metrics, mut stages, rows }) = self.inference else { return };
        stages.mark(Stage::Write, now);
        if self.status.is_success() {
            metrics.succeeded(&stages, rows);
        } else {
            metrics.failed(&stages);
        }
    }

    /// The connection broke before the answer was out.
    pub(crate) fn lost(self) {
        self.requests.count(CLIENT_GONE);
        if let Some(Inference { metrics, stages, .. }) = self.inference {
            metrics.failed(&stages);
        }
    }
}

/// The status that stands for a client that went before its answer.
pub(crate) const CLIENT_GONE: u16 = 499;
