//! Content codings: what is taken, what is refused, and that unpacking stops at the limit.

use std::io::Write;

use bytes::Bytes;
use flate2::{Compression, write};
use seatrial_protocol::codings::{deflate_answer, inflate};
use seatrial_types::Code;

const LIMIT: usize = 1 << 20;

fn gzip(data: &[u8]) -> Vec<u8> {
    let mut encoder = write::GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(data).unwrap();
    encoder.finish().unwrap()
}

fn zlib(data: &[u8]) -> Vec<u8> {
    let mut encoder = write::ZlibEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(data).unwrap();
    encoder.finish().unwrap()
}

fn raw_deflate(data: &[u8]) -> Vec<u8> {
    let mut encoder = write::DeflateEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(data).unwrap();
    encoder.finish().unwrap()
}

fn sample(length: usize) -> Vec<u8> {
    (0..length).map(|n| (n * n % 251) as u8).collect()
}

#[test]
fn gzip_deflate_and_identity_are_taken() {
    for length in [0, 1, 1000, 300_000] {
        let data = sample(length);
        for (coding, body) in [
            ("gzip", gzip(&data)),
            (" GZip ", gzip(&data)),
            ("deflate", zlib(&data)),
            ("identity", data.clone()),
        ] {
            assert_eq!(inflate(coding, &body, LIMIT).unwrap(), data, "{coding} {length}");
        }
        assert_eq!(inflate("deflate", &zlib(&data), length).unwrap(), data, "a limit met exactly");
        assert_eq!(inflate("gzip", &gzip(&data), length).unwrap(), data, "a limit met exactly");
    }
    let two = [gzip(b"one "), gzip(b"two")].concat();
    assert_eq!(inflate("gzip", &two, LIMIT).unwrap(), b"one two");
}

#[test]
fn corrupt_bodies_are_the_clients_mistake() {
    let data = sample(5000);
    let cut = |mut body: Vec<u8>, n: usize| {
        body.truncate(n);
        body
    };
    let flip = |mut body: Vec<u8>| {
        let last = body.len() - 6;
        body[last] ^= 1;
        body
    };
    for (coding, body) in [
        ("gzip", vec![]),
        ("deflate", vec![]),
        ("gzip", b"plain text".to_vec()),
        ("deflate", b"plain text".to_vec()),
        ("deflate", raw_deflate(&data)),
        ("gzip", cut(gzip(&data), gzip(&data).len() / 2)),
        ("deflate", cut(zlib(&data), zlib(&data).len() / 2)),
        ("gzip", cut(gzip(&data), gzip(&data).len() - 1)),
        ("deflate", cut(zlib(&data), zlib(&data).len() - 1)),
        ("gzip", flip(gzip(&data))),
        ("deflate", flip(zlib(&data))),
        ("gzip", [gzip(&data), b"more".to_vec()].concat()),
        ("deflate", [zlib(&data), b"more".to_vec()].concat()),
    ] {
        let outcome = inflate(coding, &body, LIMIT).map(|out| out.len());
        let code = outcome.as_ref().map_err(|error| error.code);
        assert_eq!(code, Err(Code::InvalidArgument), "{coding} of {} bytes: {outcome:?}", body.len());
    }
}

#[test]
fn unknown_and_stacked_codings_are_told_what_is_taken() {
    for coding in ["br", "zstd", "br, gzip", "gzip, gzip", "gzip,deflate", "*"] {
        let error = inflate(coding, b"", LIMIT).unwrap_err();
        assert_eq!(error.code, Code::UnsupportedMediaType);
        assert!(error.message.contains("gzip, deflate, identity"), "{error}");
    }
}

#[test]
fn unpacking_stops_at_the_limit() {
    let bomb = vec![0; 50_000_000];
    for (coding, body) in [("gzip", gzip(&bomb)), ("deflate", zlib(&bomb)), ("identity", bomb)] {
        let error = inflate(coding, &body, 1000).unwrap_err();
        assert_eq!(error.code, Code::PayloadTooLarge);
        assert!(error.message.contains("1000"), "{error}");
    }
}

#[test]
fn answers_are_packed_as_the_client_prefers() {
    let body = Bytes::from(vec![b'7'; 5000]);
    for (accept, coding) in [
        ("gzip", Some("gzip")),
        ("x-gzip", Some("gzip")),
        ("deflate", Some("deflate")),
        ("gzip, deflate, br, zstd", Some("gzip")),
        ("deflate, gzip;q=0.5", Some("deflate")),
        ("deflate;q=0.9, GZIP;Q=0.95", Some("gzip")),
        ("gzip;q=0", None),
        ("gzip;q=0.0, deflate;q=0.1", Some("deflate")),
        ("*", Some("gzip")),
        ("*;q=0", None),
        ("gzip;q=0, *", Some("deflate")),
        ("identity, gzip;q=0.5", None),
        ("br", None),
        ("", None),
        ("gzip;q=nonsense", None),
    ] {
        let (packed, used) = deflate_answer(accept, body.clone());
        assert_eq!(used, coding, "{accept}");
        assert_eq!(inflate(used.unwrap_or("identity"), &packed, 5000).unwrap(), body, "{accept}");
    }
}

#[test]
fn small_and_incompressible_answers_stay_as_they_are() {
    let small = Bytes::from(vec![b'7'; 1024]);
    assert_eq!(deflate_answer("gzip", small.clone()), (small, None));
    let mut state = 1_u64;
    let noise: Vec<u8> = (0..5000)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 56) as u8
        })
        .collect();
    assert_eq!(deflate_answer("gzip", noise.clone().into()), (noise.into(), None));
}
