//! Loading and unloading while the server runs. One task does one thing after the other: what is asked for at the same
//! time is done once, and live traffic shares the machine with one load at most. Doors only see a pointer change.

use std::{
    collections::VecDeque,
    sync::Arc,
    time::{Duration, Instant},
};

use seatrial_protocol::{ModelId, ModelState};
use seatrial_types::{Code, Error, Result};
use tokio::sync::{mpsc, oneshot};

use crate::{
    config,
    door::Door,
    events::{Event, Loaded, tell},
    executors::{self, Load},
    features::Features,
    memory,
    metrics::{LoadOutcome, count_load, publish_states},
    model::{Figures, Model},
    parent::Parent,
    pipeline::Refusal,
};

/// Calls that wait for their turn; one more is refused.
const WAITING: usize = 256;

/// A session holds the weights once, and while it is made the file a second time.
const USUAL_FACTOR: f64 = 2.0;

/// How often somebody who waits for the last user of a version looks.
const LOOK: Duration = Duration::from_millis(5);

/// Digits of a digest that stand for a version whose semantic version another one has as well.
const DIGITS: usize = 12;

/// Where a call is answered.
type Caller = oneshot::Sender<Result<()>>;

/// What is asked for: a name and perhaps a version.
type Wanted = (String, Option<String>);

enum Call {
    Load(Wanted, Caller),
    Unload(Wanted, Caller),
}

/// The doors' side: calls go in, their outcome comes back.
pub(crate) struct Repository(Option<mpsc::Sender<Call>>);

impl Repository {
    /// One that refuses everything.
    pub(crate) const fn closed() -> Self {
        Self(None)
    }

    /// One that hands calls on to whoever has the other end.
    pub(crate) fn open() -> (Self, Calls) {
        let (sender, calls) = mpsc::channel(WAITING);
        (Self(Some(sender)), Calls(calls))
    }

    pub(crate) const fn takes_loads(&self) -> bool {
        self.0.is_some()
    }

    /// Loads the version that the control plane finds for the name, or makes a resident one active. Comes back when
    /// it is active.
    pub(crate) async fn load(&self, name: &str, version: Option<&str>) -> Result<()> {
        self.call(|caller| Call::Load((name.to_owned(), version.map(str::to_owned)), caller)).await
    }

    /// Unloads one version, or all of a name. Comes back when no new request finds it; those in flight are answered.
    pub(crate) async fn unload(&self, name: &str, version: Option<&str>) -> Result<()> {
        self.call(|caller| Call::Unload((name.to_owned(), version.map(str::to_owned)), caller)).await
    }

    async fn call(&self, make: impl FnOnce(Caller) -> Call) -> Result<()> {
        let Some(sender) = &self.0 else {
            let text = "this server neither loads nor unloads: nobody who reads packages stands behind it; start it \
                        with `seatrial serve`";
            return Err(Error::new(Code::Unimplemented, text));
        };
        let (caller, outcome) = oneshot::channel();
        sender.try_send(make(caller)).map_err(|_| {
            let text = format!("{WAITING} calls to load or unload are waiting already");
            Error::new(Code::ResourceExhausted, text).retry_after(Duration::from_secs(1))
        })?;
        let gone = |_| Err(Error::new(Code::Unavailable, "the server is on its way out"));
        outcome.await.unwrap_or_else(gone)
    }
}

/// The calls of all doors.
pub(crate) struct Calls(mpsc::Receiver<Call>);

/// Does what is asked for, in order.
pub(crate) struct Worker {
    pub(crate) door: Arc<Door>,
    pub(crate) loader: Arc<dyn Load>,
    pub(crate) parent: Parent,
    /// Edges of the latency histograms, which all versions of all models share.
    pub(crate) edges_s: Vec<f64>,
    /// Bytes that a byte of files took when this was last seen.
    pub(crate) factor: Option<f64>,
}

impl Worker {
    pub(crate) fn new(door: Arc<Door>, loader: Arc<dyn Load>, parent: Parent, edges_s: Vec<f64>) -> Self {
        Self { door, loader, parent, edges_s, factor: None }
    }

    /// Works until the server ends.
    pub(crate) async fn run(mut self, mut calls: Calls) {
        let mut waiting = VecDeque::new();
        loop {
            if waiting.is_empty() {
                let Some(call) = calls.0.recv().await else { return };
                waiting.push_back(call);
            }
            while let Ok(call) = calls.0.try_recv() {
                waiting.push_back(call);
            }
            match waiting.pop_front() {
                Some(Call::Load(wanted, caller)) => {
                    let mut callers = vec![caller];
                    callers.extend(take_equal(&mut waiting, &wanted));
                    let outcome = self.load(&wanted).await;
                    for caller in callers {
                        let _ = caller.send(outcome.clone());
                    }
                }
                Some(Call::Unload(wanted, caller)) => {
                    let _ = caller.send(self.unload(&wanted));
                }
                None => {}
            }
        }
    }

