//! The watch over every active version: a golden row through the real queue and executor when nothing else has proved
//! that it works, and an eye on runs that do not end. Busy is not broken: a full queue is no fault as long as runs end.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use seatrial_types::{Code, Reply, Request, Stages};
use tokio::sync::oneshot::{self, error::TryRecvError};

use crate::{door::Door, model::Model};

/// Looks in one period. A hang is found after its period, a probe of `PATIENCE` and two looks: within two periods.
const LOOKS: u32 = 8;

/// Eighths of a period that a probe may take.
const PATIENCE: u32 = 5;

/// A version whose runs take long is given this many of its longest run before readiness as a period.
const SLOW_RUNS: u32 = 4;

/// A golden row on its way.
struct Probe {
    sent: Instant,
    answer: oneshot::Receiver<Reply>,
}

/// Watches until the server ends.
pub(crate) async fn watch(door: Arc<Door>, period: Duration) {
    let mut probes: HashMap<String, Probe> = HashMap::new();
    let mut looks = tokio::time::interval(period / LOOKS);
    looks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        looks.tick().await;
        let active = door.catalog.active();
        probes.retain(|digest, _| active.iter().any(|model| model.config.digest == *digest));
        for model in active.iter().filter(|model| model.is_ready()) {
            let probe = probes.remove(&model.config.digest);
            if let Some(probe) = look(model, probe, period) {
                probes.insert(model.config.digest.clone(), probe);
            }
        }
    }
}

/// Looks at one version; gives the probe that is still on its way.
fn look(model: &Model, probe: Option<Probe>, period: Duration) -> Option<Probe> {
    let period = period.max(model.pulse.slowest() * SLOW_RUNS);
    let running = model.pulse.longest_run();
    if running > period * 3 / 2 {
        say(model, Some(format!("an executor has been in one run for {} ms", running.as_millis())));
        return probe;
    }
    if model.pulse.silence() < period {
        say(model, None);
        return probe.and_then(|mut probe| match probe.answer.try_recv() {
            Err(TryRecvError::Empty) => Some(probe),
            _ => None,
        });
    }
    if model.golden.is_empty() {
        // Nothing can be asked; that the long run has ended is all that will be known.
        say(model, None);
    }
    match probe {
        Some(probe) => judge(model, probe, period),
        None => send(model, period),
    }
}

/// Judges a probe that no run has overtaken.
fn judge(model: &Model, mut probe: Probe, period: Duration) -> Option<Probe> {
    let waited = probe.sent.elapsed();
    match probe.answer.try_recv() {
        // Its success would have broken the silence, unless that was long ago.
        Ok(Reply { outcome: Ok(_), .. }) => say(model, None),
        Ok(Reply { outcome: Err(error), .. }) if error.code != Code::DeadlineExceeded => {
            say(model, Some(format!("the golden row fails: {}", error.message)));
        }
        Err(TryRecvError::Empty) if waited < period * PATIENCE / LOOKS => return Some(probe),
        Ok(_) | Err(_) => {
            say(model, Some(format!("the golden row had no answer after {} ms", waited.as_millis())));
        }
    }
    None
}

fn send(model: &Model, period: Duration) -> Option<Probe> {
    let row = model.golden.first()?;
    let sent = Instant::now();
    let (reply, answer) = oneshot::channel();
    let request = Request {
        inputs: row.inputs.clone(),
        rows: row.rows,
        deadline: sent + period,
        priority: 0,
        wire_bytes: 0,
        stages: Stages::start(sent),
        reply,
    };
    // A queue that refuses is busy. Whether its executors get on is seen by their runs.
    model.queue.submit(request).ok().map(|()| Probe { sent, answer })
}

fn say(model: &Model, fault: Option<String>) {
    let text = fault.clone();
    if model.pulse.set_fault(fault) {
        let name = &model.config.name;
        match text {
            Some(text) => eprintln!("model `{name}` does not work: {text}"),
            None => eprintln!("model `{name}` works again"),
        }
    }
}
