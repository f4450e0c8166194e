//! The resolved configuration of one server: read once from a JSON file, checked as a whole, never changed.
//! The control plane writes it (ARCHITECTURE.md, "server.json"); this crate reads no other setting.

use std::{
    collections::HashSet,
    fmt, fs,
    ops::RangeInclusive,
    path::{Path, PathBuf},
    time::Duration,
};

use seatrial_features::Spec;
use seatrial_types::{BatchMode, Batching, PadPlan, Preferred, Signature};
use serde::Deserialize;

/// Everything that a server needs to know.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Where to listen.
    pub listen: Listen,
    /// Threads that read and write sockets.
    #[serde(default = "one")]
    pub io_threads: usize,
    /// The ONNX Runtime library to open.
    pub runtime_library: PathBuf,
    /// What a client may ask of a connection.
    #[serde(default)]
    pub limits: Limits,
    /// How the server ends.
    #[serde(default)]
    pub drain: Drain,
    /// Ends as on SIGTERM, but without the grace time, when standard input reaches its end: the other side of the
    /// pipe is the parent, and the kernel closes it however the parent dies.
    #[serde(default)]
    pub exit_with_parent: bool,
    /// Whether the parent answers `load_wanted` on standard input. Without it nothing is loaded after the start.
    #[serde(default)]
    pub loads: bool,
    /// How readiness is proved.
    #[serde(default)]
    pub health: Health,
    /// What is served.
    pub models: Vec<Model>,
}

/// Where to listen.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Listen {
    /// Address or name.
    pub host: String,
    /// 0 takes a free port.
    pub port: u16,
    /// Gets the port number once the port is bound, and is removed at the end.
    #[serde(default)]
    pub port_file: Option<PathBuf>,
    /// For gRPC: 0 takes a free port, none leaves it out.
    #[serde(default)]
    pub grpc_port: Option<u16>,
    /// Gets the number of the gRPC port once it is bound, and is removed at the end.
    #[serde(default)]
    pub grpc_port_file: Option<PathBuf>,
}

/// What a client may ask of a connection.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// The largest body, before and after its content coding is undone.
    pub max_body_bytes: usize,
    /// The largest request line with all header lines.
    pub max_header_bytes: usize,
    /// The most header lines.
    pub max_headers: usize,
    /// Connections open at the same time.
    pub max_connections: usize,
    /// From the first byte of a request until its header is complete.
    pub header_timeout_ms: u64,
    /// From the header until the body is complete, and for each step forward of a client that reads its answer.
    pub body_timeout_ms: u64,
    /// Silence between requests.
    pub idle_timeout_ms: u64,
}

/// How the server ends.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Drain {
    /// How long the listener stays open after readiness has turned false.
    pub grace_ms: u64,
    /// How long work in flight may take after that.
    pub timeout_ms: u64,
}

/// How readiness is proved.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Health {
    /// The longest time without a successful run before a golden row is sent through queue and executor.
    pub probe_period_ms: u64,
}

/// A request and the outputs that it must give.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Golden {
    /// The body of an infer request.
    pub request: serde_json::Value,
    /// Tensors in the form of the request's inputs.
    pub outputs: Vec<serde_json::Value>,
    /// How far a float may lie from its golden value.
    pub tolerance: Tolerance,
}

/// A float may lie `abs + rel * |golden|` from its golden value.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tolerance {
    /// For values near zero.
    pub abs: f64,
    /// For all others.
    pub rel: f64,
}

/// One version of one model.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Model {
    /// The name in the URL.
    pub name: String,
    /// The semantic version, for people.
    pub version: String,
    /// The version's true name: 64 hex digits.
    pub digest: String,
    /// The ONNX file.
    pub model_file: PathBuf,
    /// Inputs and outputs.
    pub signature: Signature,
    /// What may run together.
    pub batching: Batching,
    /// Sessions with a thread of their own each.
    #[serde(default = "one")]
    pub executors: usize,
    /// Threads of one session.
    #[serde(default = "one")]
    pub intra_op_threads: usize,
    /// Rows that may wait.
    pub queue_rows: usize,
    /// Levels of priority; a request that names none is of the last.
    #[serde(default = "one")]
    pub priority_levels: usize,
    /// How long the costs of runs may be measured before readiness; with 0 they are not, and batches are formed
    /// without them.
    #[serde(default = "default_measure_ms")]
    pub measure_ms: u64,
    /// The deadline of a request that names none.
    pub timeout_ms: u64,
    /// Upper edges of the latency histograms.
    #[serde(default = "default_edges")]
    pub latency_buckets_ms: Vec<f64>,
    /// How raw fields become inputs, where the package says so.
    #[serde(default)]
    pub features: Option<Features>,
    /// Versions that stay loaded, the active one among them.
    #[serde(default = "two")]
    pub keep: usize,
    /// Bytes of all files of the model; 0 means that of the ONNX file alone.
    #[serde(default)]
    pub files_bytes: u64,
    /// Rows with known answers: a version that gives others is not served.
    #[serde(default)]
    pub golden: Vec<Golden>,
}