    async fn load(&mut self, (name, version): &Wanted) -> Result<()> {
        let outcome = self.try_load(name, version.as_deref()).await;
        let label = if self.door.catalog.knows(name) { name.as_str() } else { "" };
        let counted = match &outcome {
            Ok(how) => *how,
            Err(_) => LoadOutcome::Failed,
        };
        count_load(&self.door.registry, label, counted);
        self.publish();
        outcome.map(drop).inspect_err(|error| {
            eprintln!("model `{name}` was not loaded: {}", error.message);
            tell(&Event::LoadFailed { model: name, error: &error.message });
        })
    }

    async fn try_load(&mut self, name: &str, version: Option<&str>) -> Result<LoadOutcome> {
        if version.is_some()
            && let Ok(model) = self.door.catalog.find(name, version)
        {
            return Ok(self.activate(&model));
        }
        let config = match self.parent.resolve(name, version).await {
            Ok(config) => config,
            Err(error) => {
                // Which version it would have been is not known. A name that nobody knows gets no line.
                if error.code != Code::NotFound {
                    let id =
                        ModelId { name: name.to_owned(), version: version.unwrap_or_default().to_owned() };
                    self.door.catalog.note(&id, ModelState::Unavailable, &error.message);
                }
                return Err(error);
            }
        };
        if config.name != name {
            return Err(Error::internal(format!("`{}` was resolved in place of `{name}`", config.name)));
        }
        if let Ok(model) = self.door.catalog.find(&config.name, Some(&config.digest)) {
            return Ok(self.activate(&model));
        }
        let (id, version) = (self.id_of(&config), config.version.clone());
        self.door.catalog.note(&id, ModelState::Loading, "the model is being loaded");
        self.publish();
        match self.load_new(config).await {
            Ok(()) => {
                self.door.catalog.forget(&id);
                for version in [&id.version, ""] {
                    retire_series(&self.door, &id.name, version);
                }
                Ok(LoadOutcome::Loaded)
            }
            Err(error) => {
                retire_series(&self.door, &id.name, &version);
                self.door.catalog.note(&id, ModelState::Unavailable, &error.message);
                Err(error)
            }
        }
    }

    /// Makes a resident version the active one.
    fn activate(&self, model: &Arc<Model>) -> LoadOutcome {
        let config = &model.config;
        let active = self.door.catalog.find(&config.name, None);
        let unchanged = active.is_ok_and(|active| Arc::ptr_eq(&active, model));
        self.door.catalog.activate(model);
        if unchanged {
            return LoadOutcome::Unchanged;
        }
        announce(config, None);
        LoadOutcome::Activated
    }

    async fn load_new(&mut self, config: config::Model) -> Result<()> {
        let files = files_bytes(&config);
        self.check_memory(&config, files)?;
        let before = memory::resident();
        let start = Instant::now();
        let model = self.make(config).await?;
        let (report, outcome) = oneshot::channel();
        let told = move |outcome: std::result::Result<Loaded, _>| drop(report.send(outcome));
        executors::start_beside(model.clone(), &self.loader, told)
            .map_err(|e| Error::internal(format!("no thread could be started to load it: {e}")))?;
        let loaded = match outcome.await {
            Ok(Ok(loaded)) => loaded,
            Ok(Err(refusal)) => return Err(refused(refusal)),
            Err(_) => return Err(Error::internal("the thread that loads it ended without a word")),
        };
        self.learn_factor(files, before);
        self.door.metrics.load_seconds.observe_duration(start.elapsed());
        self.door.catalog.activate(&model);
        announce(&model.config, Some(&loaded));
        for old in self.door.catalog.shorten(&model.config.name, model.config.keep) {
            self.retire(old, None);
        }
        Ok(())
    }

    /// A version before it is loaded. Vocabularies and tokenizers are read beside this task, which has other duties.
    async fn make(&self, config: config::Model) -> Result<Arc<Model>> {
        let figures = Figures::register(&self.door.registry, &config, &self.edges_s)
            .map_err(|e| Error::internal(e.to_string()))?;
        let door = self.door.clone();
        let made = tokio::task::spawn_blocking(move || {
            let features = Features::load(&door.registry, &config).map_err(refused)?;
            Model::new(config, figures, features).map(Arc::new).map_err(Error::invalid)
        });
        made.await.unwrap_or_else(|_| Err(Error::internal("the version could not be read")))
    }

    fn check_memory(&self, config: &config::Model, files: u64) -> Result<()> {
        let factor = self.factor.unwrap_or(USUAL_FACTOR);
        let needed = (files as f64 * factor) as u64;
        let Some(available) = memory::available().filter(|available| *available < needed) else {
            return Ok(());
        };
        let text = format!(
            "model `{}` {} needs about {} of memory ({} of files, times {factor:.1}), {} are available: unload a \
             version or raise the limit",
            config.name,
            config.version,
            mebibytes(needed),
            mebibytes(files),
            mebibytes(available)
        );
        Err(Error::new(Code::ResourceExhausted, text).retry_after(Duration::from_mins(1)))
    }

