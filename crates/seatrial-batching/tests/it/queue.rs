//! The thread-safe shell: executors wait and wake, closing ends them, the sweep works while they are busy.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::Relaxed},
        mpsc,
    },
    thread,
    time::{Duration, Instant},
};

use seatrial_batching::{Clock, Config, Queue};
use seatrial_types::{BatchSource, Code, Stage};

use crate::tank::{CONFIG, TIMEOUT, metrics, names, request};

/// A clock that a test moves by hand.
#[derive(Clone)]
struct Hand(Arc<Mutex<Instant>>);

impl Hand {
    fn new() -> Self {
        Self(Arc::new(Mutex::new(Instant::now())))
    }

    fn now(&self) -> Instant {
        *self.0.lock().unwrap()
    }

    fn pass(&self, time: Duration) {
        *self.0.lock().unwrap() += time;
    }

    fn clock(&self) -> Clock {
        let hand = self.clone();
        Box::new(move || hand.now())
    }
}

#[test]
fn a_waiting_executor_gets_a_request_at_once_and_ends_when_the_queue_closes() {
    let hand = Hand::new();
    let queue = Arc::new(Queue::new(CONFIG, metrics(), hand.clock()));
    let (sender, batches) = mpsc::channel();
    let executor = thread::spawn({
        let queue = Arc::clone(&queue);
        move || {
            while let Some(batch) = queue.take(None) {
                sender.send(names(&batch)).unwrap();
            }
        }
    });
    for id in 0..3 {
        let (request, _answer) = request(id, &[1, 2], hand.now());
        queue.submit(request).unwrap();
        // The answer's receiver is alive until here, so the request is wanted when it is taken.
        assert_eq!(batches.recv_timeout(Duration::from_secs(20)).unwrap(), [id]);
    }
    queue.close();
    executor.join().unwrap();
    let (late, _answer) = request(9, &[1, 2], hand.now());
    assert_eq!(queue.submit(late).unwrap_err().1.code, Code::Unavailable);
}

#[test]
fn closing_hands_out_what_waits_before_it_ends() {
    let hand = Hand::new();
    let queue = Queue::new(Config { max_rows: 2, ..CONFIG }, metrics(), hand.clock());
    let mut answers = Vec::new();
    for id in 0..3 {
        let (request, answer) = request(id, &[1, 2], hand.now());
        queue.submit(request).unwrap();
        answers.push(answer);
    }
    queue.close();
    assert_eq!(names(&queue.take(None).unwrap()), [0, 1]);
    assert_eq!(names(&queue.take(None).unwrap()), [2]);
    assert!(queue.take(None).is_none());
}

#[test]
fn a_sweep_answers_late_requests_while_no_executor_comes() {
    let hand = Hand::new();
    let queue = Queue::new(CONFIG, metrics(), hand.clock());
    let (waiting, mut answer) = request(0, &[4, 2], hand.now());
    queue.submit(waiting).unwrap();
    assert_eq!(queue.sweep(hand.now()), Some(hand.now() + TIMEOUT));
    assert_eq!(queue.depth(), 4);
    hand.pass(TIMEOUT);
    assert_eq!(queue.sweep(hand.now()), None);
    assert_eq!(queue.depth(), 0);
    assert_eq!(answer.try_recv().unwrap().outcome.unwrap_err().code, Code::DeadlineExceeded);
}

#[test]
fn the_wait_and_the_forming_are_stamped() {
    let hand = Hand::new();
    let queue = Queue::new(CONFIG, metrics(), hand.clock());
    let (waiting, _answer) = request(0, &[1, 2], hand.now());
    queue.submit(waiting).unwrap();
    hand.pass(Duration::from_millis(5));
    let batch = queue.take(None).unwrap();
    let stages = batch.requests[0].stages;
    assert_eq!(stages.spent(Stage::Queue), Duration::from_millis(5));
    assert_eq!(stages.total(), Duration::from_millis(5));
}

#[test]
fn many_doors_and_executors_lose_nothing() {
    const DOORS: u32 = 4;
    const EACH: u32 = 2000;
    let config = Config { queue_rows: usize::MAX, ..CONFIG };
    let queue = Arc::new(Queue::new(config, metrics(), Box::new(Instant::now)));
    let taken = Arc::new(AtomicUsize::new(0));
    let executors: Vec<_> = (0..3)
        .map(|_| {
            let (queue, taken) = (Arc::clone(&queue), Arc::clone(&taken));
            thread::spawn(move || {
                while let Some(batch) = queue.take(None) {
                    taken.fetch_add(batch.requests.len(), Relaxed);
                }
            })
        })
        .collect();
    let doors: Vec<_> = (0..DOORS)
        .map(|door| {
            let queue = Arc::clone(&queue);
            thread::spawn(move || {
                let mut answers = Vec::new();
                for i in 0..EACH {
                    let now = Instant::now();
                    let (mut request, answer) = request(door * EACH + i, &[1, 1 + (i % 3) as usize], now);
                    request.deadline = now + Duration::from_hours(1);
                    queue.submit(request).unwrap();
                    answers.push(answer);
                }
                answers
            })
        })
        .collect();
    let answers: Vec<_> = doors.into_iter().flat_map(|door| door.join().unwrap()).collect();
    queue.close();
    for executor in executors {
        executor.join().unwrap();
    }
    assert_eq!(taken.load(Relaxed), (DOORS * EACH) as usize);
    assert_eq!(answers.len(), (DOORS * EACH) as usize);
}
