//! The reader of answers: framing, hostile bytes, and that no cut between two reads changes the verdict.

use proptest::prelude::*;
use seatrial_loadgen::{Response, Step, Violation};

/// Feeds bytes in pieces; the verdict, or `None` while the answer goes on.
fn feed(pieces: &[&[u8]]) -> (Response, Result<Step, Violation>) {
    let mut response = Response::new(false);
    for piece in pieces {
        match response.feed(piece) {
            Ok(Step::More) => {}
            verdict => return (response, verdict),
        }
    }
    (response, Ok(Step::More))
}

#[track_caller]
fn check(bytes: &str, step: Step, status: u16, reusable: bool) {
    let (response, verdict) = feed(&[bytes.as_bytes()]);
    assert_eq!((verdict, response.status(), response.reusable()), (Ok(step), status, reusable), "{bytes:?}");
}

#[track_caller]
fn refused(bytes: &str) {
    assert!(feed(&[bytes.as_bytes()]).1.is_err(), "{bytes:?}");
}

#[test]
fn framing_decides_where_an_answer_ends() {
    check("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", Step::Done, 200, true);
    check("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok", Step::More, 200, true);
    check("HTTP/1.1 200 OK\r\ncontent-length:2\r\nConnection: Close\r\n\r\nok", Step::Done, 200, false);
    check("HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n", Step::Done, 200, false);
    check("HTTP/1.0 200 OK\r\nContent-Length: 0\r\nConnection: keep-alive\r\n\r\n", Step::Done, 200, true);
    check("HTTP/1.1 204 No Content\r\nContent-Length: 9\r\n\r\n", Step::Done, 204, true);
    check("HTTP/1.1 200 OK\r\n\r\nuntil close", Step::More, 200, false);
    check("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 503 no\r\nContent-Length: 0\r\n\r\n", Step::Done, 503, true);
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n";
    check(&format!("{chunked}4;x=y\r\nwiki\r\nA\r\n0123456789\r\n0\r\n\r\n"), Step::Done, 200, true);
    check(&format!("{chunked}0\r\nTrailer: a\r\nMore: b\r\n\r\n"), Step::Done, 200, true);
    check(&format!("{chunked}4\r\nwiki\r\n"), Step::More, 200, true);
}

#[test]
fn bytes_after_the_end_make_a_connection_unfit() {
    check("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1", Step::Done, 200, false);
}

#[test]
fn what_is_not_an_answer_is_refused() {
    refused("SSH-2.0-OpenSSH_9.2\r\n");
    refused("\x15\x03\x01\0\x02\x02\x50");
    refused("HTTP/2 200\r\n\r\n");
    refused("HTTP/1.1 099 x\r\n\r\n");
    refused("HTTP/1.1 101 Switching Protocols\r\n\r\n");
    refused("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n");
    refused("HTTP/1.1 200 OK\r\nContent-Length: +2\r\n\r\nok");
    refused("HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n");
    refused("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok");
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    refused(&format!("{chunked}x\r\n"));
    refused(&format!("{chunked}11111111111111111\r\n"));
    refused(&format!("{chunked}2\r\nokk\r\n"));
    refused(&format!("{chunked}2\nok"));
    refused(&format!("HTTP/1.1 200 OK\r\n{}\r\n", "X: y\r\n".repeat(101)));
    refused(&format!("HTTP/1.1 200 OK\r\nX: {}", "y".repeat(70_000)));
}

#[test]
fn only_a_body_without_a_length_may_end_with_the_connection() {
    let ends = |bytes: &str| feed(&[bytes.as_bytes()]).0.end_of_stream().is_ok();
    assert!(ends("HTTP/1.1 200 OK\r\n\r\nall of it"));
    assert!(!ends("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\npart"));
    assert!(!ends("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nwiki\r\n"));
    assert!(!ends("HTTP/1.1 20"));
}

#[test]
fn answers_to_head_have_no_body_whatever_they_announce() {
    let mut response = Response::new(true);
    assert_eq!(response.feed(b"HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n"), Ok(Step::Done));
}

#[test]
fn the_stage_header_is_read_in_tenths_of_microseconds() {
    let head =
        "HTTP/1.1 200 OK\r\nSeatrial-Stages: accept=12;parse=8.5;feature=0;queue=x;odd=3;run=99999999\r\n";
    let stages = feed(&[head.as_bytes(), b"Content-Length: 0\r\n\r\n"]).0.stages();
    let read: Vec<_> = (0..9).map(|i| stages.get(i)).collect();
    assert_eq!(read[..4], [Some(12_000), Some(8_500), Some(0), None]);
    assert_eq!(read[6], Some(u32::MAX));
    assert_eq!(read[8], None);
}

prop_compose! {
    fn answer()(
        status in prop_oneof![Just(200_u16), 201_u16..600],
        interim in any::<bool>(),
        body in proptest::collection::vec(any::<u8>(), 0..300),
        chunk in proptest::option::of(1_usize..80),
    ) -> (u16, Vec<u8>) {
        let mut bytes = Vec::new();
        if interim {
            bytes.extend_from_slice(b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n");
        }
        bytes.extend_from_slice(format!("HTTP/1.1 {status} x\r\n").as_bytes());
        if status == 204 || status == 304 {
            bytes.extend_from_slice(b"\r\n");
        } else if let Some(chunk) = chunk {
            bytes.extend_from_slice(b"Transfer-Encoding: chunked\r\n\r\n");
            for part in body.chunks(chunk) {
                bytes.extend_from_slice(format!("{:X}\r\n", part.len()).as_bytes());
                bytes.extend_from_slice(part);
                bytes.extend_from_slice(b"\r\n");
            }
            bytes.extend_from_slice(b"0\r\n\r\n");
        } else {
            bytes.extend_from_slice(format!("Content-Length: {}\r\n\r\n", body.len()).as_bytes());
            bytes.extend_from_slice(&body);
        }
        (status, bytes)
    }
}

fn pieces<'a>(bytes: &'a [u8], cuts: &[prop::sample::Index]) -> Vec<&'a [u8]> {
    let mut at: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
    at.extend([0, bytes.len()]);
    at.sort_unstable();
    at.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect()
}

proptest! {
    #[test]
    fn a_good_answer_ends_with_its_last_byte_however_it_is_cut(
        (status, bytes) in answer(),
        cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let (response, verdict) = feed(&pieces(&bytes, &cuts));
        prop_assert_eq!(verdict, Ok(Step::Done));
        prop_assert_eq!((response.status(), response.reusable()), (status, true));
        let (_, early) = feed(&pieces(&bytes[..bytes.len() - 1], &cuts));
        prop_assert_eq!(early, Ok(Step::More));
    }

    #[test]
    fn any_bytes_get_the_same_verdict_however_they_are_cut(
        (_, good) in answer(),
        damage in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let mut bytes = good;
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        let (whole, cut) = (feed(&[&bytes]), feed(&pieces(&bytes, &cuts)));
        prop_assert_eq!(whole.1, cut.1);
        prop_assert_eq!(whole.0.status(), cut.0.status());
    }

    #[test]
    fn noise_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let _ = feed(&[&bytes]).0.end_of_stream();
        let mut framed = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
        framed.extend_from_slice(&bytes);
        let _ = feed(&[&framed]).0.end_of_stream();
    }
}
