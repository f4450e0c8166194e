//! A server that treats each connection as a test says, and a run against it with its rows read back.

use std::{
    fs::File,
    io::{BufRead, BufReader},
    net::{SocketAddr, TcpListener, TcpStream},
    os::unix::net::UnixStream,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::Duration,
};

use arrow_array::{
    RecordBatch,
    cast::AsArray,
    types::{Int64Type, UInt8Type, UInt16Type, UInt32Type},
};
use arrow_ipc::reader::StreamReader;
use seatrial_loadgen::{Arrivals, Config, Done, Error, Schedule, Target};

/// Listens on a free port and gives every connection to a handler on a thread of its own, until dropped.
pub struct Server {
    pub address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    pub fn new(handler: impl Fn(TcpStream) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let (stopped, handler) = (Arc::clone(&stop), Arc::new(handler));
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if stopped.load(Ordering::SeqCst) {
                    return;
                }
                // A test that fails must not wait for a peer for ever.
                stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
                let handler = Arc::clone(&handler);
                std::thread::spawn(move || handler(stream));
            }
        });
        Self { address, stop, thread: Some(thread) }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(self.address);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Reads requests and answers each with these bytes until the peer leaves.
pub fn answer_all(answer: &'static [u8]) -> impl Fn(TcpStream) + Send + Sync + 'static {
    move |mut stream| {
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        while read_request(&mut reader).is_some() {
            if std::io::Write::write_all(&mut stream, answer).is_err() {
                return;
            }
        }
    }
}

/// One request: its head and its body.
pub fn read_request(reader: &mut impl BufRead) -> Option<(String, Vec<u8>)> {
    let mut head = String::new();
    loop {
        let before = head.len();
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
        if head.get(before..) == Some("\r\n") {
            break;
        }
    }
    let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: "));
    let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
    reader.read_exact(&mut body).ok()?;
    Some((head, body))
}

/// A plan of `rate` a second for `seconds`, evenly spaced, to a server.
pub fn plan(address: SocketAddr, rate: f64, seconds: f64) -> Config {
    Config {
        target: Target {
            host: address.ip().to_string(),
            port: address.port(),
            method: "POST".into(),
            path: "/x".into(),
            headers: vec![],
        },
        bodies: "bodies.bin".into(),
        schedule: Schedule::Open {
            arrivals: Arrivals::Constant,
            rate_per_s: rate,
            duration_s: seconds,
            seed: 7,
        },
        max_in_flight: 64,
        timeout_ms: 5_000,
        stages: true,
        output: "out".into(),
        allow_remote: false,
    }
}

pub fn entries(bodies: &[&[u8]]) -> Vec<u8> {
    let header = b"Content-Type: text/plain\r\n";
    let mut out = Vec::new();
    for body in bodies {
        out.extend_from_slice(&u32::try_from(header.len()).unwrap().to_le_bytes());
        out.extend_from_slice(&u32::try_from(body.len()).unwrap().to_le_bytes());
        out.extend_from_slice(header);
        out.extend_from_slice(body);
    }
    out
}

pub struct Run {
    pub done: Done,
    pub events: Vec<serde_json::Value>,
    pub batches: Vec<RecordBatch>,
    pub folder: tempfile::TempDir,
}

/// Runs a plan with one body in a folder of its own.
pub fn go(config: Config) -> Run {
    let (stop, _keep) = UnixStream::pair().unwrap();
    go_until(config, &[b"hello"], stop).unwrap()
}

pub fn go_until(mut config: Config, bodies: &[&[u8]], stop: UnixStream) -> Result<Run, Error> {
    let folder = tempfile::tempdir().unwrap();
    config.bodies = folder.path().join("bodies.bin");
    if config.output.is_relative() {
        config.output = folder.path().join("out");
    }
    std::fs::write(&config.bodies, entries(bodies)).unwrap();
    stop.set_nonblocking(true).unwrap();
    let mut talk = Vec::new();
    let done = seatrial_loadgen::run(&config, stop, &mut talk)?;
    let events = String::from_utf8(talk).unwrap();
    let events = events.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let batches = read(&config.output.join("requests.arrow"));
    Ok(Run { done, events, batches, folder })
}

/// All whole batches of a stream.
pub fn read(path: &Path) -> Vec<RecordBatch> {
    StreamReader::try_new(File::open(path).unwrap(), None).unwrap().map_while(Result::ok).collect()
}

impl Run {
    pub fn times(&self, name: &str) -> Vec<Option<i64>> {
        let columns = self.batches.iter().map(|batch| batch.column_by_name(name).unwrap());
        columns.flat_map(|column| column.as_primitive::<Int64Type>().iter().collect::<Vec<_>>()).collect()
    }

    pub fn stage(&self, name: &str) -> Vec<Option<u32>> {
        let columns = self.batches.iter().map(|batch| batch.column_by_name(name).unwrap());
        columns.flat_map(|column| column.as_primitive::<UInt32Type>().iter().collect::<Vec<_>>()).collect()
    }

    pub fn outcomes(&self) -> Vec<u8> {
        let columns = self.batches.iter().map(|batch| batch.column_by_name("outcome").unwrap());
        columns.flat_map(|column| column.as_primitive::<UInt8Type>().values().to_vec()).collect()
    }

    pub fn statuses(&self) -> Vec<u16> {
        let columns = self.batches.iter().map(|batch| batch.column_by_name("status").unwrap());
        columns.flat_map(|column| column.as_primitive::<UInt16Type>().values().to_vec()).collect()
    }

    /// Every request is there once, with the outcome that a test expects, and the counts agree with the rows.
    pub fn assert_all(&self, count: usize, outcome: u8) {
        assert_eq!(self.outcomes(), vec![outcome; count], "{:?}", self.done);
        let last = self.done.last;
        assert_eq!(last.intended, count as u64);
        assert_eq!(
            last.completed + last.not_sent,
            last.ok + last.not_sent + u64::from(outcome == 1) * last.errors
        );
        assert_eq!(last.ok + last.errors + last.not_sent, count as u64);
        assert_eq!(last.in_flight, 0);
        assert_eq!(self.times("end_ns").iter().filter(|end| end.is_none()).count(), 0);
    }
}
