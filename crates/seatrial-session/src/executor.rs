//! The loop of one executor thread: take a batch, join, run, split, answer. A bad row fails alone, a model that was
//! declared wrongly is found out, and a panic ends neither the thread nor anybody else's request.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::Instant,
};

use seatrial_metrics::{Counter, Labels, Registry, RegistryError};
use seatrial_types::{BatchSource, Code, Error, PadPlan, Reply, Request, Result, Runner, Stage, Tensor};

use crate::joining::{join, shares, split};

/// Handles of one model's executors.
#[derive(Clone, Debug)]
pub struct ExecutorMetrics {
    /// Runs of the model that gave outputs.
    pub runs_ok: Arc<Counter>,
    /// Runs of the model that failed.
    pub runs_failed: Arc<Counter>,
    /// Requests that were run again alone since the batch they were in failed.
    pub isolated: Arc<Counter>,
    /// Runs that panicked; each is a fault to report.
    pub panics: Arc<Counter>,
    /// Requests dropped between queue and run since their client had gone.
    pub dropped_client_gone: Arc<Counter>,
    /// Requests dropped between queue and run since their deadline had passed.
    pub dropped_deadline: Arc<Counter>,
}

impl ExecutorMetrics {
    /// Registers the series of one model, named by `labels`.
    pub fn register(registry: &Registry, labels: Labels) -> std::result::Result<Self, RegistryError> {
        let runs = |outcome: &str| {
            let labels = [labels, &[("outcome", outcome)]].concat();
            registry.counter("seatrial_session_runs_total", "Runs of the model, by outcome.", &labels)
        };
        let dropped = |reason: &str| {
            let labels = [labels, &[("reason", reason)]].concat();
            let help = "Requests dropped between queue and run, by reason.";
            registry.counter("seatrial_session_dropped_total", help, &labels)
        };
        Ok(Self {
            runs_ok: runs("ok")?,
            runs_failed: runs("failed")?,
            isolated: registry.counter(
                "seatrial_session_isolated_requests_total",
                "Requests run again alone since the batch they were in failed.",
                labels,
            )?,
            panics: registry.counter("seatrial_session_panics_total", "Runs that panicked.", labels)?,
            dropped_client_gone: dropped("client_gone")?,
            dropped_deadline: dropped("deadline")?,
        })
    }
}

/// How many joined runs in a row may fail whose requests all succeed alone before joining is given up. One may be an
/// accident, such as memory that was short for a moment.
const FAILED_JOINS: usize = 3;

/// Runs batches until `source` is closed and empty. Call it on a thread of its own. Requests of different lengths are
/// joined as `padding` says; without it the source gives only such of one length.
///
/// `not_joinable` is told once, in words, when the model turns out not to take rows of several requests: its outputs
/// cannot be split by rows, or joined runs fail whose requests succeed alone. From then on this executor runs every
/// request alone, and the owner of the queue should stop joining there.
#[allow(clippy::needless_pass_by_value, reason = "the thread keeps its share of the queue for its life")]
pub fn run_executor(
    source: Arc<dyn BatchSource>,
    (runner, padding): (Box<dyn Runner>, Option<PadPlan>),
    metrics: ExecutorMetrics,
    not_joinable: Box<dyn FnMut(&str) + Send>,
) {
    let mut executor = Executor { runner, padding, metrics, not_joinable, joinable: true, failed_joins: 0 };
    let mut done = None;
    while let Some(batch) = source.take(done) {
        executor.work(batch.requests);
        done = Some(batch.ticket);
    }
}

struct Executor {
    runner: Box<dyn Runner>,
    padding: Option<PadPlan>,
    metrics: ExecutorMetrics,
    not_joinable: Box<dyn FnMut(&str) + Send>,
    joinable: bool,
    /// In a row, though every request succeeded alone.
    failed_joins: usize,
}

impl Executor {
    fn work(&mut self, mut requests: Vec<Request>) {
        let before = requests.len();
        requests.retain(|request| !request.reply.is_closed());
        self.metrics.dropped_client_gone.add((before - requests.len()) as u64);
        if requests.len() > 1 && self.joinable {
            self.run_joined(requests);
        } else {
            self.run_each(requests);
        }
    }

    fn run_joined(&mut self, mut requests: Vec<Request>) {
        let padding = self.padding.as_ref();
        let shares = shares(&requests, padding);
        let inputs = join(&requests, padding);
        mark(&mut requests, Stage::CopyIn);
        let outcome = self.run(&inputs);
        drop(inputs);
        mark(&mut requests, Stage::Run);
        match outcome.map(|outputs| split(&outputs, &shares, self.padding.as_ref())) {
            Ok(Ok(sets)) => {
                self.failed_joins = 0;
                mark(&mut requests, Stage::CopyOut);
                for (request, outputs) in requests.into_iter().zip(sets) {
                    answer(request, Ok(outputs));
                }
            }
            Ok(Err(difference)) => {
                self.stop_joining(&difference);
                self.run_each(requests);
            }
            Err(error) => self.isolate(requests, &error),
        }
    }

    /// Finds the request that made a joined run fail by running each alone.
    fn isolate(&mut self, requests: Vec<Request>, error: &Error) {
        let n = requests.len();
        self.metrics.isolated.add(n as u64);
        if self.run_each(requests) < n {
            self.failed_joins = 0;
            return;
        }
        self.failed_joins += 1;
        if self.failed_joins >= FAILED_JOINS {
            self.stop_joining(&format!("joined runs fail whose requests succeed alone: {}", error.message));
        }
    }

    fn stop_joining(&mut self, why: &str) {
        self.joinable = false;
        (self.not_joinable)(why);
    }

    /// Each request on its own; gives how many succeeded. Those behind wait for those before: that time is queueing.
    fn run_each(&mut self, requests: Vec<Request>) -> usize {
        let mut n_ok = 0;
        for mut request in requests {
            let now = Instant::now();
            request.stages.mark(Stage::Queue, now);
            if request.reply.is_closed() {
                self.metrics.dropped_client_gone.inc();
            } else if request.deadline <= now {
                self.metrics.dropped_deadline.inc();
                let text = "the deadline passed while the request waited for the model";
                answer(request, Err(Error::new(Code::DeadlineExceeded, text)));
            } else {
                let outcome = self.run(&request.inputs);
                request.stages.mark(Stage::Run, Instant::now());
                n_ok += usize::from(outcome.is_ok());
                answer(request, outcome);
            }
        }
        n_ok
    }

    fn run(&mut self, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
        // The runner is used again after a panic. Ours keeps no state between runs, so there is none to be torn.
        let outcome = catch_unwind(AssertUnwindSafe(|| self.runner.run(inputs))).unwrap_or_else(|_| {
            self.metrics.panics.inc();
            Err(Error::internal("the run of the model panicked"))
        });
        let counter = if outcome.is_ok() { &self.metrics.runs_ok } else { &self.metrics.runs_failed };
        counter.inc();
        outcome
    }
}

fn mark(requests: &mut [Request], stage: Stage) {
    let now = Instant::now();
    for request in requests {
        request.stages.mark(stage, now);
    }
}

fn answer(request: Request, outcome: Result<Vec<Tensor>>) {
    // The client may have gone during the run; then there is nobody left to tell.
    let _ = request.reply.send(Reply { outcome, stages: request.stages });
}
