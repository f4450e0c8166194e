//! What a wrong configuration is told, and that no stranger's host is loaded by mistake.

use std::{os::unix::net::UnixStream, path::Path};

use seatrial_loadgen::{Config, Error, Schedule};

use crate::support::{go_until, plan};

const GOOD: &str = r#"{
  "target": {"host": "127.0.0.1", "port": 8000, "method": "POST", "path": "/x", "headers": [["A", "b"]]},
  "bodies": "/tmp/b", "schedule": {"mode": "open", "arrivals": "poisson", "rate_per_s": 100.0, "duration_s": 20.0, "seed": 1},
  "max_in_flight": 4096, "timeout_ms": 10000, "stages": true, "output": "/tmp/o"
}"#;

fn read(text: &str) -> Result<Config, Error> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("load.json");
    std::fs::write(&path, text).unwrap();
    Config::read(&path)
}

#[track_caller]
fn refused(from: &str, to: &str, word: &str) {
    assert!(GOOD.contains(from), "{from}");
    let error = read(&GOOD.replace(from, to)).unwrap_err();
    assert_eq!(error.exit_code(), 2, "{error}");
    assert!(error.to_string().contains(word), "{word} is not in: {error}");
    assert!(error.hint().is_some(), "{error}");
}

#[test]
fn the_documented_file_is_read() {
    read(GOOD).unwrap();
    let closed = r#"{"mode": "closed", "connections": 64, "duration_s": 10.0}"#;
    let start = GOOD.find(r#"{"mode""#).unwrap();
    let end = start + GOOD[start..].find('}').unwrap() + 1;
    let config = read(&format!("{}{closed}{}", &GOOD[..start], &GOOD[end..])).unwrap();
    assert!(matches!(config.schedule, Schedule::Closed { connections: 64, .. }));
}

#[test]
fn each_wrong_value_is_named() {
    refused(r#""stages": true"#, r#""stages": true, "turbo": 1"#, "turbo");
    refused(r#""seed": 1"#, r#""seed": 1, "sedd": 2"#, "sedd");
    refused(r#""poisson""#, r#""gaussian""#, "gaussian");
    refused("100.0", "-1", "`rate_per_s`");
    refused("20.0", "0", "`duration_s`");
    refused("4096", "0", "`max_in_flight`");
    refused("10000", "0", "`timeout_ms`");
    refused(r#""/x""#, r#""x y""#, "`path`");
    refused(r#""POST""#, r#""PO ST""#, "`method`");
    refused(r#"["A", "b"]"#, r#"["A", "b\r\nEvil: 1"]"#, "`headers`");
    refused(r#""mode": "open""#, r#""mode": "ajar""#, "ajar");
    let missing = Config::read(Path::new("/nonexistent/load.json")).unwrap_err();
    assert_eq!(missing.exit_code(), 2);
}

#[test]
fn a_host_that_is_not_this_machine_needs_a_word() {
    let mut config = plan("192.0.2.1:80".parse().unwrap(), 10.0, 0.1);
    let error = config.address().unwrap_err();
    assert_eq!(error.exit_code(), 2);
    assert!(error.to_string().contains("`192.0.2.1` is not this machine"), "{error}");
    config.allow_remote = true;
    assert_eq!(config.address().unwrap().to_string(), "192.0.2.1:80");
}

#[test]
fn broken_bodies_are_refused_before_the_run() {
    let address = "127.0.0.1:9".parse().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut config = plan(address, 10.0, 0.1);
    config.bodies = folder.path().join("bodies.bin");
    config.output = folder.path().join("out");
    for (bytes, word) in
        [(&b""[..], "empty"), (b"\x05\0\0\0\x01\0\0\0ab", "cut short"), (b"\x03\0\0\0\0\0\0\0a b", "header")]
    {
        std::fs::write(&config.bodies, bytes).unwrap();
        let (stop, _keep) = UnixStream::pair().unwrap();
        let error = seatrial_loadgen::run(&config, stop, &mut Vec::new()).unwrap_err();
        assert!(error.to_string().contains(word), "{error}");
    }
}

#[test]
fn a_full_disk_is_one_clear_refusal() {
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink("/dev/full", folder.path().join("requests.arrow")).unwrap();
    let mut config = plan("127.0.0.1:9".parse().unwrap(), 10.0, 0.1);
    config.output = folder.path().to_owned();
    let (stop, _keep) = UnixStream::pair().unwrap();
    let error = go_until(config, &[b"x"], stop).err().unwrap();
    assert_eq!(error.exit_code(), 3);
    assert!(error.to_string().contains("cannot be written"), "{error}");
}
