//! While the executor is busy: deadlines are kept to the millisecond, gone clients free their places, and what cannot
//! be done in time is refused before its body has come.

use std::{
    io::{Read, Write},
    net::TcpStream,
    thread,
    time::{Duration, Instant},
};

use seatrial_server::{Ask, Load, LoadedModel, Refusal, config};
use seatrial_session::WarmUpRun;
use seatrial_types::{Result, Runner, Tensor};

use crate::stand_in::{Server, wait_for};

const BUSY: Duration = Duration::from_secs(5);

/// Sleeps for five seconds at 5, and for nothing else.
#[allow(clippy::unnecessary_wraps, reason = "a stand-in runner has the signature of a runner")]
fn sleepy(inputs: &[Tensor]) -> Result<Vec<Tensor>> {
    if inputs[0].data.chunks_exact(4).any(|value| value == 5f32.to_le_bytes()) {
        thread::sleep(BUSY);
    }
    Ok(inputs.to_vec())
}

fn head(length: usize, timeout_ms: u64) -> String {
    format!(
        "POST /v2/models/m/infer HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {length}\r\n\
         seatrial-timeout-ms: {timeout_ms}\r\n\r\n"
    )
}

fn send(port: u16, value: f32, timeout_ms: u64) -> TcpStream {
    let body =
        format!(r#"{{"inputs": [{{"name": "x", "datatype": "FP32", "shape": [1, 1], "data": [{value}]}}]}}"#);
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream.write_all((head(body.len(), timeout_ms) + &body).as_bytes()).unwrap();
    stream
}

fn answer(mut stream: TcpStream) -> String {
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

fn queued(server: &Server) -> u64 {
    let page = server.get("/metrics").1;
    let line = page.lines().find(|line| line.starts_with("seatrial_batching_queued_rows{")).unwrap();
    line.rsplit(' ').next().unwrap().parse().unwrap()
}

#[test]
fn deadlines_are_kept_and_gone_clients_free_their_places_while_the_executor_is_busy() {
    let server = Server::ready(sleepy);
    let started = Instant::now();
    let busy = send(server.port, 5.0, 20_000);
    wait_for("the busy executor", || server.get("/metrics").1.contains(r#"reason="idle"} 1"#).then_some(()));
    let late: Vec<Duration> = (0..20)
        .map(|_| {
            let began = Instant::now();
            let text = answer(send(server.port, 1.0, 50));
            assert!(text.starts_with("HTTP/1.1 504"), "{text}");
            began.elapsed().saturating_sub(Duration::from_millis(50))
        })
        .collect();
    let least = late.iter().min().unwrap();
    assert!(*least <= Duration::from_millis(2), "20 deadlines of 50 ms, late by {late:?}");
    wait_for("the places of the late requests", || (queued(&server) == 0).then_some(()));
    let gone: Vec<_> = (0..30).map(|_| send(server.port, 1.0, 20_000)).collect();
    wait_for("thirty waiting requests", || (queued(&server) == 30).then_some(()));
    drop(gone);
    wait_for("thirty free places", || (queued(&server) == 0).then_some(()));
    assert!(started.elapsed() < BUSY, "all of this was while the executor was busy");
    assert!(answer(busy).starts_with("HTTP/1.1 200"));
    server.ask(Ask::Terminate);
    assert_eq!(server.end(), 0);
}

/// What every row of the costly model takes, and is known to take.
const ROW: Duration = Duration::from_secs(1);

struct Costly;

struct Slow;

impl Runner for Slow {
    fn run(&mut self, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
        thread::sleep(ROW * inputs[0].rows() as u32);
        Ok(inputs.to_vec())
    }
}

impl Load for Costly {
    fn load(&self, _model: &config::Model) -> std::result::Result<LoadedModel, Refusal> {
        let run = |rows: usize| WarmUpRun { rows, length: 1, time: ROW * rows as u32 };
        let (load, warm_up) = (Duration::ZERO, Duration::ZERO);
        Ok(LoadedModel {
            runners: vec![Box::new(Slow)],
            load,
            warm_up,
            costs: vec![run(1), run(8)],
            slowest: Duration::ZERO,
        })
    }
}

#[test]
fn what_cannot_be_done_in_time_is_refused_before_its_body_has_come() {
    let server = Server::start(Costly);
    wait_for("readiness", || (server.get("/v2/health/ready").0 == 200).then_some(()));
    let running = send(server.port, 1.0, 20_000);
    wait_for("the busy executor", || server.get("/metrics").1.contains(r#"reason="idle"} 1"#).then_some(()));
    let waiting: Vec<_> = (0..3).map(|_| send(server.port, 1.0, 20_000)).collect();
    wait_for("three waiting requests", || (queued(&server) == 3).then_some(()));
    let mut stream = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    let began = Instant::now();
    stream.write_all(head(100_000, 400).as_bytes()).unwrap();
    let mut first = [0; 12];
    stream.read_exact(&mut first).unwrap();
    assert_eq!(&first, b"HTTP/1.1 429", "no byte of the body was sent");
    assert!(began.elapsed() < ROW, "refused after {:?}", began.elapsed());
    assert!(
        waiting.into_iter().chain([running]).all(|stream| answer(stream).starts_with("HTTP/1.1 200")),
        "who waits is served"
    );
    server.ask(Ask::Terminate);
    assert_eq!(server.end(), 0);
}
