//! The threads that run models: each model is loaded and warmed up on one of its own, which then becomes its first
//! executor. None of this happens on an IO thread.

use std::{
    io,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use seatrial_batching::{CostTable, Queue};
use seatrial_session::{
    ExecutorMetrics, Runtime, SessionOptions, SharedSession, WarmUpRun, measure_costs, run_executor, warm_up,
};
use seatrial_types::{BatchMode, PadPlan, Runner};
use tokio::sync::mpsc;

use crate::{
    config::{self, Config},
    events::{Cost, Loaded},
    golden,
    model::Model,
    pipeline::Refusal,
};

/// How far a load steps back behind live traffic: the lowest priority there is.
const GIVE_WAY: i32 = 19;

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
    /// The longest of the runs before readiness.
    pub slowest: Duration,
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
        let slowest = warm.runs.iter().map(|run| run.time).max().unwrap_or_default();
        let least = warm.runs.first().map(|run| run.length);
        let costs = least.map_or_else(Vec::new, |least| {
            let budget = Duration::from_millis(model.measure_ms);
            let padding = model.padding().ok().flatten();
            measure_costs(&mut runner, &model.signature, (&model.batching, padding.as_ref()), least, budget)
        });
        let runners = (0..model.executors).map(|_| Box::new(runner.clone()) as Box<dyn Runner>).collect();
        Ok(LoadedModel { runners, load, warm_up: start.elapsed().saturating_sub(load), costs, slowest })
    }
}

/// Starts loading every model. Each sends one outcome.
pub(crate) fn start(models: Vec<Arc<Model>>, loader: &Arc<dyn Load>) -> io::Result<mpsc::Receiver<Outcome>> {
    let (report, loads) = mpsc::channel(models.len().max(1));
    for (index, model) in models.into_iter().enumerate() {
        let report = report.clone();
        // The receiver is gone only when the server is on its way out.
        start_one(model, loader, move |outcome| drop(report.blocking_send((index, outcome))))?;
    }
    Ok(loads)
}

/// Starts loading one model on a thread of its own, which tells the outcome.
pub(crate) fn start_one(
    model: Arc<Model>,
    loader: &Arc<dyn Load>,
    report: impl FnOnce(Result<Loaded, Refusal>) + Send + 'static,
) -> io::Result<()> {
    let loader = loader.clone();
    spawn(&model.config.name.clone(), 0, move || {
        let (outcome, own) = match load(&model, loader.as_ref()) {
            Ok((times, own)) => (Ok(times), own),
            Err(refusal) => (Err(refusal), None),
        };
        let work = own.map(|runner| Executor::new(&model, runner));
        // Whoever hears of the outcome may unload the version, which waits for those who hold it.
        drop((model, loader));
        report(outcome);
        if let Some(executor) = work {
            executor.run();
        }
    })
}

/// Starts loading one model beside live traffic: on a thread that gives way to others where that can be undone, which
/// is where the session has no threads of its own to inherit it.
pub(crate) fn start_beside(
    model: Arc<Model>,
    loader: &Arc<dyn Load>,
    report: impl FnOnce(Result<Loaded, Refusal>) + Send + 'static,
) -> io::Result<()> {
    let loader = loader.clone();
    let name = format!("{}-load", model.config.name.replace('\0', ""));
    let work = move || {
        if model.config.intra_op_threads == 1 {
            // On Linux this is about the calling thread alone. Without it the load is only less considerate.
            let _ = rustix::process::nice(GIVE_WAY);
        }
        let outcome = load(&model, loader.as_ref()).and_then(|(times, own)| {
            start_executors(&model, own.into_iter().collect(), 0)?;
            Ok(times)
        });
        drop((model, loader));
        report(outcome);
    };
    thread::Builder::new().name(name).spawn(work).map(drop)
}