/// A feature spec and where its files are.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Features {
    /// The package, to which the paths in the spec are relative.
    pub folder: PathBuf,
    /// What becomes of which field.
    pub spec: Spec,
}

/// Why a configuration was not taken.
#[derive(Debug)]
pub struct ConfigError(String);

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ConfigError {}

fn one() -> usize {
    1
}

const fn two() -> usize {
    2
}

const fn default_measure_ms() -> u64 {
    3000
}

fn default_edges() -> Vec<f64> {
    vec![
        0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 25.0, 50.0, 100.0, 250.0, 500.0, 1000.0, 2500.0, 5000.0, 10000.0,
    ]
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_body_bytes: 64 << 20,
            max_header_bytes: 64 << 10,
            max_headers: 100,
            max_connections: 10_000,
            header_timeout_ms: 10_000,
            body_timeout_ms: 30_000,
            idle_timeout_ms: 75_000,
        }
    }
}

impl Default for Drain {
    fn default() -> Self {
        Self { grace_ms: 0, timeout_ms: 30_000 }
    }
}

impl Default for Health {
    fn default() -> Self {
        Self { probe_period_ms: 1000 }
    }
}

impl Health {
    pub(crate) const fn period(&self) -> Duration {
        Duration::from_millis(self.probe_period_ms)
    }
}

impl Limits {
    pub(crate) const fn header_timeout(&self) -> Duration {
        Duration::from_millis(self.header_timeout_ms)
    }

    pub(crate) const fn body_timeout(&self) -> Duration {
        Duration::from_millis(self.body_timeout_ms)
    }

    pub(crate) const fn idle_timeout(&self) -> Duration {
        Duration::from_millis(self.idle_timeout_ms)
    }
}

impl Config {
    /// Reads and checks the file.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let text = fs::read(path).map_err(|e| {
            ConfigError(format!("the configuration `{}` cannot be read: {e}", path.display()))
        })?;
        Self::parse(&text)
    }

    /// Parses and checks a JSON text.
    pub fn parse(text: &[u8]) -> Result<Self, ConfigError> {
        let mut json = serde_json::Deserializer::from_slice(text);
        let config: Self = serde_path_to_error::deserialize(&mut json).map_err(|e| {
            ConfigError(format!("the configuration is wrong at `{}`: {}", e.path(), e.inner()))
        })?;
        json.end().map_err(|e| ConfigError(format!("the configuration goes on after its end: {e}")))?;
        config.check()?;
        Ok(config)
    }

    /// The upper edges of all models' latency histograms in seconds. A metric family has one set of edges, so it
    /// gets those of every model.
    pub(crate) fn latency_edges_s(&self) -> Vec<f64> {
        let mut edges: Vec<f64> =
            self.models.iter().flat_map(|m| &m.latency_buckets_ms).map(|ms| ms / 1e3).collect();
        edges.sort_by(f64::total_cmp);
        edges.dedup();
        edges
    }

    fn check(&self) -> Result<(), ConfigError> {
        let limits = &self.limits;
        within("io_threads", self.io_threads, 1..=256)?;
        within("limits.max_body_bytes", limits.max_body_bytes, 1..=1 << 40)?;
        within("limits.max_header_bytes", limits.max_header_bytes, 1024..=16 << 20)?;
        within("limits.max_headers", limits.max_headers, 1..=10_000)?;
        within("limits.max_connections", limits.max_connections, 1..=1_000_000)?;
        within("limits.header_timeout_ms", limits.header_timeout_ms, 1..=DAY_MS)?;
        within("limits.body_timeout_ms", limits.body_timeout_ms, 1..=DAY_MS)?;
        within("limits.idle_timeout_ms", limits.idle_timeout_ms, 1..=DAY_MS)?;
        within("drain.grace_ms", self.drain.grace_ms, 0..=DAY_MS)?;
        within("drain.timeout_ms", self.drain.timeout_ms, 0..=DAY_MS)?;
        within("health.probe_period_ms", self.health.probe_period_ms, 10..=DAY_MS)?;
        if self.loads && !self.exit_with_parent {
            let text = "`loads` is true without `exit_with_parent`: the parent answers on standard input";
            return Err(ConfigError(text.to_owned()));
        }
        if self.models.is_empty() {
            return Err(ConfigError("`models` is empty: expected at least one model".to_owned()));
        }
        let mut seen = HashSet::new();
        for (index, model) in self.models.iter().enumerate() {
            model.check(&format!("models[{index}]"))?;
            if !seen.insert((&model.name, &model.digest)) {
                return Err(ConfigError(format!(
                    "model `{}` with digest `{}` is listed twice",
                    model.name, model.digest
                )));
            }
        }
        Ok(())
    }
}

