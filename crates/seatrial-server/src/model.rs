//! The models of one server: found by name and version, with their queue, state and figures.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use seatrial_batching::{BatchingMetrics, Config, Policy, Queue};
use seatrial_metrics::{Registry, RegistryError};
use seatrial_protocol::ModelId;
use seatrial_session::ExecutorMetrics;
use seatrial_types::{Code, Error, PadPlan, Result};

use crate::{config, features::Features, metrics::ModelMetrics};

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
    pub(crate) fn new(config: config::Model, figures: Figures, features: Option<Features>) -> Self {
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
        Self {
            config,
            id,
            queue,
            metrics: Arc::new(door),
            batches,
            executions,
            padding,
            features: features.map(Arc::new),
            ready: AtomicBool::new(false),
        }
    }

    /// Loaded and warmed up.
    pub(crate) fn is_ready(&self) -> bool {
        self.ready.load(Relaxed)
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

    fn is_version(&self, version: &str, only: bool) -> bool {
        let digest = &self.config.digest;
        self.config.version == version
            || (version.len() >= DIGEST_PREFIX && digest.starts_with(version))
            || (only && version == FIRST)
    }
}

/// All models, by name. Versions of a name are in the order of the configuration; the last one is the default.
pub(crate) struct Catalog {
    by_name: HashMap<String, Vec<Arc<Model>>>,
}

impl Catalog {
    pub(crate) fn new(models: Vec<Arc<Model>>) -> Self {
        let mut by_name: HashMap<String, Vec<Arc<Model>>> = HashMap::new();
        for model in models {
            by_name.entry(model.config.name.clone()).or_default().push(model);
        }
        Self { by_name }
    }

    /// Every version of every model, sorted by name.
    pub(crate) fn all(&self) -> Vec<&Arc<Model>> {
        let sorted: BTreeMap<_, _> = self.by_name.iter().collect();
        sorted.into_values().flatten().collect()
    }

    pub(crate) fn all_ready(&self) -> bool {
        self.by_name.values().flatten().all(|model| model.is_ready())
    }

    /// The versions of a name, in the order of the configuration.
    pub(crate) fn versions(&self, name: &str) -> Result<&[Arc<Model>]> {
        self.by_name
            .get(name)
            .map(Vec::as_slice)
            .ok_or_else(|| Error::new(Code::NotFound, format!("there is no model `{name}` on this server")))
    }

    /// The version that is meant: by semantic version, by digest or its first twelve digits or more, or by `1` where
    /// there is only one.
    pub(crate) fn find(&self, name: &str, version: Option<&str>) -> Result<&Arc<Model>> {
        let versions = self.versions(name)?;
        let only = versions.len() == 1;
        let found = match version {
            None => versions.last(),
            Some(version) => versions.iter().rev().find(|model| model.is_version(version, only)),
        };
        found.ok_or_else(|| {
            let there: Vec<_> = versions.iter().map(|m| format!("`{}`", m.config.version)).collect();
            let text = format!(
                "model `{name}` has no version `{}`: expected {} or the digest",
                version.unwrap_or_default(),
                there.join(", ")
            );
            Error::new(Code::NotFound, text)
        })
    }
}
