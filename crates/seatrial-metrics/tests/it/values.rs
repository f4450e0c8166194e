//! Handles: what they count, which bucket takes what, and what a registry refuses.

use std::{sync::Arc, thread, time::Duration};

use seatrial_metrics::{Gauge, Histogram, Registry, RegistryError};

#[test]
fn a_value_on_an_edge_belongs_to_the_bucket_the_edge_closes() {
    let histogram = Histogram::new(&[0.5, 1.0]);
    for value in [0.5, 0.500_001, 1.0, 1.5, -1.0, f64::INFINITY, f64::NAN] {
        histogram.observe(value);
    }
    let snapshot = histogram.snapshot();
    assert_eq!(snapshot.counts, [2, 2, 2]);
    assert_eq!(snapshot.count(), 6);
    assert_eq!(snapshot.cumulative().collect::<Vec<_>>(), [(0.5, 2), (1.0, 4), (f64::INFINITY, 6)]);
}

#[test]
fn durations_are_recorded_in_seconds() {
    let histogram = Histogram::new(&[0.001, 1.0]);
    histogram.observe_duration(Duration::from_micros(250));
    histogram.observe_duration(Duration::from_millis(500));
    let snapshot = histogram.snapshot();
    assert_eq!(snapshot.counts, [1, 1, 0]);
    assert!((snapshot.sum - 0.500_25).abs() < 1e-12, "sum is {}", snapshot.sum);
}

#[test]
fn a_gauge_goes_both_ways() {
    let gauge = Gauge::default();
    gauge.set(5.0);
    gauge.add(-7.5);
    assert!((gauge.get() + 2.5).abs() < f64::EPSILON);
}

#[test]
fn nothing_is_lost_when_threads_record_at_once() {
    let registry = Registry::new();
    let counter = registry.counter("c_total", "c", &[]).unwrap();
    let histogram = registry.histogram("h", "h", &[], &[1.0]).unwrap();
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for i in 0..10_000 {
                    counter.inc();
                    histogram.observe(f64::from(i % 2) * 2.0);
                }
            });
        }
    });
    assert_eq!(counter.get(), 40_000);
    let snapshot = histogram.snapshot();
    assert_eq!(snapshot.counts, [20_000, 20_000]);
    assert!((snapshot.sum - 40_000.0).abs() < 1e-6, "sum is {}", snapshot.sum);
}

#[test]
fn the_same_name_and_labels_give_the_same_handle() {
    let registry = Registry::new();
    let one = registry.counter("c_total", "c", &[("model", "a")]).unwrap();
    let same = registry.counter("c_total", "c", &[("model", "a")]).unwrap();
    let other = registry.counter("c_total", "c", &[("model", "b")]).unwrap();
    assert!(Arc::ptr_eq(&one, &same));
    assert!(!Arc::ptr_eq(&one, &other));
}

#[test]
fn wrong_registrations_are_refused_and_say_why() {
    let registry = Registry::new();
    registry.counter("c_total", "c", &[("model", "a")]).unwrap();
    registry.histogram("h_seconds", "h", &[], &[1.0, 2.0]).unwrap();
    let name = |text: &str| RegistryError::Name(text.to_owned());
    assert_eq!(registry.counter("9lives", "", &[]).unwrap_err(), name("9lives"));
    assert_eq!(registry.counter("", "", &[]).unwrap_err(), name(""));
    assert_eq!(registry.gauge("g", "", &[("a-b", "")]).unwrap_err(), name("a-b"));
    assert_eq!(registry.gauge("g", "", &[("__x", "")]).unwrap_err(), name("__x"));
    assert_eq!(registry.histogram("h", "", &[("le", "1")], &[1.0]).unwrap_err(), name("le"));
    assert_eq!(
        registry.gauge("c_total", "", &[("model", "a")]).unwrap_err(),
        RegistryError::Type("c_total".into())
    );
    assert_eq!(registry.counter("c_total", "", &[]).unwrap_err(), RegistryError::Labels("c_total".into()));
    for edges in [&[][..], &[1.0, 1.0], &[2.0, 1.0], &[1.0, f64::INFINITY], &[f64::NAN], &[1.0, 3.0]] {
        let refused = registry.histogram("h_seconds", "h", &[], edges).unwrap_err();
        assert_eq!(refused, RegistryError::Edges("h_seconds".into()), "edges {edges:?}");
    }
    let text = registry.counter("9lives", "", &[]).unwrap_err().to_string();
    assert_eq!(text, "`9lives` is no legal metric or label name");
}