    /// Small models say nothing about large ones: their files are lost in the noise of live traffic.
    fn learn_factor(&mut self, files: u64, before: Option<u64>) {
        if files < 16 << 20 {
            return;
        }
        if let (Some(before), Some(after)) = (before, memory::resident()) {
            self.factor = Some((after.saturating_sub(before) as f64 / files as f64).clamp(1.0, 4.0));
        }
    }

    fn unload(&self, (name, version): &Wanted) -> Result<()> {
        for model in self.door.catalog.remove(name, version.as_deref())? {
            self.retire(model, Some("unloaded by request"));
        }
        self.publish();
        Ok(())
    }

    /// Lets a version go that no new request can find: those that have it are answered, then its executors end and its
    /// memory is given back.
    fn retire(&self, model: Arc<Model>, why: Option<&'static str>) {
        let door = self.door.clone();
        let id = self.id_of(&model.config);
        door.catalog.note(&id, ModelState::Unloading, "its last requests are being answered");
        tokio::spawn(async move {
            // Everybody who could still submit a request holds the model.
            while Arc::strong_count(&model) > 1 {
                tokio::time::sleep(LOOK).await;
            }
            model.queue.close();
            while Arc::strong_count(&model.executing) > 1 {
                tokio::time::sleep(LOOK).await;
            }
            let config = model.config.clone();
            drop(model);
            seatrial_session::give_memory_back();
            match why {
                Some(why) => door.catalog.note(&id, ModelState::Unavailable, why),
                None => door.catalog.forget(&id),
            }
            retire_series(&door, &config.name, &config.version);
            retire_series(&door, &id.name, &id.version);
            publish_states(&door.registry, &door.catalog.index());
            tell(&Event::Unloaded { model: &config.name, version: &config.version, digest: &config.digest });
        });
    }

    /// How a version that is not resident is called in the index.
    fn id_of(&self, config: &config::Model) -> ModelId {
        let taken = self.door.catalog.find(&config.name, Some(&config.version));
        let version = match taken {
            Ok(other) if other.config.digest != config.digest && other.config.version == config.version => {
                config.digest.chars().take(DIGITS).collect()
            }
            _ => config.version.clone(),
        };
        ModelId { name: config.name.clone(), version }
    }

    fn publish(&self) {
        publish_states(&self.door.registry, &self.door.catalog.index());
    }
}

/// Takes out the calls for the same thing, up to one that would change what they mean.
fn take_equal(waiting: &mut VecDeque<Call>, wanted: &Wanted) -> Vec<Caller> {
    let mut callers = Vec::new();
    let mut rest = VecDeque::new();
    let mut same = true;
    for call in waiting.drain(..) {
        match call {
            Call::Load(other, caller) if same && other == *wanted => callers.push(caller),
            call => {
                let (Call::Load(other, _) | Call::Unload(other, _)) = &call;
                same &= other.0 != wanted.0;
                rest.push_back(call);
            }
        }
    }
    *waiting = rest;
    callers
}

/// Takes the figures of a version away, unless another resident one is called the same.
fn retire_series(door: &Door, name: &str, version: &str) {
    let same = |model: &Arc<Model>| model.config.name == name && model.config.version == version;
    if !door.catalog.all().iter().any(same) {
        door.registry.retire(&[("model", name), ("version", version)]);
    }
}

fn announce(config: &config::Model, loaded: Option<&Loaded>) {
    let (load_s, warmup_s) = loaded.map_or((0.0, 0.0), |loaded| (loaded.load_s, loaded.warmup_s));
    eprintln!("model `{}` {} is active", config.name, config.version);
    let (model, version, digest) = (&config.name, &config.version, &config.digest);
    tell(&Event::Activated { model, version, digest, load_s, warmup_s });
}

/// What the package is to blame for, in the words of a start that was refused.
fn refused(Refusal { error, hint, .. }: Refusal) -> Error {
    let hint = hint.map(|hint| format!("; {hint}")).unwrap_or_default();
    Error::invalid(error + &hint)
}

/// The parent knows all files of a model; without it the ONNX file alone counts.
fn files_bytes(config: &config::Model) -> u64 {
    let of_file = || std::fs::metadata(&config.model_file).map_or(0, |file| file.len());
    if config.files_bytes > 0 { config.files_bytes } else { of_file() }
}

fn mebibytes(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(name: &str) -> Wanted {
        (name.to_owned(), None)
    }

    #[test]
    fn equal_calls_are_taken_together_up_to_one_that_changes_what_they_mean() {
        let caller = || oneshot::channel().0;
        let mut waiting = VecDeque::from([
            Call::Load(wanted("m"), caller()),
            Call::Unload(wanted("n"), caller()),
            Call::Load(wanted("m"), caller()),
            Call::Unload(wanted("m"), caller()),
            Call::Load(wanted("m"), caller()),
        ]);
        assert_eq!(take_equal(&mut waiting, &wanted("m")).len(), 2);
        let left: Vec<_> = waiting.iter().map(|call| matches!(call, Call::Unload(..))).collect();
        assert_eq!(left, [true, true, false]);
    }
}
