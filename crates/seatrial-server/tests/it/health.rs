//! Health that proves work: a hang or a model that always fails turns readiness false within two periods; a full queue
//! does not.

use std::{
    sync::atomic::{AtomicBool, Ordering::SeqCst},
    thread,
    time::{Duration, Instant},
};

use seatrial_server::Ask;
use seatrial_types::{Error, Result, Tensor};

use crate::stand_in::{Server, StandIn, wait_for};

const PERIOD: Duration = Duration::from_millis(400);

/// Of what the thread scheduler may add on a busy machine.
const SLACK: Duration = Duration::from_millis(200);

fn start(model: fn(&[Tensor]) -> Result<Vec<Tensor>>) -> Server {
    let golden = r#""golden": [{"request": {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 1], "data": [7]}]},
        "outputs": [{"name": "y", "datatype": "FP32", "shape": [1, 1], "data": [7]}],
        "tolerance": {"abs": 0, "rel": 0}}]"#;
    let loader = StandIn { wait: Duration::ZERO, model: Some(model) };
    let health = format!(r#""health": {{"probe_period_ms": {}}},"#, PERIOD.as_millis());
    let server = Server::start_with(loader, &health, &format!(", {golden}"));
    wait_for("readiness", || server.is_ready().then_some(()));
    server
}

fn runs(server: &Server) -> u64 {
    let text = server.get("/metrics").1;
    let line =
        text.lines().find(|line| line.starts_with("seatrial_session_runs_total") && line.contains("\"ok\""));
    line.unwrap().rsplit(' ').next().unwrap().parse().unwrap()
}

#[test]
fn a_hung_executor_turns_readiness_false_within_two_periods_and_back() {
    static HANGS: AtomicBool = AtomicBool::new(false);
    #[allow(clippy::unnecessary_wraps, reason = "the form of a model")]
    fn model(inputs: &[Tensor]) -> Result<Vec<Tensor>> {
        while HANGS.load(SeqCst) {
            thread::sleep(Duration::from_millis(1));
        }
        Ok(inputs.to_vec())
    }
    let server = start(model);
    HANGS.store(true, SeqCst);
    let since = Instant::now();
    wait_for("unreadiness", || (!server.is_ready()).then_some(()));
    assert!(since.elapsed() < PERIOD * 2 + SLACK, "it took {:?}", since.elapsed());
    assert_eq!(server.get("/v2/health/live").0, 200);
    assert_eq!(server.get("/v2/models/m/ready").0, 503);
    assert!(server.get("/v2/models").1.contains(r#""state":"UNAVAILABLE""#));
    HANGS.store(false, SeqCst);
    wait_for("readiness", || server.is_ready().then_some(()));
    server.ask(Ask::Terminate);
    assert_eq!(server.end(), 0);
}

#[test]
fn a_model_that_fails_every_row_is_found_and_one_that_fails_some_is_not() {
    static BROKEN: AtomicBool = AtomicBool::new(false);
    fn model(inputs: &[Tensor]) -> Result<Vec<Tensor>> {
        let refused = inputs[0].data.chunks(4).any(|row| row == 13_f32.to_le_bytes());
        if BROKEN.load(SeqCst) || refused {
            return Err(Error::internal("device lost"));
        }
        Ok(inputs.to_vec())
    }
    let server = start(model);
    let since = Instant::now();
    while since.elapsed() < PERIOD * 3 {
        assert_eq!(server.infer(13.0).0, 500);
        assert!(server.is_ready(), "the golden row is answered");
    }
    BROKEN.store(true, SeqCst);
    wait_for("unreadiness", || (!server.is_ready()).then_some(()));
    assert!(server.get("/v2/models").1.contains("the golden row fails: device lost"));
    server.ask(Ask::Terminate);
    assert_eq!(server.end(), 0);
}

#[test]
fn a_full_queue_is_no_fault() {
    #[allow(clippy::unnecessary_wraps, reason = "the form of a model")]
    fn model(inputs: &[Tensor]) -> Result<Vec<Tensor>> {
        thread::sleep(Duration::from_millis(100));
        Ok(inputs.to_vec())
    }
    let server = start(model);
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        // 64 rows fill the queue; these are more, and each comes again at once.
        for _ in 0..96 {
            scope.spawn(|| {
                while !over.load(SeqCst) {
                    server.infer(1.0);
                }
            });
        }
        wait_for("a full queue", || {
            server
                .get("/metrics")
                .1
                .lines()
                .any(|line| {
                    line.starts_with("seatrial_server_requests_total")
                        && line.contains("\"429\"")
                        && !line.ends_with(" 0")
                })
                .then_some(())
        });
        let since = Instant::now();
        while since.elapsed() < PERIOD * 3 {
            assert!(server.is_ready());
            thread::sleep(Duration::from_millis(20));
        }
        over.store(true, SeqCst);
    });
    server.ask(Ask::Terminate);
    assert_eq!(server.end(), 0);
}

#[test]
fn a_probe_is_sent_when_nobody_asks_and_left_out_when_somebody_does() {
    #[allow(clippy::unnecessary_wraps, reason = "the form of a model")]
    fn model(inputs: &[Tensor]) -> Result<Vec<Tensor>> {
        Ok(inputs.to_vec())
    }
    let server = start(model);
    let before = runs(&server);
    let since = Instant::now();
    wait_for("two probes", || (runs(&server) >= before + 2).then_some(()));
    assert!(since.elapsed() > PERIOD, "they came too fast: {:?}", since.elapsed());

    assert_eq!(server.infer(1.0).0, 200);
    let (before, since) = (runs(&server), Instant::now());
    let mut asked = 0;
    while since.elapsed() < PERIOD * 4 {
        assert_eq!(server.infer(1.0).0, 200);
        asked += 1;
        thread::sleep(Duration::from_millis(5));
    }
    assert!(runs(&server) - before <= asked + 1, "a period without a success is rare under traffic");
    server.ask(Ask::Terminate);
    assert_eq!(server.end(), 0);
}
