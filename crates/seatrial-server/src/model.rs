//! One version of one model while it is served: its queue, state and figures.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use seatrial_batching::{BatchingMetrics, Config, Policy, Queue};
use seatrial_metrics::{Registry, RegistryError};
use seatrial_protocol::{IndexEntry, ModelId, ModelState};
use seatrial_session::ExecutorMetrics;
use seatrial_types::{Code, Error, PadPlan, Result};

use crate::{
    config,
    features::Features,
    golden::{self, Row},
    metrics::ModelMetrics,
    pulse::Pulse,
};

/// The fewest digits of a digest that name a version.
const DIGEST_PREFIX: usize = 12;

/// The version that users of Triton's clients write by habit.
const FIRST: &str = "1";

/// One version of one model while it is served.
pub(crate) struct Model {
    pub(crate) config: config::Model,
    /// How the model is called on the wire.
    pub(crate) id: ModelId,
    pub(crate) queue: Arc<Queue>,
    pub(crate) metrics: Arc<ModelMetrics>,
    pub(crate) batches: BatchingMetrics,
    pub(crate) executions: ExecutorMetrics,
    /// How requests of different lengths are joined.
    pub(crate) padding: Option<PadPlan>,
    /// Raw fields to inputs, where the package says how.
    pub(crate) features: Option<Arc<Features>>,
    /// Requests with known answers.
    pub(crate) golden: Vec<Row>,
    pub(crate) pulse: Arc<Pulse>,
    /// One more holder for each executor that has not ended.
    pub(crate) executing: Arc<()>,
    ready: AtomicBool,
}

/// The handles of everything that is counted of one model.
pub(crate) struct Figures {
    door: ModelMetrics,
    batches: BatchingMetrics,
    executions: ExecutorMetrics,
}

impl Figures {
    pub(crate) fn register(
        registry: &Registry,
        model: &config::Model,
        edges_s: &[f64],
    ) -> std::result::Result<Self, RegistryError> {
        let labels = [("model", model.name.as_str()), ("version", model.version.as_str())];
        Ok(Self {
            door: ModelMetrics::register(registry, &model.name, edges_s)?,
            batches: BatchingMetrics::register(registry, &labels)?,
            executions: ExecutorMetrics::register(registry, &labels)?,
        })
    }
}

impl Model {
    /// A version that is yet to be loaded; golden rows that do not fit it are the error.
    pub(crate) fn new(
        config: config::Model,
        figures: Figures,
        features: Option<Features>,
    ) -> std::result::Result<Self, String> {
        let golden = golden::read(&config)?;
        // The configuration was checked as a whole when it was read.
        let padding = config.padding().ok().flatten();
        let id = ModelId { name: config.name.clone(), version: config.version.clone() };
        let policy = match &config.batching.preferred {
            None => Policy::Cost,
            Some(preferred) => Policy::Preferred {
                rows: preferred.rows.clone(),
                max_delay: Duration::from_millis(preferred.max_delay_ms),
            },
        };
        let bounds = Config {
            mode: config.batching.mode,
            padding: padding.clone(),
            max_rows: config.batching.max_rows,
            queue_rows: config.queue_rows,
            executors: config.executors,
            levels: config.priority_levels,
            policy,
        };
        let Figures { door, batches, executions } = figures;
        let queue = Arc::new(Queue::new(bounds, batches.clone(), Box::new(Instant::now)));
        Ok(Self {
            config,
            id,
            queue,
            metrics: Arc::new(door),
            batches,
            executions,
            padding,
            features: features.map(Arc::new),
            golden,
            pulse: Arc::new(Pulse::new()),
            executing: Arc::default(),
            ready: AtomicBool::new(false),
        })
    }

    /// What the repository index says of this version while it is resident.
    pub(crate) fn index_entry(&self) -> IndexEntry {
        let (state, reason) = match (self.is_ready(), self.pulse.fault()) {
            (false, _) => (ModelState::Loading, "the model is being loaded".to_owned()),
            (true, Some(fault)) => (ModelState::Unavailable, fault),
            (true, None) => (ModelState::Ready, String::new()),
        };
        IndexEntry { id: self.id.clone(), state, reason }
    }

    /// Loaded and warmed up.
    pub(crate) fn is_ready(&self) -> bool {
        self.ready.load(Relaxed)
    }

    /// Ready, and nothing is known to be wrong.
    pub(crate) fn works(&self) -> bool {
        self.is_ready() && !self.pulse.is_faulty()
    }

    pub(crate) fn set_ready(&self) {
        self.ready.store(true, Relaxed);
    }

    pub(crate) const fn timeout(&self) -> Duration {
        Duration::from_millis(self.config.timeout_ms)
    }

    /// The model, or the reason why it cannot answer yet.
    pub(crate) fn require_ready(&self) -> Result<()> {
        if self.is_ready() {
            return Ok(());
        }
        let text = format!("model `{}` is not ready: it is being loaded", self.config.name);
        Err(Error::new(Code::Unavailable, text).retry_after(Duration::from_secs(1)))
    }

    pub(crate) fn is_version(&self, version: &str, only: bool) -> bool {
        let digest = &self.config.digest;
        self.config.version == version
            || (version.len() >= DIGEST_PREFIX && digest.starts_with(version))
            || (only && version == FIRST)
    }
}
