//! Nothing leaks: resident memory stays flat over many runs, failed runs and sessions. Measured in a process of its
//! own, since other tests allocate at the same time.

use std::{env, fs, process::Command};

use seatrial_session::{Session, SessionOptions};

use crate::dock::{self, floats, integers, strings};

const CHILD: &str = "SEATRIAL_TEST_LEAK_CHILD";
const RUNS: usize = 20_000;
/// A leaked value, status or description of 100 bytes a run would be 2 MB.
const ALLOWED_KIB: u64 = 1024;

#[test]
fn resident_memory_stays_flat() {
    let Some(library) = dock::library() else { return };
    if env::var_os(CHILD).is_some() {
        measure();
        return;
    }
    let child = Command::new(env::current_exe().unwrap())
        .args(["--exact", "leaks::resident_memory_stays_flat", "--nocapture", "--test-threads=1"])
        .env(CHILD, "1")
        .env("SEATRIAL_TEST_RUNTIME", library)
        .output()
        .unwrap();
    let (out, err) = (String::from_utf8_lossy(&child.stdout), String::from_utf8_lossy(&child.stderr));
    assert!(child.status.success() && out.contains("1 passed"), "{out}{err}");
}

fn measure() {
    let runtime = dock::runtime().unwrap();
    let mixed = dock::open(&runtime, "mixed.onnx", &dock::mixed());
    let lookup = dock::open(&runtime, "lookup.onnx", &dock::lookup());
    let round = |i: usize| work(&mixed, &lookup, i);
    (0..2000).for_each(round);
    let before = resident_kib();
    (0..RUNS).for_each(round);
    let grown = resident_kib().saturating_sub(before);
    assert!(grown <= ALLOWED_KIB, "{RUNS} rounds of three runs grew the process by {grown} KiB");

    let load = |_| drop(dock::open(&runtime, "mixed.onnx", &dock::mixed()));
    let refuse = |_| {
        let wrong = runtime.session(&dock::model("lookup.onnx"), &dock::double(), &SessionOptions::default());
        assert!(wrong.is_err());
    };
    (0..100).for_each(load);
    (0..100).for_each(refuse);
    let before = resident_kib();
    (0..500).for_each(load);
    (0..500).for_each(refuse);
    let grown = resident_kib().saturating_sub(before);
    assert!(grown <= ALLOWED_KIB, "1000 sessions grew the process by {grown} KiB");
}

/// A good run with strings, a good run from an unaligned buffer, and a failing run.
fn work(mixed: &Session, lookup: &Session, i: usize) {
    let text = [b'x'; 100];
    let numbers = floats(&[1, 2], &[i as f32, 0.0]);
    mixed.run(&[numbers, strings(&[1, 3], &[&text, b"", &text])]).unwrap();
    let mut ids = integers(&[2], &[1, 2]);
    ids.data = dock::unaligned(&ids.data);
    lookup.run(&[ids]).unwrap();
    lookup.run(&[integers(&[2], &[1, 99])]).unwrap_err();
}

fn resident_kib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}