const DAY_MS: u64 = 86_400_000;
const HOUR_MS: u64 = 3_600_000;

impl Model {
    /// A model that the parent has resolved after the start.
    pub(crate) fn from_parent(json: &serde_json::Value) -> Result<Self, ConfigError> {
        let model: Self = serde_path_to_error::deserialize(json)
            .map_err(|e| ConfigError(format!("the model is wrong at `{}`: {}", e.path(), e.inner())))?;
        model.check("model")?;
        Ok(model)
    }

    /// How requests of different lengths are joined; only where nothing else of a row's mates changes its answer.
    pub(crate) fn padding(&self) -> Result<Option<PadPlan>, String> {
        let padding = self.batching.padding.as_ref().filter(|_| self.batching.mode == BatchMode::Full);
        padding.map(|padding| PadPlan::new(padding, &self.signature)).transpose()
    }

    fn check(&self, at: &str) -> Result<(), ConfigError> {
        let bad_name = |c: char| c == '/' || c.is_control();
        if self.name.is_empty() || self.name == "." || self.name == ".." || self.name.contains(bad_name) {
            return Err(ConfigError(format!(
                "`{at}.name` is `{}`: expected a name without `/` and control characters",
                self.name.escape_debug()
            )));
        }
        if self.version.is_empty() || self.version.contains(bad_name) {
            return Err(ConfigError(format!(
                "`{at}.version` is `{}`: expected a version",
                self.version.escape_debug()
            )));
        }
        let hex = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
        if self.digest.len() != 64 || !self.digest.bytes().all(hex) {
            return Err(ConfigError(format!(
                "`{at}.digest` is `{}`: expected 64 hex digits in lower case",
                self.digest
            )));
        }
        within(&format!("{at}.executors"), self.executors, 1..=1024)?;
        within(&format!("{at}.intra_op_threads"), self.intra_op_threads, 1..=1024)?;
        within(&format!("{at}.batching.max_rows"), self.batching.max_rows, 1..=1 << 20)?;
        within(&format!("{at}.queue_rows"), self.queue_rows, 1..=1 << 30)?;
        within(&format!("{at}.priority_levels"), self.priority_levels, 1..=64)?;
        within(&format!("{at}.measure_ms"), self.measure_ms, 0..=HOUR_MS)?;
        self.padding().map_err(|e| ConfigError(format!("`{at}.batching`: {e}")))?;
        check_preferred(at, &self.batching)?;
        within(&format!("{at}.timeout_ms"), self.timeout_ms, 1..=DAY_MS)?;
        within(&format!("{at}.keep"), self.keep, 1..=1024)?;
        check_edges(at, &self.latency_buckets_ms)
    }
}

fn check_preferred(at: &str, batching: &Batching) -> Result<(), ConfigError> {
    let Some(Preferred { rows, max_delay_ms }) = &batching.preferred else { return Ok(()) };
    within(&format!("{at}.batching.preferred.max_delay_ms"), *max_delay_ms, 0..=DAY_MS)?;
    let fit = rows.iter().all(|rows| (1..=batching.max_rows).contains(rows));
    if rows.is_empty() || !fit || !rows.is_sorted_by(|a, b| a < b) {
        return Err(ConfigError(format!(
            "`{at}.batching.preferred.rows` is {rows:?}: expected ascending sizes from 1 to {}",
            batching.max_rows
        )));
    }
    Ok(())
}

