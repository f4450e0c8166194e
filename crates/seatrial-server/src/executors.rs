//! The threads that run models: each model is loaded and warmed up on one of its own, which then becomes its first
//! executor. None of this happens on an IO thread.

use std::{
    io,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use seatrial_batching::CostTable;
use seatrial_session::{
    Runtime, SessionOptions, SharedSession, WarmUpRun, measure_costs, run_executor, warm_up,
};
use seatrial_types::{BatchMode, Runner};
use tokio::sync::mpsc;

use crate::{
    config::{self, Config},
    events::{Cost, Loaded},
    model::Model,
    pipeline::Refusal,
};

/// Makes what runs a model. The server has one for ONNX Runtime; tests have stand-ins.
pub trait Load: Send + Sync {
    /// Loads and warms up a model. Called on the thread that will run it.
    fn load(&self, model: &config::Model) -> Result<LoadedModel, Refusal>;
}

/// A model that can be run.
pub struct LoadedModel {
    /// One runner for each executor.
    pub runners: Vec<Box<dyn Runner>>,
    /// Time to load.
    pub load: Duration,
    /// Time of the runs before readiness.
    pub warm_up: Duration,
    /// What runs cost, as measured; empty where it was not.
    pub costs: Vec<WarmUpRun>,
}

/// How loading one model went: its place among the models, and its times.
pub(crate) type Outcome = (usize, Result<Loaded, Refusal>);

/// Loads models with ONNX Runtime.
struct RuntimeLoader(Arc<Runtime>);

/// Opens the library that the configuration names.
pub(crate) fn open_runtime(config: &Config) -> Result<Arc<dyn Load>, Refusal> {
    match Runtime::open(&config.runtime_library) {
        Ok(runtime) => {
            eprintln!("ONNX Runtime {} from {}", runtime.version(), runtime.path().display());
            Ok(Arc::new(RuntimeLoader(runtime)))
        }
        Err(e) => Err(Refusal::missing(e.to_string(), e.hint())),
    }
}

impl Load for RuntimeLoader {
    fn load(&self, model: &config::Model) -> Result<LoadedModel, Refusal> {
        let named = |why: &dyn std::fmt::Display| format!("model `{}` cannot be served: {why}", model.name);
        let options =
            SessionOptions { intra_op_threads: model.intra_op_threads, ..SessionOptions::default() };
        let start = Instant::now();
        let session = self
            .0
            .session(&model.model_file, &model.signature, &options)
            .map_err(|e| Refusal::missing(named(&e), e.hint()))?;
        let load = start.elapsed();
        let mut runner = SharedSession(Arc::new(session));
        let warm = warm_up(&mut runner, &model.signature, &model.batching).map_err(|e| {
            Refusal::missing(named(&e.message), "`seatrial check --level B` runs the model and says more")
        })?;
        for note in warm.notes {
            eprintln!("model `{}`: {note}", model.name);
        }
        let least = warm.runs.first().map(|run| run.length);
        let costs = least.map_or_else(Vec::new, |least| {
            let budget = Duration::from_millis(model.measure_ms);
            let padding = model.padding().ok().flatten();
            measure_costs(&mut runner, &model.signature, (&model.batching, padding.as_ref()), least, budget)
        });
        let runners = (0..model.executors).map(|_| Box::new(runner.clone()) as Box<dyn Runner>).collect();
        Ok(LoadedModel { runners, load, warm_up: start.elapsed().saturating_sub(load), costs })
    }
}

/// Starts loading every model. Each sends one outcome.
pub(crate) fn start(models: &[Arc<Model>], loader: &Arc<dyn Load>) -> io::Result<mpsc::Receiver<Outcome>> {
    let (report, loads) = mpsc::channel(models.len().max(1));
    for (index, model) in models.iter().enumerate() {
        let (shared, loader, report) = (model.clone(), loader.clone(), report.clone());
        spawn(model, 0, move || {
            let (outcome, own) = match load(&shared, loader.as_ref()) {
                Ok((times, own)) => (Ok(times), own),
                Err(refusal) => (Err(refusal), None),
            };
            // The receiver is gone only when the server is on its way out.
            let _ = report.blocking_send((index, outcome));
            drop((report, loader));
            if let Some(runner) = own {
                execute(&shared, runner);
            }
        })?;
    }
    Ok(loads)
}

/// Loads a model, starts its other executors and says that it is ready. Gives the runner of this thread.
fn load(model: &Arc<Model>, loader: &dyn Load) -> Result<(Loaded, Option<Box<dyn Runner>>), Refusal> {
    let LoadedModel { runners, load, warm_up, costs } = loader.load(&model.config)?;
    if let Some(table) = CostTable::new(costs.iter().map(|run| (run.rows, run.length, run.time))) {
        model.queue.set_costs(table);
    }
    let own = share_out(model, runners)?;
    let name = model.config.name.clone();
    let (load_s, warmup_s) = (load.as_secs_f64(), warm_up.as_secs_f64());
    eprintln!("model `{name}` loaded in {load_s:.3} s, warmed up in {warmup_s:.3} s");
    if model.config.batching.mode == BatchMode::None {
        eprintln!("model `{name}` is not batched: {}", model.config.batching.why);
    }
    model.set_ready();
    let costs = costs.iter().map(Cost::of).collect();
    Ok((Loaded { name, load_s, warmup_s, costs }, own))
}

/// Gives all runners but the first a thread of their own; the first stays here.
fn share_out(model: &Arc<Model>, runners: Vec<Box<dyn Runner>>) -> Result<Option<Box<dyn Runner>>, Refusal> {
    let mut runners = runners.into_iter();
    let own = runners.next();
    for (n, runner) in runners.enumerate() {
        let shared = model.clone();
        spawn(model, n + 1, move || execute(&shared, runner)).map_err(|e| {
            let text = format!("an executor of model `{}` could not be started: {e}", model.config.name);
            Refusal::missing(text, "lower `executors` or raise the limit of threads")
        })?;
    }
    Ok(own)
}

fn spawn(model: &Arc<Model>, n: usize, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let name = format!("{}-{n}", model.config.name.replace('\0', ""));
    thread::Builder::new().name(name).spawn(work).map(drop)
}

fn execute(model: &Arc<Model>, runner: Box<dyn Runner>) {
    let told = model.clone();
    let not_joinable = move |why: &str| {
        eprintln!("model `{}`: requests are no longer joined: {why}", told.config.name);
        told.queue.stop_joining();
    };
    let how = (runner, model.padding.clone());
    run_executor(model.queue.clone(), how, model.executions.clone(), Box::new(not_joinable));
}

/// Keeps account of the models that are still being loaded.
pub(crate) struct Loading {
    loaded: Vec<Option<Loaded>>,
}

impl Loading {
    pub(crate) fn new(models: &[Arc<Model>]) -> Self {
        Self { loaded: models.iter().map(|_| None).collect() }
    }

    pub(crate) fn is_done(&self) -> bool {
        self.loaded.iter().all(Option::is_some)
    }

    /// Takes one outcome in; gives all models once the last one is loaded.
    pub(crate) fn take(&mut self, outcome: Option<Outcome>) -> Result<Option<Vec<Loaded>>, Refusal> {
        let Some((index, loaded)) = outcome else {
            return Err(Refusal {
                exit_code: 1,
                error: "a thread that loads a model ended without a word".to_owned(),
                hint: Some("the log of the server has its last words".to_owned()),
            });
        };
        let loaded = loaded?;
        if let Some(place) = self.loaded.get_mut(index) {
            *place = Some(loaded);
        }
        Ok(self.is_done().then(|| self.loaded.iter().flatten().cloned().collect()))
    }
}
