//! The composition root: knows every part of the server and puts them together, from the configuration to the exit
//! code. The rest of the crate knows only its neighbours.

use std::{
    io,
    net::{SocketAddr, TcpListener},
    path::{Path, PathBuf},
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use seatrial_metrics::{Registry, RegistryError, register_process};
use tokio::{runtime, sync::mpsc};

use crate::{
    asks::{self, Ask},
    catalog::Catalog,
    config::{Config, Listen},
    door::{
        Door,
        listener::{self, Listeners},
    },
    drain::Stage,
    events::{Event, Loaded, tell},
    executors::{self, Load},
    features::Features,
    health,
    metrics::{ServerMetrics, publish_states},
    model::{Figures, Model},
    parent::Parent,
    repository::{Repository, Worker},
};

/// Helper threads of one IO thread, for large bodies.
const HELPERS: usize = 2;

/// Why the server did not start.
#[derive(Debug, PartialEq, Eq)]
pub struct Refusal {
    /// 2 for a wrong configuration, 3 for something missing here.
    pub exit_code: i32,
    /// What is wrong.
    pub error: String,
    /// The cure, where there is one.
    pub hint: Option<String>,
}

impl Refusal {
    /// Something is missing on this machine.
    pub fn missing(error: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { exit_code: 3, error: error.into(), hint: Some(hint.into()) }
    }

    pub(crate) fn wrong(error: impl Into<String>) -> Self {
        Self { exit_code: 2, error: error.into(), hint: None }
    }
}

impl From<RegistryError> for Refusal {
    fn from(error: RegistryError) -> Self {
        Self::wrong(error.to_string())
    }
}

/// How a started server ended.
enum Ended {
    /// Everything was answered.
    Drained,
    /// Time was up, or somebody asked twice.
    Forced,
    /// A model did not load.
    Refused(Refusal),
}

/// Runs a server from its configuration file until it ends, and returns the exit code: 0 ended as asked, 2 the
/// configuration is wrong, 3 something is missing here, 1 anything else.
pub fn run_from_file(path: &Path) -> i32 {
    let started = Instant::now();
    let config = match Config::read(path) {
        Ok(config) => config,
        Err(error) => return refuse(&Refusal::wrong(error.to_string())),
    };
    let asks = match asks::listen(config.exit_with_parent) {
        Ok(asks) => asks,
        Err(e) => return refuse(&no_thread(&e)),
    };
    let (asks, lines) = asks;
    let parent = config.loads.then(|| Parent::new(lines));
    match executors::open_runtime(&config) {
        Ok(loader) => serve(&config, &loader, (asks, parent, started)),
        Err(refusal) => Err(refusal),
    }
    .unwrap_or_else(|refusal| refuse(&refusal))
}

/// Runs a server with a loader of the caller's choice until it is asked to end, and returns the exit code. Nothing is
/// loaded after the start.
pub fn run(config: &Config, loader: &Arc<dyn Load>, asks: mpsc::Receiver<Ask>) -> i32 {
    serve(config, loader, (asks, None, Instant::now())).unwrap_or_else(|refusal| refuse(&refusal))
}

fn refuse(refusal: &Refusal) -> i32 {
    tell(&Event::Refused { error: &refusal.error, hint: refusal.hint.as_deref() });
    refusal.exit_code
}

fn serve(
    config: &Config,
    loader: &Arc<dyn Load>,
    (mut asks, parent, started): (mpsc::Receiver<Ask>, Option<Parent>, Instant),
) -> Result<i32, Refusal> {
    raise_descriptor_limit();
    check_files(config)?;
    let control = runtime::Builder::new_current_thread().enable_all().build().map_err(|e| no_thread(&e))?;
    let (repository, calls) = match parent {
        None => (Repository::closed(), None),
        Some(parent) => {
            let (repository, calls) = Repository::open();
            (repository, Some((parent, calls)))
        }
    };
    let (door, models) = assemble(config, repository)?;
    let Listen { host, port, grpc_port, .. } = &config.listen;
    let (http, address) = bind(host, *port)?;
    let grpc = grpc_port.map(|port| bind(host, port)).transpose()?;
    let (grpc, grpc_port) = grpc.map(|(listener, address)| (listener, address.port())).unzip();
    let _port_files = PortFile::write_all(&config.listen, address.port(), grpc_port)?;
    tell(&Event::Listening { host: &address.ip().to_string(), port: address.port(), grpc_port });
    let listeners = Listeners { http, grpc };
    let io_threads = start_io(config, &listeners, &door)?;
    drop(listeners);
    let n_models = models.len();
    let loads = executors::start(models, loader).map_err(|e| no_thread(&e))?;
    let work = calls.map(|(parent, calls)| {
        Worker::new(door.clone(), loader.clone(), parent, config.latency_edges_s()).run(calls)
    });
    let ended = control.block_on(async {
        tokio::spawn(sweep(door.clone()));
        tokio::spawn(health::watch(door.clone(), config.health.period()));
        let loading = executors::Loading::new(n_models);
        govern(config, &door, (loading, work), (loads, &mut asks, started)).await
    });
    control.shutdown_background();
    Ok(finish(&door, ended, io_threads))
}

fn finish(door: &Door, ended: Ended, io_threads: Vec<thread::JoinHandle<()>>) -> i32 {
    let exit_code = match ended {
        Ended::Refused(refusal) => return refuse(&refusal),
        Ended::Drained => 0,
        // The threads may be held up by what does not end.
        Ended::Forced => 1,
    };
    for io_thread in io_threads.into_iter().filter(|_| exit_code == 0) {
        // A panic there was reported when it happened.
        let _ = io_thread.join();
    }
    let (answered, failed) = door.drain.counts();
    tell(&Event::Drained { answered, failed });
    exit_code
}

/// The life of the server between bind and end. Calls to load are taken once it is ready.
async fn govern(
    config: &Config,
    door: &Arc<Door>,
    (mut loading, mut work): (executors::Loading, Option<impl Future<Output = ()> + Send + 'static>),
    (mut loads, asks, started): (mpsc::Receiver<executors::Outcome>, &mut mpsc::Receiver<Ask>, Instant),
) -> Ended {
    loop {
        tokio::select! {
            Some(ask) = asks.recv() => return drain(config, door, (ask, asks)).await,
            outcome = loads.recv(), if !loading.is_done() => match loading.take(outcome) {
                Ok(None) => {}
                Ok(Some(loaded)) => {
                    publish_states(&door.registry, &door.catalog.index());
                    announce(loaded, started);
                    work.take().map(tokio::spawn);
                }
                Err(refusal) => return Ended::Refused(refusal),
            },
            // Nobody is left who could ask for the end.
            else => return Ended::Forced,
        }
    }
}

fn announce(models: Vec<Loaded>, started: Instant) {
    let seconds = started.elapsed().as_secs_f64();
    eprintln!("ready after {seconds:.3} s");
    tell(&Event::Ready { seconds, models });
}

/// Frees what those leave in the queues who gave up waiting, also while every executor is busy.
async fn sweep(door: Arc<Door>) {
    loop {
        door.abandoned.notified().await;
        for model in door.catalog.all() {
            model.queue.sweep(Instant::now());
        }
    }
}

/// Readiness first, then the doors, then the work in flight. Asked once more, it is over at once.
async fn drain(config: &Config, door: &Door, (ask, asks): (Ask, &mut mpsc::Receiver<Ask>)) -> Ended {
    eprintln!("draining: {ask}");
    door.drain.advance(Stage::Leaving);
    // Nobody is left to send traffic elsewhere when the parent has gone.
    let grace =
        if ask == Ask::ParentGone { Duration::ZERO } else { Duration::from_millis(config.drain.grace_ms) };
    let patience = Duration::from_millis(config.drain.timeout_ms);
    let quietly = async {
        tokio::time::sleep(grace).await;
        door.drain.advance(Stage::Closing);
        tokio::time::timeout(patience, door.emptied()).await.is_ok()
    };
    let ended = tokio::select! {
        biased;
        () = asked_again(asks) => Ended::Forced,
        emptied = quietly => if emptied { Ended::Drained } else { Ended::Forced },
    };
    if matches!(ended, Ended::Forced) {
        // Counted before the IO threads let go of them.
        door.drain.note_unanswered(door.in_flight() as u64);
    }
    for model in door.catalog.all() {
        model.queue.close();
    }
    door.drain.advance(Stage::Over);
    ended
}

/// Waits for somebody who insists. A parent that goes while its server drains has not asked for haste.
async fn asked_again(asks: &mut mpsc::Receiver<Ask>) {
    loop {
        match asks.recv().await {
            Some(Ask::ParentGone) => {}
            Some(Ask::Terminate | Ask::Interrupt) => return,
            None => std::future::pending().await,
        }
    }
}

fn check_files(config: &Config) -> Result<(), Refusal> {
    for model in &config.models {
        if !model.model_file.is_file() {
            return Err(Refusal::missing(
                format!("the file `{}` of model `{}` is not there", model.model_file.display(), model.name),
                "the package may have been moved since the server's configuration was written",
            ));
        }
    }
    Ok(())
}

fn assemble(config: &Config, repository: Repository) -> Result<(Arc<Door>, Vec<Arc<Model>>), Refusal> {
    let registry = Registry::new();
    register_process(&registry)?;
    let metrics = ServerMetrics::register(&registry)?;
    let edges = config.latency_edges_s();
    let mut models = Vec::new();
    for model in &config.models {
        let figures = Figures::register(&registry, model, &edges)?;
        let features = Features::load(&registry, model)?;
        let named = |why| format!("model `{}` cannot be served: {why}", model.name);
        let made = Model::new(model.clone(), figures, features).map_err(|why| Refusal::wrong(named(why)))?;
        models.push(Arc::new(made));
    }
    let catalog = Catalog::new(models.clone());
    let door = Door::new(config.limits.clone(), (catalog, repository), registry, metrics);
    Ok((Arc::new(door), models))
}

fn bind(host: &str, port: u16) -> Result<(TcpListener, SocketAddr), Refusal> {
    let bound = listener::bind(host, port).and_then(|l| l.local_addr().map(|address| (l, address)));
    bound.map_err(|e| match e.kind() {
        io::ErrorKind::AddrInUse => Refusal::missing(
            format!("port `{port}` of `{host}` is taken by another process"),
            "choose another port, or 0 for a free one",
        ),
        io::ErrorKind::PermissionDenied => Refusal::missing(
            format!("port `{port}` of `{host}` may not be bound by this user"),
            "choose a port from 1024 on, or 0 for a free one",
        ),
        _ => Refusal::missing(
            format!("`{host}` port `{port}` cannot be bound: {e}"),
            "choose an address of this machine",
        ),
    })
}

fn start_io(
    config: &Config,
    listeners: &Listeners,
    door: &Arc<Door>,
) -> Result<Vec<thread::JoinHandle<()>>, Refusal> {
    door.expect_listeners(config.io_threads);
    (0..config.io_threads)
        .map(|n| {
            let listeners = listeners.try_clone()?;
            let door = door.clone();
            let runtime = runtime::Builder::new_current_thread()
                .enable_io()
                .enable_time()
                .max_blocking_threads(HELPERS)
                .build()?;
            thread::Builder::new().name(format!("seatrial-io-{n}")).spawn(move || {
                runtime.block_on(listener::run(listeners, door));
                runtime.shutdown_background();
            })
        })
        .collect::<io::Result<_>>()
        .map_err(|e| no_thread(&e))
}

fn no_thread(error: &io::Error) -> Refusal {
    Refusal::missing(
        format!("a thread of the server could not be started: {error}"),
        "raise the limits of processes and open files",
    )
}

/// The soft limit is often 1024, fewer than the connections that are allowed here. Failing leaves it as it was.
fn raise_descriptor_limit() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    let _ = setrlimit(Resource::Nofile, limit);
}

/// The file that tells the port; removed at the end.
struct PortFile(PathBuf);

impl PortFile {
    /// The files that were asked for.
    fn write_all(listen: &Listen, port: u16, grpc_port: Option<u16>) -> Result<Vec<Self>, Refusal> {
        let http = listen.port_file.clone().map(|path| (path, port));
        let grpc = listen.grpc_port_file.clone().zip(grpc_port);
        [http, grpc].into_iter().flatten().map(|(path, port)| Self::write(path, port)).collect()
    }

    /// Writes beside it and renames, so that a reader never sees half of it.
    fn write(path: PathBuf, port: u16) -> Result<Self, Refusal> {
        let mut draft = path.clone().into_os_string();
        draft.push(format!(".{}", std::process::id()));
        let written =
            std::fs::write(&draft, format!("{port}\n")).and_then(|()| std::fs::rename(&draft, &path));
        match written {
            Ok(()) => Ok(Self(path)),
            Err(e) => Err(Refusal::missing(
                format!("the port file `{}` cannot be written: {e}", path.display()),
                "name a file in a folder that is there and can be written to",
            )),
        }
    }
}

impl Drop for PortFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}
