//! Which requests run together, in which order, and why a batch was let go.

use std::time::{Duration, Instant};

use seatrial_batching::{Config, Former};
use seatrial_types::{BatchMode, DataType, Release, Stage};

use crate::tank::{CONFIG, metrics, names, request};

/// Admits one request of each shape, named 0, 1, 2, …, and takes batches until nothing is left.
fn check(config: Config, shapes: &[&[usize]], expected: &[(&[u32], Release)]) {
    let now = Instant::now();
    let mut former = Former::new(config, metrics());
    let mut answers = Vec::new();
    for (at, shape) in shapes.iter().enumerate() {
        let (request, answer) = request(at as u32, shape, now);
        former.admit(request, now).unwrap();
        answers.push(answer);
    }
    for (wanted, release) in expected {
        let batch = former.next(now).expect("another batch");
        assert_eq!((names(&batch).as_slice(), batch.release), (*wanted, *release), "shapes {shapes:?}");
    }
    assert!(former.next(now).is_none(), "nothing is left of {shapes:?}");
    assert_eq!(former.queued_rows(), 0);
}

#[test]
fn what_is_there_goes_together() {
    check(CONFIG, &[&[1, 2], &[2, 2], &[1, 2]], &[(&[0, 1, 2], Release::Idle)]);
    check(CONFIG, &[&[4, 2], &[4, 2], &[1, 2]], &[(&[0, 1], Release::Full), (&[2], Release::Idle)]);
}

#[test]
fn a_request_that_does_not_fit_any_more_ends_the_batch_and_is_not_overtaken() {
    check(CONFIG, &[&[5, 2], &[4, 2], &[1, 2]], &[(&[0], Release::Full), (&[1, 2], Release::Idle)]);
}

#[test]
fn other_shapes_keep_their_place_and_do_not_close_the_batch() {
    check(
        CONFIG,
        &[&[1, 2], &[1, 3], &[1, 2], &[1, 3], &[2, 2]],
        &[(&[0, 2, 4], Release::Idle), (&[1, 3], Release::Idle)],
    );
}

#[test]
fn the_oldest_request_is_served_first_whatever_its_shape() {
    let config = Config { max_rows: 2, ..CONFIG };
    check(
        config,
        &[&[1, 9], &[1, 2], &[1, 2], &[1, 2], &[1, 9], &[1, 2]],
        &[(&[0, 4], Release::Full), (&[1, 2], Release::Full), (&[3, 5], Release::Full)],
    );
}

#[test]
fn a_request_of_more_rows_than_a_batch_runs_alone() {
    check(
        CONFIG,
        &[&[9, 2], &[1, 2], &[20, 2]],
        &[(&[0], Release::Full), (&[1], Release::Full), (&[2], Release::Full)],
    );
}

#[test]
fn scalars_empty_requests_and_unbatchable_models_run_alone() {
    let singles: &[(&[u32], Release)] = &[(&[0], Release::Single), (&[1], Release::Single)];
    check(CONFIG, &[&[], &[]], singles);
    check(CONFIG, &[&[0, 2], &[0, 2]], singles);
    check(Config { mode: BatchMode::None, ..CONFIG }, &[&[1, 2], &[1, 2]], singles);
    check(CONFIG, &[&[1, 2], &[0, 2], &[1, 2]], &[(&[0, 2], Release::Idle), (&[1], Release::Single)]);
}

#[test]
fn equal_lengths_join_in_mode_equal_length() {
    let config = Config { mode: BatchMode::EqualLength, ..CONFIG };
    check(config, &[&[1, 7], &[1, 5], &[1, 7]], &[(&[0, 2], Release::Idle), (&[1], Release::Idle)]);
}

#[test]
fn other_types_and_other_numbers_of_inputs_do_not_join() {
    let now = Instant::now();
    let mut former = Former::new(CONFIG, metrics());
    let (plain, _a) = request(0, &[1, 2], now);
    let (mut typed, _b) = request(1, &[1, 2], now);
    typed.inputs[0].datatype = DataType::I32;
    let (mut double, _c) = request(2, &[1, 2], now);
    double.inputs.push(double.inputs[0].clone());
    for request in [plain, typed, double] {
        former.admit(request, now).unwrap();
    }
    for wanted in [[0], [1], [2]] {
        assert_eq!(names(&former.next(now).unwrap()), wanted);
    }
}

#[test]
fn inputs_whose_first_size_is_not_the_number_of_rows_do_not_join() {
    let now = Instant::now();
    let mut former = Former::new(CONFIG, metrics());
    let (mut odd, _a) = request(0, &[1, 2], now);
    odd.inputs.push(odd.inputs[0].clone());
    odd.inputs[1].shape = vec![3];
    let (plain, _b) = request(1, &[1, 2], now);
    former.admit(odd, now).unwrap();
    former.admit(plain, now).unwrap();
    assert_eq!(former.next(now).unwrap().release, Release::Single);
    assert_eq!(names(&former.next(now).unwrap()), [1]);
}

#[test]
fn joining_can_be_stopped_for_good() {
    let now = Instant::now();
    let mut former = Former::new(CONFIG, metrics());
    let (a, _a) = request(0, &[1, 2], now);
    let (b, _b) = request(1, &[1, 2], now);
    former.admit(a, now).unwrap();
    former.admit(b, now).unwrap();
    former.stop_joining();
    assert_eq!(names(&former.next(now).unwrap()), [0]);
    assert_eq!(former.next(now).unwrap().release, Release::Single);
}

#[test]
fn waiting_is_charged_to_the_queue_stage_and_measured() {
    let now = Instant::now();
    let metrics = metrics();
    let mut former = Former::new(CONFIG, metrics.clone());
    let (a, _a) = request(0, &[3, 2], now);
    former.admit(a, now).unwrap();
    assert!((metrics.queued_rows.get() - 3.0).abs() < f64::EPSILON);
    let batch = former.next(now + Duration::from_millis(7)).unwrap();
    assert_eq!(batch.requests[0].stages.spent(Stage::Queue), Duration::from_millis(7));
    assert!(metrics.queued_rows.get().abs() < f64::EPSILON);
    assert!((metrics.oldest_wait.snapshot().sum - 0.007).abs() < 1e-9);
    assert!((metrics.batch_rows.snapshot().sum - 3.0).abs() < f64::EPSILON);
    assert_eq!(metrics.released.each_ref().map(|c| c.get()), [0, 1, 0, 0, 0, 0]);
}