/// Loads a model, proves that it works, starts its other executors and says that it is ready. Gives the runner of
/// this thread.
fn load(model: &Arc<Model>, loader: &dyn Load) -> Result<(Loaded, Option<Box<dyn Runner>>), Refusal> {
    let LoadedModel { mut runners, load, warm_up, costs, slowest } = loader.load(&model.config)?;
    if let Some(runner) = runners.first_mut() {
        golden::prove(&model.golden, &model.config.signature, runner.as_mut()).map_err(|why| {
            let text = format!("model `{}` cannot be served: {why}", model.config.name);
            Refusal::missing(text, "`seatrial check --level B` compares all golden rows")
        })?;
    }
    model.pulse.note_slowest(slowest);
    if let Some(table) = CostTable::new(costs.iter().map(|run| (run.rows, run.length, run.time))) {
        model.queue.set_costs(table);
    }
    let own = share_out(model, runners)?;
    let (name, version) = (model.config.name.clone(), model.config.version.clone());
    let (load_s, warmup_s) = (load.as_secs_f64(), warm_up.as_secs_f64());
    eprintln!("model `{name}` {version} loaded in {load_s:.3} s, warmed up in {warmup_s:.3} s");
    if model.config.batching.mode == BatchMode::None {
        eprintln!("model `{name}` is not batched: {}", model.config.batching.why);
    }
    model.set_ready();
    let costs = costs.iter().map(Cost::of).collect();
    Ok((Loaded { name, load_s, warmup_s, costs }, own))
}

/// Gives all runners but the first a thread of their own; the first stays here.
fn share_out(
    model: &Arc<Model>,
    mut runners: Vec<Box<dyn Runner>>,
) -> Result<Option<Box<dyn Runner>>, Refusal> {
    let others = runners.split_off(runners.len().min(1));
    start_executors(model, others, 1)?;
    Ok(runners.pop())
}

/// Starts a thread for each runner; they are counted from `first`.
fn start_executors(model: &Model, runners: Vec<Box<dyn Runner>>, first: usize) -> Result<(), Refusal> {
    for (n, runner) in (first..).zip(runners) {
        let executor = Executor::new(model, runner);
        spawn(&model.config.name, n, move || executor.run()).map_err(|e| {
            // Those that were started already are let go.
            model.queue.close();
            let text = format!("an executor of model `{}` could not be started: {e}", model.config.name);
            Refusal::missing(text, "lower `executors` or raise the limit of threads")
        })?;
    }
    Ok(())
}

fn spawn(model: &str, n: usize, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let name = format!("{}-{n}", model.replace('\0', ""));
    thread::Builder::new().name(name).spawn(work).map(drop)
}

/// What an executor needs of its model. It does not hold the model itself: when nobody else does, the version goes.
struct Executor {
    name: String,
    queue: Arc<Queue>,
    how: (Box<dyn Runner>, Option<PadPlan>),
    metrics: ExecutorMetrics,
    executing: Arc<()>,
}

impl Executor {
    fn new(model: &Model, runner: Box<dyn Runner>) -> Self {
        Self {
            name: model.config.name.clone(),
            queue: model.queue.clone(),
            how: (model.pulse.watched(runner), model.padding.clone()),
            metrics: model.executions.clone(),
            executing: model.executing.clone(),
        }
    }

    /// Runs until the queue is closed and empty. The runner is gone before the executor counts as ended.
    fn run(self) {
        let Self { name, queue, how, metrics, executing } = self;
        let told = queue.clone();
        let not_joinable = move |why: &str| {
            eprintln!("model `{name}`: requests are no longer joined: {why}");
            told.stop_joining();
        };
        run_executor(queue, how, metrics, Box::new(not_joinable));
        drop(executing);
    }
}

/// Keeps account of the models that are still being loaded.
pub(crate) struct Loading {
    loaded: Vec<Option<Loaded>>,
}

impl Loading {
    pub(crate) fn new(models: usize) -> Self {
        Self { loaded: vec![None; models] }
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
