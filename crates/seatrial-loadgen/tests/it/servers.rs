//! Whole runs against servers that answer, refuse, stall, lie, talk nonsense or leave.

use std::{
    io::{BufReader, Read, Write},
    net::{Shutdown, TcpListener},
    os::unix::net::UnixStream,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use seatrial_loadgen::Schedule;

use crate::support::{Server, answer_all, go, go_until, plan, read, read_request};

const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

#[test]
fn every_request_has_a_row_with_its_times_in_order() {
    let server = Server::new(answer_all(OK));
    let run = go(plan(server.address, 200.0, 1.5));
    run.assert_all(300, 0);
    let columns =
        [run.times("intended_ns"), run.times("sent_ns"), run.times("first_byte_ns"), run.times("end_ns")];
    for row in 0..300 {
        assert!(columns.windows(2).all(|pair| pair[0][row].unwrap() <= pair[1][row].unwrap()), "row {row}");
    }
    let mut intended: Vec<_> = columns[0].iter().flatten().collect();
    intended.sort();
    assert!(intended.iter().zip(0_i64..).all(|(time, i)| **time == i * 5_000_000));
    assert!(run.stage("bytes_in").iter().all(|bytes| *bytes == Some(OK.len() as u32)));
    assert_eq!(run.events.first().unwrap()["event"], "second");
    assert_eq!(run.events.last().unwrap()["event"], "done");
    assert_eq!(run.events.last().unwrap()["ok"], 300);
    let schema = run.batches[0].schema();
    assert_eq!(schema.metadata()["seed"], "7");
    assert_eq!(schema.metadata()["mode"], "open");
    assert!(schema.metadata()["origin_unix_ns"].parse::<i64>().unwrap() > 1_600_000_000_000_000_000);
}

#[test]
fn request_i_sends_body_i_modulo_their_number_over_few_connections() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&seen);
    let server = Server::new(move |mut stream| {
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        while let Some(request) = read_request(&mut reader) {
            log.lock().unwrap().push(request);
            stream.write_all(OK).unwrap();
        }
    });
    let mut config = plan(server.address, 100.0, 0.5);
    config.max_in_flight = 1;
    config.target.headers = vec![("X-Team".into(), "a".into()), ("content-type".into(), "text/html".into())];
    let (stop, _keep) = UnixStream::pair().unwrap();
    let run = go_until(config, &[b"one", b"two", b""], stop).unwrap();
    run.assert_all(50, 0);
    assert_eq!(run.done.sockets, 1);
    let seen = seen.lock().unwrap();
    let bodies: Vec<_> = seen.iter().map(|(_, body)| body.as_slice()).collect();
    let expected: Vec<_> = [&b"one"[..], b"two", b""].into_iter().cycle().take(50).collect();
    assert_eq!(bodies, expected);
    let head = format!(
        "POST /x HTTP/1.1\r\nHost: {}\r\nX-Team: a\r\nContent-Type: text/plain\r\nseatrial-stages: 1\r\nContent-Length: 3\r\n\r\n",
        server.address
    );
    assert_eq!(seen[0].0, head);
}

#[test]
fn a_port_nobody_listens_on_is_a_connect_error_each() {
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let run = go(plan(address, 100.0, 0.3));
    run.assert_all(30, 3);
    assert!(run.done.first_error.as_deref().unwrap().contains("refused"), "{:?}", run.done);
}

#[test]
fn nonsense_is_a_protocol_error() {
    let server = Server::new(answer_all(b"SSH-2.0-OpenSSH_9.2\r\n"));
    let run = go(plan(server.address, 100.0, 0.2));
    run.assert_all(20, 5);
    assert!(run.done.first_error.as_deref().unwrap().contains("not an HTTP/1 answer"), "{:?}", run.done);
}

#[test]
fn other_statuses_are_answers_and_errors() {
    let server = Server::new(answer_all(b"HTTP/1.1 429 Busy\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n"));
    let run = go(plan(server.address, 100.0, 0.2));
    run.assert_all(20, 1);
    assert_eq!(run.statuses(), [429; 20]);
    assert_eq!(run.done.last.completed, 20);
}

