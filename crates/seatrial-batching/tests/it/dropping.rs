//! Requests that nobody wants any more cost nothing more.

use std::time::{Duration, Instant};

use seatrial_batching::Former;
use seatrial_types::{Code, Stage};
use tokio::sync::oneshot::error::TryRecvError;

use crate::tank::{CONFIG, TIMEOUT, metrics, names, request};

#[test]
fn a_passed_deadline_is_answered_by_the_sweep() {
    let now = Instant::now();
    let metrics = metrics();
    let mut former = Former::new(CONFIG, metrics.clone());
    let (mut early, mut early_answer) = request(0, &[2, 2], now);
    early.deadline = now + Duration::from_millis(10);
    let (late, mut late_answer) = request(1, &[3, 2], now);
    former.admit(early, now).unwrap();
    former.admit(late, now).unwrap();
    assert_eq!(former.expire(now), Some(now + Duration::from_millis(10)));
    let at = now + Duration::from_millis(10);
    assert_eq!(former.expire(at), Some(now + TIMEOUT), "the next deadline is that of the other request");
    let reply = early_answer.try_recv().unwrap();
    let error = reply.outcome.unwrap_err();
    assert_eq!(
        (error.code, error.message.as_str()),
        (Code::DeadlineExceeded, "the deadline passed after 10.0 ms in the queue")
    );
    assert_eq!(reply.stages.spent(Stage::Queue), Duration::from_millis(10));
    assert_eq!(former.queued_rows(), 3);
    assert!((metrics.queued_rows.get() - 3.0).abs() < f64::EPSILON);
    assert_eq!(late_answer.try_recv().unwrap_err(), TryRecvError::Empty);
    assert_eq!(metrics.dropped_deadline.get(), 1);
}

#[test]
fn a_gone_client_leaves_room_at_the_next_sweep() {
    let now = Instant::now();
    let metrics = metrics();
    let mut former = Former::new(CONFIG, metrics.clone());
    let (gone, answer) = request(0, &[2, 2], now);
    former.admit(gone, now).unwrap();
    drop(answer);
    assert_eq!(former.expire(now), None);
    assert_eq!(former.queued_rows(), 0);
    assert_eq!((metrics.dropped_client_gone.get(), metrics.dropped_deadline.get()), (1, 0));
}

#[test]
fn forming_passes_over_unwanted_requests_at_the_front_and_in_the_middle() {
    let now = Instant::now();
    let mut former = Former::new(CONFIG, metrics());
    let mut answers = Vec::new();
    for i in 0..6 {
        let (mut request, answer) = request(i, &[1, 2], now);
        if i == 3 {
            request.deadline = now + Duration::from_millis(1);
        }
        former.admit(request, now).unwrap();
        answers.push(Some(answer));
    }
    answers[0] = None;
    answers[4] = None;
    let batch = former.next(now + Duration::from_millis(1)).unwrap();
    assert_eq!(names(&batch), [1, 2, 5]);
    assert_eq!(
        answers[3].take().unwrap().try_recv().unwrap().outcome.unwrap_err().code,
        Code::DeadlineExceeded
    );
}

#[test]
fn nothing_is_left_when_all_are_unwanted() {
    let now = Instant::now();
    let mut former = Former::new(CONFIG, metrics());
    let (late, mut answer) = request(0, &[1, 2], now);
    former.admit(late, now).unwrap();
    assert!(former.next(now + TIMEOUT).is_none());
    assert!(answer.try_recv().unwrap().outcome.is_err());
    assert_eq!(former.queued_rows(), 0);
}
