//! The loop of one executor thread: take a batch, join, run, split, answer. A bad row fails alone, a model that was
//! declared wrongly is found out, and a panic ends neither the thread nor anybody else's request.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::Instant,
};

use seatrial_metrics::{Counter, Labels, Registry, RegistryError};
use seatrial_types::{BatchSource, Error, Reply, Request, Result, Runner, Stage, Tensor};

use crate::joining::{join, split};

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
    pub client_gone: Arc<Counter>,
}

impl ExecutorMetrics {
    /// Registers the series of one model, named by `labels`.
    pub fn register(registry: &Registry, labels: Labels) -> std::result::Result<Self, RegistryError> {
        let runs = |outcome: &str| {
            let labels = [labels, &[("outcome", outcome)]].concat();
            registry.counter("seatrial_session_runs_total", "Runs of the model, by outcome.", &labels)
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
            client_gone: registry.counter(
                "seatrial_session_client_gone_total",
                "Requests dropped between queue and run since their client had gone.",
                labels,
            )?,
        })
    }
}

/// Runs batches until `source` is closed and empty. Call it on a thread of its own.
///
/// `not_joinable` is told once, in words, when the outputs of a joined run cannot be split by rows; from then on this
/// executor runs every request alone, and the owner of the queue should stop joining there.
#[allow(clippy::needless_pass_by_value, reason = "the thread keeps its share of the queue for its life")]
pub fn run_executor(
    source: Arc<dyn BatchSource>,
    runner: Box<dyn Runner>,
    metrics: ExecutorMetrics,
    not_joinable: Box<dyn FnMut(&str) + Send>,
) {
    let mut executor = Executor { runner, metrics, not_joinable, joinable: true };
    while let Some(batch) = source.take() {
        executor.work(batch.requests);
    }
}

struct Executor {
    runner: Box<dyn Runner>,
    metrics: ExecutorMetrics,
    not_joinable: Box<dyn FnMut(&str) + Send>,
    joinable: bool,
}

impl Executor {
    fn work(&mut self, mut requests: Vec<Request>) {
        let before = requests.len();
        requests.retain(|request| !request.reply.is_closed());
        self.metrics.client_gone.add((before - requests.len()) as u64);
        if requests.len() > 1 && self.joinable {
            self.run_joined(requests);
        } else {
            self.run_each(requests);
        }
    }

    fn run_joined(&mut self, mut requests: Vec<Request>) {
        let inputs = join(&requests);
        mark(&mut requests, Stage::CopyIn);
        let outcome = self.run(&inputs);
        drop(inputs);
        mark(&mut requests, Stage::Run);
        let rows: Vec<usize> = requests.iter().map(|request| request.rows).collect();
        match outcome.map(|outputs| split(&outputs, &rows)) {
            Ok(Ok(sets)) => {
                mark(&mut requests, Stage::CopyOut);
                for (request, outputs) in requests.into_iter().zip(sets) {
                    answer(request, Ok(outputs));
                }
            }
            Ok(Err(difference)) => {
                self.joinable = false;
                (self.not_joinable)(&difference);
                self.run_each(requests);
            }
            Err(_) => {
                self.metrics.isolated.add(requests.len() as u64);
                self.run_each(requests);
            }
        }
    }

    /// Each request on its own. Those behind wait for those before: that time is queueing.
    fn run_each(&mut self, requests: Vec<Request>) {
        for mut request in requests {
            if request.reply.is_closed() {
                self.metrics.client_gone.inc();
                continue;
            }
            request.stages.mark(Stage::Queue, Instant::now());
            let outcome = self.run(&request.inputs);
            request.stages.mark(Stage::Run, Instant::now());
            answer(request, outcome);
        }
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