#[test]
fn an_answer_cut_in_its_body_is_a_reset() {
    let server = Server::new(|mut stream| {
        read_request(&mut BufReader::new(stream.try_clone().unwrap()));
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\npart").unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let _ = stream.read(&mut [0; 16]); // the other half stays open until the client leaves
    });
    let run = go(plan(server.address, 50.0, 0.2));
    run.assert_all(10, 4);
}

#[test]
fn a_connection_closed_without_an_answer_is_a_reset_and_not_tried_again_when_new() {
    let accepted = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&accepted);
    let server = Server::new(move |stream| {
        count.fetch_add(1, Ordering::SeqCst);
        read_request(&mut BufReader::new(stream));
    });
    let run = go(plan(server.address, 50.0, 0.2));
    run.assert_all(10, 4);
    assert_eq!((run.done.retries, accepted.load(Ordering::SeqCst)), (0, 10));
}

#[test]
fn a_reused_connection_that_died_gets_one_more_try() {
    // Answers once and promises to stay, then takes the next request and leaves.
    let server = Server::new(|mut stream| {
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        read_request(&mut reader);
        stream.write_all(OK).unwrap();
        read_request(&mut reader);
    });
    let mut config = plan(server.address, 100.0, 0.2);
    config.max_in_flight = 1;
    let run = go(config);
    run.assert_all(20, 0);
    assert_eq!((run.done.retries, run.done.sockets), (19, 20));
}

#[test]
fn an_idle_connection_that_ends_is_replaced_without_a_try_lost() {
    let server = Server::new(|mut stream| {
        read_request(&mut BufReader::new(stream.try_clone().unwrap()));
        stream.write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok").unwrap();
    });
    let run = go(plan(server.address, 50.0, 0.4));
    run.assert_all(20, 0);
    assert_eq!((run.done.retries, run.done.sockets), (0, 20));
}

#[test]
fn a_silent_server_costs_time_outs_and_places() {
    let server = Server::new(|mut stream| {
        let _ = stream.read_to_end(&mut Vec::new());
    });
    // Two hundred at once, so that those without a place all run out of time together.
    let mut config = plan(server.address, 1e7, 2e-5);
    config.max_in_flight = 2;
    config.timeout_ms = 300;
    let started = Instant::now();
    let run = go(config);
    assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
    let outcomes = run.outcomes();
    let (timeouts, not_sent) = (count(&outcomes, 2), count(&outcomes, 6));
    assert_eq!(timeouts + not_sent, 200, "{outcomes:?}");
    assert!(timeouts >= 2 && not_sent >= 100, "{timeouts} timed out, {not_sent} not sent");
    // Whatever its fate, a request is given up one time-out after it was due, and not before.
    for (intended, end) in run.times("intended_ns").iter().zip(run.times("end_ns")) {
        let age = end.unwrap() - intended.unwrap();
        assert!((300_000_000..1_500_000_000).contains(&age), "{age} ns");
    }
    let sent = run.times("sent_ns");
    assert!(outcomes.iter().zip(&sent).all(|(outcome, sent)| (*outcome == 6) == sent.is_none()));
    assert_eq!(run.done.last.not_sent, not_sent as u64);
}

#[test]
fn a_stall_is_charged_to_every_request_it_delays() {
    let busy = Arc::new(Mutex::new(0));
    let server = Server::new(move |mut stream| {
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        while read_request(&mut reader).is_some() {
            let mut served = busy.lock().unwrap();
            *served += 1;
            if *served == 10 {
                std::thread::sleep(Duration::from_millis(400));
            }
            drop(served);
            stream.write_all(OK).unwrap();
        }
    });
    let run = go(plan(server.address, 100.0, 0.8));
    run.assert_all(80, 0);
    let mut response: Vec<_> = run
        .times("intended_ns")
        .iter()
        .zip(run.times("end_ns"))
        .map(|(i, e)| e.unwrap() - i.unwrap())
        .collect();
    response.sort_unstable();
    // About 40 requests fell due during the stall; a closed loop with one client would show a single slow one.
    let slow = response.iter().filter(|ns| **ns > 50_000_000).count();
    assert!((30..=60).contains(&slow), "{slow} slow requests");
}

