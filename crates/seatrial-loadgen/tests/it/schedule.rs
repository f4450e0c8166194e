//! The timetable: its law, its mean, and that a seed means the same for ever.

use seatrial_loadgen::{Arrivals, timetable};

#[test]
fn poisson_gaps_are_exponential() {
    let (rate, seconds) = (1000.0, 40.0);
    let times = timetable(Arrivals::Poisson, rate, seconds, 1).unwrap();
    let n = times.len() as f64;
    // The count has standard deviation sqrt(rate * seconds) = 200.
    assert!((n - rate * seconds).abs() < 4.0 * 200.0, "{n} requests, seed 1");
    let mut last = 0;
    let mut gaps: Vec<f64> = times
        .iter()
        .map(|time| {
            let gap = (time - last) as f64 / 1e9;
            last = *time;
            gap
        })
        .collect();
    gaps.sort_by(f64::total_cmp);
    // Kolmogorov-Smirnov distance to 1 - exp(-rate x); 1.63 / sqrt(n) is its 1 % point.
    let distance = gaps.iter().enumerate().fold(0.0_f64, |worst, (i, gap)| {
        let law = 1.0 - (-rate * gap).exp();
        worst.max((law - i as f64 / n).abs()).max((law - (i as f64 + 1.0) / n).abs())
    });
    assert!(distance < 1.63 / n.sqrt(), "distance {distance}, n {n}, seed 1");
}

#[test]
fn a_seed_means_the_same_for_ever() {
    let first = |seed| timetable(Arrivals::Poisson, 100.0, 10.0, seed).unwrap();
    assert_eq!(first(1), first(1));
    assert_ne!(first(1), first(2));
    // Recomputed from the published algorithm; a change here changes every recorded run.
    assert_eq!(first(1)[..4], PINNED);
}

/// PCG XSL RR 128/64, computed independently in Python; see the law in `schedule.rs` of the crate.
const PINNED: [i64; 4] = [997_556, 9_473_425, 31_898_868, 37_352_503];

#[test]
fn constant_gaps_are_equal_and_the_count_is_exact() {
    let times = timetable(Arrivals::Constant, 100.0, 20.0, 1).unwrap();
    assert_eq!(times.len(), 2000);
    assert!(times.iter().zip(0_i64..).all(|(time, i)| *time == i * 10_000_000));
    // 0.1 * 30 is 3.0000000000000004 in binary.
    assert_eq!(timetable(Arrivals::Constant, 0.1, 30.0, 1).unwrap(), [0, 10_000_000_000, 20_000_000_000]);
    assert_eq!(timetable(Arrivals::Constant, 3.0, 1.1, 1).unwrap().len(), 4);
}

#[test]
fn every_time_lies_within_the_duration_and_none_goes_back() {
    for seed in 0..50 {
        let times = timetable(Arrivals::Poisson, 5000.0, 0.1, seed).unwrap();
        assert!(
            times.is_sorted() && times.iter().all(|time| (0..=100_000_000).contains(time)),
            "seed {seed}"
        );
    }
}

#[test]
fn more_than_fits_into_memory_is_refused() {
    let error = timetable(Arrivals::Constant, 1e6, 1e6, 1).unwrap_err();
    assert_eq!(error.exit_code(), 2);
    assert!(error.to_string().contains("1000000000000"), "{error}");
}