fn check_edges(at: &str, edges: &[f64]) -> Result<(), ConfigError> {
    let ascending = edges.is_sorted_by(|a, b| a < b);
    if edges.is_empty() || edges.len() > 64 || !ascending || !edges.iter().all(|e| e.is_finite() && *e > 0.0)
    {
        return Err(ConfigError(format!(
            "`{at}.latency_buckets_ms` is {edges:?}: expected 1 to 64 ascending positive numbers"
        )));
    }
    Ok(())
}

#[allow(clippy::needless_pass_by_value, reason = "a range is written in place")]
fn within<T: PartialOrd + fmt::Display>(
    name: &str,
    value: T,
    range: RangeInclusive<T>,
) -> Result<(), ConfigError> {
    if range.contains(&value) {
        return Ok(());
    }
    let (low, high) = (range.start(), range.end());
    Err(ConfigError(format!("`{name}` is {value}: expected {low} to {high}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"{"listen": {"host": "127.0.0.1", "port": 0}, "runtime_library": "/x/libonnxruntime.so",
        "models": [{"name": "m", "version": "1.0.0", "digest": "DIGEST", "model_file": "/x/m.onnx",
        "signature": {"inputs": [], "outputs": []}, "batching": {"mode": "none", "max_rows": 1},
        "queue_rows": 4, "timeout_ms": 100}]}"#;

    fn parse(change: (&str, &str)) -> Result<Config, String> {
        let good = GOOD.replace("DIGEST", &"a".repeat(64));
        assert!(good.contains(change.0), "`{}` is not in the sample", change.0);
        Config::parse(good.replacen(change.0, change.1, 1).as_bytes()).map_err(|e| e.to_string())
    }

    #[test]
    fn defaults_are_safe() {
        let config = parse(("", "")).unwrap();
        assert_eq!(config.limits.max_body_bytes, 64 << 20);
        assert_eq!(config.io_threads, 1);
        assert!(!config.exit_with_parent);
        assert_eq!(config.latency_edges_s().len(), 16);
    }

    #[test]
    fn what_is_wrong_is_named_with_its_value() {
        let cases = [
            (("\"port\": 0", "\"port\": 70000"), "listen.port"),
            (("\"port\": 0", "\"port\": 0, \"prot\": 1"), "unknown field `prot`"),
            (("\"queue_rows\": 4", "\"queue_rows\": 0"), "`models[0].queue_rows` is 0: expected 1 to"),
            (("\"mode\": \"none\"", "\"mode\": \"some\""), "models[0].batching.mode"),
            (
                ("\"max_rows\": 1", "\"max_rows\": 4, \"preferred\": {\"rows\": [8], \"max_delay_ms\": 1}"),
                "is [8]",
            ),
            (
                (
                    "\"mode\": \"none\"",
                    "\"padding\": {\"inputs\": {\"x\": {\"axis\": 1, \"value\": 0}}}, \"mode\": \"full\"",
                ),
                "`models[0].batching`: `padding.inputs.x`: the signature has no `x`",
            ),
            (("\"name\": \"m\"", "\"name\": \"../m\""), "`models[0].name` is `../m`"),
            (("aaaa", "AAAA"), "expected 64 hex digits"),
            (("\"timeout_ms\": 100", "\"timeout_ms\": 100, \"latency_buckets_ms\": [2, 1]"), "ascending"),
            (("}]}", "}]} x"), "goes on after its end"),
            (("{\"name\"", "{\"name\": 1, \"nam\""), "models[0].name"),
        ];
        for (change, expected) in cases {
            let error = parse(change).unwrap_err();
            assert!(error.contains(expected), "{change:?} gave: {error}");
        }
    }

    #[test]
    fn the_histograms_have_the_edges_of_every_model() {
        let two = GOOD.replace("DIGEST", &"a".repeat(64)).replace(
            "\"timeout_ms\": 100}]",
            &format!(
                r#""timeout_ms": 100, "latency_buckets_ms": [1, 7]}}, {{"name": "n", "version": "1", "digest": "{}",
                "model_file": "/x", "signature": {{"inputs": [], "outputs": []}}, "queue_rows": 1, "timeout_ms": 1,
                "batching": {{"mode": "none", "max_rows": 1}}, "latency_buckets_ms": [3, 7]}}]"#,
                "b".repeat(64)
            ),
        );
        assert_eq!(Config::parse(two.as_bytes()).unwrap().latency_edges_s(), [0.001, 0.003, 0.007]);
    }
}