#[test]
fn an_answer_byte_by_byte_is_still_an_answer() {
    let server = Server::new(|mut stream| {
        stream.set_nodelay(true).unwrap();
        read_request(&mut BufReader::new(stream.try_clone().unwrap()));
        for byte in b"HTTP/1.1 200 OK\r\nseatrial-stages: parse=3.2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n" {
            stream.write_all(&[*byte]).unwrap();
        }
    });
    let run = go(plan(server.address, 20.0, 0.5));
    run.assert_all(10, 0);
    assert_eq!(run.stage("parse_ns"), [Some(3200); 10]);
    assert_eq!(run.stage("queue_ns"), [None; 10]);
}

#[test]
fn a_large_body_reaches_a_slow_reader_whole() {
    let server = Server::new(|mut stream| {
        let mut reader = BufReader::with_capacity(4096, stream.try_clone().unwrap());
        while let Some((_, body)) = read_request(&mut reader) {
            let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n{}", body.len());
            stream.write_all(answer.as_bytes()).unwrap();
        }
    });
    let body = vec![b'x'; 8 << 20];
    let mut config = plan(server.address, 10.0, 0.5);
    config.timeout_ms = 20_000;
    let (stop, _keep) = UnixStream::pair().unwrap();
    let run = go_until(config, &[&body], stop).unwrap();
    run.assert_all(5, 0);
}

#[test]
fn a_closed_loop_never_has_more_out_than_it_has_clients() {
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (busy, peak) = (Arc::clone(&now), Arc::clone(&most));
    let server = Server::new(move |mut stream| {
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        while read_request(&mut reader).is_some() {
            peak.fetch_max(busy.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            std::thread::sleep(Duration::from_millis(2));
            busy.fetch_sub(1, Ordering::SeqCst);
            stream.write_all(OK).unwrap();
        }
    });
    let mut config = plan(server.address, 1.0, 1.0);
    config.schedule = Schedule::Closed { connections: 3, duration_s: 0.5 };
    let run = go(config);
    assert_eq!(run.batches[0].schema().metadata()["mode"], "closed");
    assert_eq!(most.load(Ordering::SeqCst), 3);
    let last = run.done.last;
    assert!(last.ok > 20 && last.ok == last.intended && last.sent == last.ok, "{last:?}");
    assert_eq!(run.outcomes().len() as u64, last.ok);
}

#[test]
fn a_stop_keeps_what_was_measured_and_counts_the_rest() {
    let server = Server::new(answer_all(OK));
    let (stop, keep) = UnixStream::pair().unwrap();
    let stopper = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(500));
        drop(keep);
    });
    let started = Instant::now();
    let run = go_until(plan(server.address, 100.0, 60.0), &[b"x"], stop).unwrap();
    stopper.join().unwrap();
    assert!(started.elapsed() < Duration::from_secs(20));
    assert!(run.done.cut_short);
    let rows = run.outcomes().len() as u64;
    assert!(rows >= 20, "{rows}");
    assert_eq!(rows + run.done.never_due + run.done.abandoned, 6000, "{:?}", run.done);
}

#[test]
fn a_torn_stream_is_readable_up_to_its_last_whole_batch() {
    let server = Server::new(answer_all(OK));
    let run = go(plan(server.address, 200.0, 1.8));
    assert!(run.batches.len() >= 3, "{} batches in 1.8 s", run.batches.len());
    let path = run.folder.path().join("out/requests.arrow");
    let whole = std::fs::metadata(&path).unwrap().len();
    std::fs::File::options().write(true).open(&path).unwrap().set_len(whole - 100).unwrap();
    assert_eq!(read(&path)[..], run.batches[..run.batches.len() - 1]);
}

fn count(outcomes: &[u8], outcome: u8) -> usize {
    outcomes.iter().map(|o| usize::from(*o == outcome)).sum()
}
