//! `load.json`: what to send where, when and how often. Unknown keys are errors; every rule is checked before the run.

use std::{
    net::{SocketAddr, ToSocketAddrs},
    path::{Path, PathBuf},
};

use serde::Deserialize;

use crate::Error;

/// The whole of `load.json`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Where requests go.
    pub target: Target,
    /// File of request entries; request i sends entry i modulo their number.
    pub bodies: PathBuf,
    /// When requests are due.
    pub schedule: Schedule,
    /// Most requests that may be out at once; those due beyond it wait for a free place.
    pub max_in_flight: usize,
    /// Counted from the intended time of each request.
    pub timeout_ms: u64,
    /// Whether to ask the server for its stage header and record it.
    #[serde(default)]
    pub stages: bool,
    /// Folder that gets `requests.arrow`.
    pub output: PathBuf,
    /// Whether a target that is not this machine is meant.
    #[serde(default)]
    pub allow_remote: bool,
}

/// Where requests go.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// Name or address.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// HTTP method.
    pub method: String,
    /// Path with its query.
    pub path: String,
    /// Header fields sent with every request.
    #[serde(default)]
    pub headers: Vec<(String, String)>,
}

/// When requests are due.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "mode", rename_all = "lowercase", deny_unknown_fields)]
pub enum Schedule {
    /// On a timetable that the server cannot slow down.
    Open {
        /// Law of the gaps.
        arrivals: Arrivals,
        /// Mean rate.
        rate_per_s: f64,
        /// Length of the timetable.
        duration_s: f64,
        /// The same seed draws the same timetable.
        seed: u64,
    },
    /// The next request when the last one is answered.
    Closed {
        /// How many clients do so side by side.
        connections: usize,
        /// No request starts after it.
        duration_s: f64,
    },
}

/// Law of the gaps between intended times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Arrivals {
    /// Independent exponential gaps.
    Poisson,
    /// Equal gaps.
    Constant,
}

const MAX_DURATION_S: f64 = 366.0 * 86_400.0;

impl Config {
    /// Reads and checks a file.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let text = std::fs::read_to_string(path).map_err(|error| {
            Error::config(
                format!("the configuration `{}` cannot be read: {error}", path.display()),
                "give the path of a load.json",
            )
        })?;
        let config: Self = serde_json::from_str(&text).map_err(|error| {
            Error::config(
                format!("the configuration `{}` is wrong: {error}", path.display()),
                "ARCHITECTURE.md lists the keys of load.json",
            )
        })?;
        config.check()?;
        Ok(config)
    }

    /// Checks every rule that the types do not hold.
    pub fn check(&self) -> Result<(), Error> {
        self.schedule.check()?;
        if self.max_in_flight == 0 || self.max_in_flight > 1_000_000 {
            return Err(Error::config(
                format!("`max_in_flight` is {}, not between 1 and 1000000", self.max_in_flight),
                "4096 is a good start",
            ));
        }
        if self.timeout_ms == 0 || self.timeout_ms > 86_400_000 {
            return Err(Error::config(
                format!("`timeout_ms` is {}, not between 1 and 86400000", self.timeout_ms),
                "10000 is a good start",
            ));
        }
        if let Schedule::Closed { connections, .. } = self.schedule
            && connections > self.max_in_flight
        {
            return Err(Error::config(
                format!("`connections` is {connections}, above `max_in_flight`, {}", self.max_in_flight),
                "raise max_in_flight or lower connections",
            ));
        }
        self.target.check()
    }

    /// The address to connect to. Only this machine, unless the configuration says that another one is meant.
    pub fn address(&self) -> Result<SocketAddr, Error> {
        let Target { host, port, .. } = &self.target;
        let found: Vec<SocketAddr> =
            (host.as_str(), *port).to_socket_addrs().map(Iterator::collect).map_err(|error| {
                Error::missing(format!("`{host}` has no address: {error}"), "check the host name")
            })?;
        if !self.allow_remote && found.iter().any(|address| !address.ip().is_loopback()) {
            return Err(Error::config(
                format!("`{host}` is not this machine, and a load test of somebody else's host is a mistake"),
                "set allow_remote (flag --allow-remote) if that host is yours to load",
            ));
        }
        let first = found.iter().find(|address| address.is_ipv4()).or_else(|| found.first());
        first
            .copied()
            .ok_or_else(|| Error::missing(format!("`{host}` has no address"), "check the host name"))
    }
}

impl Schedule {
    fn check(&self) -> Result<(), Error> {
        let (Self::Open { duration_s, .. } | Self::Closed { duration_s, .. }) = self;
        in_range("duration_s", *duration_s, MAX_DURATION_S)?;
        match self {
            Self::Open { rate_per_s, .. } => in_range("rate_per_s", *rate_per_s, 1e7),
            Self::Closed { connections, .. } if *connections == 0 || *connections > 100_000 => {
                Err(Error::config(
                    format!("`connections` is {connections}, not between 1 and 100000"),
                    "64 is a good start",
                ))
            }
            Self::Closed { .. } => Ok(()),
        }
    }

    /// The word that labels the results.
    pub const fn mode(&self) -> &'static str {
        match self {
            Self::Open { .. } => "open",
            Self::Closed { .. } => "closed",
        }
    }

    /// The seed of the timetable; a closed loop draws nothing.
    pub const fn seed(&self) -> Option<u64> {
        match self {
            Self::Open { seed, .. } => Some(*seed),
            Self::Closed { .. } => None,
        }
    }
}

impl Target {
    fn check(&self) -> Result<(), Error> {
        let token = |text: &str| !text.is_empty() && text.bytes().all(is_token);
        if !token(&self.method) {
            return Err(Error::config(
                format!("`method` is `{}`, not an HTTP method", self.method.escape_debug()),
                "GET and POST are the usual ones",
            ));
        }
        if !self.path.starts_with('/') || self.path.bytes().any(|b| b <= b' ' || b == 0x7f) {
            return Err(Error::config(
                format!("`path` is `{}`, not a path that begins with /", self.path.escape_debug()),
                "percent-encode blanks and control characters",
            ));
        }
        for (name, value) in &self.headers {
            if !token(name) || value.bytes().any(|b| b < b' ' && b != b'\t' || b == 0x7f) {
                return Err(Error::config(
                    format!("`headers` holds `{}`, not a header field", name.escape_debug()),
                    "a header is a name without blanks and a value on one line",
                ));
            }
        }
        Ok(())
    }
}

pub(crate) const fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(byte, b'!' | b'#'..=b'\'' | b'*' | b'+' | b'-' | b'.' | b'^'..=b'`' | b'|' | b'~')
}

fn in_range(name: &str, value: f64, most: f64) -> Result<(), Error> {
    if value > 0.0 && value <= most {
        return Ok(());
    }
    Err(Error::config(format!("`{name}` is {value}, not above 0 and up to {most}"), "give a positive number"))
}
