//! A server in this process, a loader that the test writes, and a client of plain sockets.

use std::{
    io::{Read, Write},
    net::TcpStream,
    path::PathBuf,
    sync::Arc,
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use seatrial_server::{Ask, Config, Load, LoadedModel, Refusal, run};
use seatrial_types::{Result, Runner, Tensor};
use tempfile::TempDir;
use tokio::sync::mpsc;

/// What stands in for a model.
pub type Model = fn(&[Tensor]) -> Result<Vec<Tensor>>;

struct Stand(Model);

impl Runner for Stand {
    fn run(&mut self, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
        (self.0)(inputs)
    }
}

/// Loads `model` after `wait`, or refuses where there is none.
pub struct StandIn {
    pub wait: Duration,
    pub model: Option<Model>,
}

impl Load for StandIn {
    fn load(&self, model: &seatrial_server::config::Model) -> std::result::Result<LoadedModel, Refusal> {
        thread::sleep(self.wait);
        let Some(stand) = self.model else {
            return Err(Refusal::missing(format!("model `{}` cannot be served: no", model.name), "none"));
        };
        let runners = (0..model.executors).map(|_| Box::new(Stand(stand)) as Box<dyn Runner>).collect();
        Ok(LoadedModel {
            runners,
            load: self.wait,
            warm_up: Duration::ZERO,
            costs: Vec::new(),
            slowest: Duration::ZERO,
        })
    }
}

/// A running server.
pub struct Server {
    pub port: u16,
    pub port_file: PathBuf,
    ask: mpsc::Sender<Ask>,
    thread: JoinHandle<i32>,
    _folder: TempDir,
}

impl Server {
    /// Starts one with a single model `m`: FP32 rows of one in and out, up to eight together.
    pub fn start(loader: impl Load + 'static) -> Self {
        Self::start_with(loader, "", "")
    }

    /// Starts one with more keys of the server and of the model in its configuration.
    pub fn start_with(loader: impl Load + 'static, server_keys: &str, model_keys: &str) -> Self {
        let folder = TempDir::new().unwrap();
        let port_file = folder.path().join("port");
        let model_file = folder.path().join("m.onnx");
        std::fs::write(&model_file, "").unwrap();
        let tensor = |name: &str| {
            format!(r#"{{"name": "{name}", "datatype": "FP32", "shape": [{{"name": "n"}}, 1]}}"#)
        };
        let json = format!(
            r#"{{"listen": {{"host": "127.0.0.1", "port": 0, "port_file": "{}"}}, "runtime_library": "/none", {server_keys}
            "models": [{{"name": "m", "version": "1.0.0", "digest": "{}", "model_file": "{}",
            "signature": {{"inputs": [{}], "outputs": [{}]}}, "batching": {{"mode": "full", "max_rows": 8}},
            "queue_rows": 64, "timeout_ms": 5000{model_keys}}}]}}"#,
            port_file.display(),
            "0".repeat(64),
            model_file.display(),
            tensor("x"),
            tensor("y")
        );
        let config = Config::parse(json.as_bytes()).unwrap();
        let loader: Arc<dyn Load> = Arc::new(loader);
        let (ask, asks) = mpsc::channel(4);
        let thread = thread::spawn(move || run(&config, &loader, asks));
        let port =
            wait_for("the port file", || std::fs::read_to_string(&port_file).ok()?.trim().parse().ok());
        Self { port, port_file, ask, thread, _folder: folder }
    }

    /// Starts one and waits until it is ready.
    pub fn ready(model: Model) -> Self {
        let server = Self::start(StandIn { wait: Duration::ZERO, model: Some(model) });
        wait_for("readiness", || (server.get("/v2/health/ready").0 == 200).then_some(()));
        server
    }

    pub fn ask(&self, ask: Ask) {
        self.ask.blocking_send(ask).unwrap();
    }

    /// Waits for the end; gives the exit code.
    pub fn end(self) -> i32 {
        self.thread.join().unwrap()
    }

    pub fn is_ready(&self) -> bool {
        self.get("/v2/health/ready").0 == 200
    }

    pub fn get(&self, path: &str) -> (u16, String) {
        exchange(self.port, &format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"))
    }

    /// One row through the model.
    pub fn infer(&self, value: f32) -> (u16, String) {
        let body = format!(
            r#"{{"inputs": [{{"name": "x", "datatype": "FP32", "shape": [1, 1], "data": [{value}]}}]}}"#
        );
        let length = body.len();
        exchange(
            self.port,
            &format!(
                "POST /v2/models/m/infer HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}"
            ),
        )
    }
}

/// Status and everything else of the one answer.
fn exchange(port: u16, request: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    (text.split(' ').nth(1).unwrap().parse().unwrap(), text)
}

/// Polls until there is something, for at most ten seconds.
pub fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "{what} did not come");
        thread::sleep(Duration::from_millis(2));
    }
}
