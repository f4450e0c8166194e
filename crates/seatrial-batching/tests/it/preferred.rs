//! Fixed sizes and a delay: for people who bring their settings along from another server.

use std::{
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use seatrial_batching::{Config, Former, Policy, Queue};
use seatrial_types::{BatchSource, Release};

use crate::{
    costs::plan,
    tank::{CONFIG, metrics, names, request},
};

fn config(max_delay: Duration) -> Config {
    Config { policy: Policy::Preferred { rows: vec![2, 4], max_delay }, ..CONFIG }
}

fn filled(config: Config, lengths: &[usize], now: Instant) -> (Former, Vec<impl Sized>) {
    let mut former = Former::new(config, metrics());
    let mut answers = Vec::new();
    for (id, length) in lengths.iter().enumerate() {
        let (request, answer) = request(id as u32, &[1, *length], now);
        former.admit(request, now).unwrap();
        answers.push(answer);
    }
    (former, answers)
}

#[test]
fn a_lone_request_is_held_until_the_delay_is_over() {
    let (now, delay) = (Instant::now(), Duration::from_millis(5));
    let (mut former, _answers) = filled(config(delay), &[3], now);
    assert!(former.next(now).is_none());
    assert_eq!((former.held_until(), former.queued_rows()), (Some(now + delay), 1));
    let batch = former.next(now + delay).unwrap();
    assert_eq!((names(&batch), batch.release), (vec![0], Release::BucketAge));
    assert!(former.next(now + delay).is_none());
    assert_eq!(former.held_until(), None, "nothing waits");
}

#[test]
fn the_largest_preferred_size_that_is_there_goes_at_once() {
    let now = Instant::now();
    let (mut former, _answers) = filled(config(Duration::from_secs(1)), &[3; 7], now);
    let mut next = || former.next(now).map(|batch| (names(&batch), batch.release));
    assert_eq!(next(), Some((vec![0, 1, 2, 3], Release::Full)));
    assert_eq!(next(), Some((vec![4, 5], Release::Full)));
    assert_eq!(next(), None);
}

#[test]
fn lengths_are_padded_in_order_of_arrival() {
    let now = Instant::now();
    let padded = Config { padding: Some(plan()), ..config(Duration::from_secs(1)) };
    let (mut former, _answers) = filled(padded, &[3, 90, 4, 5], now);
    assert_eq!(names(&former.next(now).unwrap()), [0, 1, 2, 3]);
}

#[test]
fn closing_lets_go_what_is_held() {
    let now = Instant::now();
    let (mut former, _answers) = filled(config(Duration::from_secs(1)), &[3], now);
    assert!(former.next(now).is_none());
    former.close();
    assert_eq!(names(&former.next(now).unwrap()), [0]);
}

#[test]
fn a_waiting_executor_wakes_when_the_delay_is_over() {
    let queue = Arc::new(Queue::new(config(Duration::from_millis(20)), metrics(), Box::new(Instant::now)));
    let executor = thread::spawn({
        let queue = Arc::clone(&queue);
        move || queue.take(None).map(|batch| (names(&batch), batch.release))
    });
    let (alone, _answer) = request(7, &[1, 2], Instant::now());
    queue.submit(alone).unwrap();
    assert_eq!(executor.join().unwrap(), Some((vec![7], Release::BucketAge)));
}
