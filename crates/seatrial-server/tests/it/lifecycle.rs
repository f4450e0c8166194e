//! From bind to exit: live before ready, refused by name, gone at once when asked twice.

use std::{
    thread,
    time::{Duration, Instant},
};

use seatrial_server::Ask;
use seatrial_types::{Result, Tensor};

use crate::stand_in::{Server, StandIn, wait_for};

#[allow(clippy::unnecessary_wraps, reason = "the form of a model")]
fn echo(inputs: &[Tensor]) -> Result<Vec<Tensor>> {
    Ok(inputs.to_vec())
}

#[test]
fn a_server_is_live_at_once_and_ready_when_its_model_is_loaded() {
    let server = Server::start(StandIn { wait: Duration::from_millis(400), model: Some(echo) });
    assert_eq!(server.get("/v2/health/live").0, 200);
    let (status, text) = server.get("/v2/health/ready");
    assert_eq!(status, 503);
    assert!(text.contains(r#""ready":false"#) && text.contains(r#""live":true"#), "{text}");
    assert_eq!(server.get("/v2/models/m/ready").0, 503);
    assert!(server.get("/v2/models").1.contains(r#""state":"LOADING""#));
    let (status, text) = server.infer(1.0);
    assert_eq!(status, 503);
    assert!(text.contains("retry-after: 1\r\n") && text.contains("model `m` is not ready"), "{text}");
    wait_for("readiness", || (server.get("/v2/health/ready").0 == 200).then_some(()));
    assert_eq!(server.infer(1.0).0, 200);
    server.ask(Ask::Terminate);
    assert_eq!(server.end(), 0);
}

#[test]
fn a_model_that_does_not_load_ends_the_server_with_3_and_takes_the_port_file_along() {
    let server = Server::start(StandIn { wait: Duration::from_millis(50), model: None });
    let port_file = server.port_file.clone();
    assert_eq!(server.end(), 3);
    assert!(!port_file.exists());
}

#[test]
fn asked_while_it_loads_it_ends_without_waiting_for_the_model() {
    let server = Server::start(StandIn { wait: Duration::from_secs(5), model: Some(echo) });
    let start = Instant::now();
    server.ask(Ask::ParentGone);
    assert_eq!(server.end(), 0);
    assert!(start.elapsed() < Duration::from_secs(2), "it took {:?}", start.elapsed());
}

#[test]
fn asked_twice_it_ends_at_once() {
    fn slow(inputs: &[Tensor]) -> Result<Vec<Tensor>> {
        thread::sleep(Duration::from_secs(3));
        echo(inputs)
    }
    let server = Server::ready(slow);
    let port = server.port;
    let client = thread::spawn(move || {
        let mut stream = std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
        let body = r#"{"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 1], "data": [1]}]}"#;
        let request = format!(
            "POST /v2/models/m/infer HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        std::io::Write::write_all(&mut stream, request.as_bytes()).unwrap();
        let mut rest = Vec::new();
        let _ = std::io::Read::read_to_end(&mut stream, &mut rest);
        rest.is_empty()
    });
    wait_for("the request", || {
        server.get("/metrics").1.contains("seatrial_server_requests_in_flight 2").then_some(())
    });
    let start = Instant::now();
    server.ask(Ask::Terminate);
    server.ask(Ask::Interrupt);
    assert_eq!(server.end(), 1);
    assert!(start.elapsed() < Duration::from_secs(1), "it took {:?}", start.elapsed());
    assert!(client.join().unwrap(), "the request has no answer");
}
