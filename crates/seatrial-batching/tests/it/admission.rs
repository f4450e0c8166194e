//! What is refused, with which code, and when the client may come back.

use std::time::{Duration, Instant};

use seatrial_batching::{Config, Former};
use seatrial_types::Code;

use crate::tank::{CONFIG, TIMEOUT, metrics, name, request};

#[test]
fn a_full_queue_refuses_with_numbers_and_a_hint() {
    let now = Instant::now();
    let metrics = metrics();
    let mut former = Former::new(Config { queue_rows: 10, ..CONFIG }, metrics.clone());
    let (first, _a) = request(0, &[6, 2], now);
    former.admit(first, now).unwrap();
    let (second, _b) = request(1, &[5, 2], now);
    let (given_back, error) = former.admit(second, now).unwrap_err();
    assert_eq!(name(&given_back), 1);
    assert_eq!(error.code, Code::ResourceExhausted);
    assert_eq!(
        error.message,
        "the queue of the model is full: 6 rows wait, the request has 5, the limit is 10 rows"
    );
    let hint = error.retry_after.expect("a hint even when nothing was measured");
    assert!((Duration::from_millis(1)..=Duration::from_secs(5)).contains(&hint), "{hint:?}");
    assert_eq!(metrics.dropped_full.get(), 1);
    let (fits, _c) = request(2, &[4, 2], now);
    former.admit(fits, now).unwrap();
    assert_eq!(former.queued_rows(), 10);
}

#[test]
fn the_hint_is_the_queue_over_the_pace_of_late() {
    let start = Instant::now();
    let mut former = Former::new(Config { queue_rows: 40, ..CONFIG }, metrics());
    let mut answers = Vec::new();
    let mut now = start;
    for i in 0..20 {
        while former.queued_rows() + 8 <= 40 {
            let (request, answer) = request(i, &[8, 2], now);
            former.admit(request, now).unwrap();
            answers.push(answer);
        }
        former.next(now).unwrap();
        now += Duration::from_millis(16); // 8 rows in 16 ms
    }
    let (last, _a) = request(99, &[8, 2], now);
    former.admit(last, now).unwrap();
    let (over, _b) = request(100, &[1, 2], now);
    let hint = former.admit(over, now).unwrap_err().1.retry_after.unwrap();
    let off = hint.as_secs_f64() - 0.080;
    assert!(off.abs() < 0.001, "40 rows at 2 ms a row is 80 ms, got {hint:?}");
}

#[test]
fn a_request_that_no_queue_could_hold_is_not_told_to_come_back() {
    let now = Instant::now();
    let mut former = Former::new(CONFIG, metrics());
    let (huge, _a) = request(0, &[101, 2], now);
    let error = former.admit(huge, now).unwrap_err().1;
    assert_eq!((error.code, error.retry_after), (Code::PayloadTooLarge, None));
    assert_eq!(error.message, "the request has 101 rows, the queue of the model holds at most 100 rows");
}

#[test]
fn requests_without_rows_cannot_pass_the_bound() {
    let now = Instant::now();
    let mut former = Former::new(Config { queue_rows: 3, ..CONFIG }, metrics());
    let mut answers = Vec::new();
    for i in 0..3 {
        let (request, answer) = request(i, &[0, 2], now);
        former.admit(request, now).unwrap();
        answers.push(answer);
    }
    let (fourth, _a) = request(3, &[0, 2], now);
    assert_eq!(former.admit(fourth, now).unwrap_err().1.code, Code::ResourceExhausted);
}

#[test]
fn a_passed_deadline_is_refused_at_the_door() {
    let now = Instant::now();
    let metrics = metrics();
    let mut former = Former::new(CONFIG, metrics.clone());
    let (late, _a) = request(0, &[1, 2], now);
    assert_eq!(former.admit(late, now + TIMEOUT).unwrap_err().1.code, Code::DeadlineExceeded);
    assert_eq!(metrics.dropped_deadline.get(), 1);
}

#[test]
fn a_closed_queue_refuses_new_requests_and_hands_out_the_old_ones() {
    let now = Instant::now();
    let mut former = Former::new(CONFIG, metrics());
    let (old, _a) = request(0, &[1, 2], now);
    former.admit(old, now).unwrap();
    former.close();
    let (new, _b) = request(1, &[1, 2], now);
    assert_eq!(former.admit(new, now).unwrap_err().1.code, Code::Unavailable);
    assert_eq!(former.next(now).unwrap().requests.len(), 1);
}
