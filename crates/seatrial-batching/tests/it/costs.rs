//! Forming and admission by measured cost, with made-up tables and time.

use std::time::{Duration, Instant};

use seatrial_batching::{BatchingMetrics, Config, CostTable, Former};
use seatrial_types::{
    BatchMode, Code, DataType, Dim, PadInput, PadPlan, Padding, Release, Reply, Signature, TensorSpec,
};
use tokio::sync::oneshot::Receiver;

use crate::tank::{CONFIG, metrics, name, names, request};

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// Axis 1 of the only input is the length.
pub fn plan() -> PadPlan {
    let free = |name: &str| Dim::Free { name: name.to_owned(), max: None };
    let (name, datatype) = ("x".to_owned(), DataType::F32);
    let x =
        TensorSpec { name, datatype, shape: vec![free("batch"), free("length")], range: None, labels: None };
    let padding =
        Padding { inputs: [("x".to_owned(), PadInput { axis: 1, value: 0 })].into(), ..Padding::default() };
    PadPlan::new(&padding, &Signature { inputs: vec![x], outputs: Vec::new() }).unwrap()
}

/// 2 ms for a run and 0.1 ms for every position in it.
pub fn table() -> CostTable {
    let cost = |rows: usize, length: usize| ms(2) + Duration::from_micros(100) * (rows * length) as u32;
    let grid = [1, 8].into_iter().flat_map(|rows| [8, 256].map(|length| (rows, length, cost(rows, length))));
    CostTable::new(grid).unwrap()
}

/// A queue with the table and some answers to keep clients alive.
struct Tank {
    former: Former,
    metrics: BatchingMetrics,
    now: Instant,
    answers: Vec<Receiver<Reply>>,
}

impl Tank {
    fn new(config: Config) -> Self {
        let metrics = metrics();
        let mut former = Former::new(config, metrics.clone());
        former.set_costs(table());
        Self { former, metrics, now: Instant::now(), answers: Vec::new() }
    }

    /// The code of the refusal, if any.
    fn submit(&mut self, id: u32, length: usize, timeout: Duration, priority: u64) -> Option<Code> {
        let (mut request, answer) = request(id, &[1, length], self.now);
        (request.deadline, request.priority, request.wire_bytes) =
            (self.now + timeout, priority, 10 * length);
        self.answers.push(answer);
        self.former.admit(request, self.now).err().map(|(_, error)| error.code)
    }

    fn submit_all(&mut self, lengths: &[usize]) {
        for (id, length) in lengths.iter().enumerate() {
            assert_eq!(self.submit(id as u32, *length, Duration::from_mins(1), 0), None);
        }
    }

    /// Takes and runs everything: names and reasons of all batches.
    fn drain(&mut self) -> Vec<(Vec<u32>, Release)> {
        let mut batches = Vec::new();
        while let Some(batch) = self.former.next(self.now) {
            self.former.done(batch.ticket, self.now);
            batches.push((names(&batch), batch.release));
        }
        batches
    }
}

fn padded() -> Config {
    Config { padding: Some(plan()), queue_rows: 1000, ..CONFIG }
}

#[test]
fn like_lengths_run_together_in_the_order_of_the_oldest() {
    let mut tank = Tank::new(padded());
    tank.submit_all(&[100, 8, 9, 101, 8]);
    assert_eq!(tank.drain(), [(vec![0, 3], Release::Cost), (vec![1, 2, 4], Release::Idle)]);
    let counted = (tank.metrics.positions_useful.get(), tank.metrics.positions_padding.get());
    assert_eq!(counted, (226, 3), "one position for 100 beside 101, two for 8 beside 9");
}

#[test]
fn a_full_batch_of_one_length_says_so() {
    let mut tank = Tank::new(padded());
    tank.submit_all(&[8; 11]);
    assert_eq!(
        tank.drain(),
        [(vec![0, 1, 2, 3, 4, 5, 6, 7], Release::Full), (vec![8, 9, 10], Release::Idle)]
    );
}

#[test]
fn without_a_table_lengths_are_not_mixed() {
    let mut former = Former::new(padded(), metrics());
    let now = Instant::now();
    let (requests, _answers): (Vec<_>, Vec<_>) =
        [8, 9, 8].into_iter().enumerate().map(|(id, n)| request(id as u32, &[1, n], now)).unzip();
    for request in requests {
        former.admit(request, now).unwrap();
    }
    assert_eq!(names(&former.next(now).unwrap()), [0, 2]);
    assert_eq!(names(&former.next(now).unwrap()), [1]);
}

#[test]
fn equal_lengths_are_joined_as_far_as_it_pays() {
    let mut former = Former::new(Config { queue_rows: 1000, ..CONFIG }, metrics());
    former.set_costs(CostTable::new([(1, 2, ms(4)), (2, 2, ms(5)), (4, 2, ms(12)), (8, 2, ms(40))]).unwrap());
    let now = Instant::now();
    let (requests, _answers): (Vec<_>, Vec<_>) = (0..5).map(|id| request(id, &[1, 2], now)).unzip();
    for request in requests {
        former.admit(request, now).unwrap();
    }
    let mut next = || former.next(now).map(|batch| (names(&batch), batch.release));
    assert_eq!(next(), Some((vec![0, 1], Release::Cost)));
    assert_eq!(next(), Some((vec![2, 3], Release::Cost)));
    assert_eq!(next(), Some((vec![4], Release::Idle)));
}

#[test]
fn a_request_that_would_miss_its_deadline_behind_the_oldest_goes_first() {
    let mut tank = Tank::new(padded());
    tank.submit(0, 200, ms(500), 0); // 22 ms
    tank.submit(1, 8, ms(60), 0);
    tank.submit(2, 9, ms(90), 0);
    tank.now += ms(45);
    assert_eq!(tank.drain(), [(vec![1, 2], Release::Deadline), (vec![0], Release::Idle)]);
}

#[test]
fn nobody_goes_first_at_the_cost_of_the_oldest() {
    let mut tank = Tank::new(padded());
    tank.submit(0, 200, ms(70), 0);
    tank.submit(1, 8, ms(60), 0);
    tank.now += ms(47); // 23 ms are left for the 22 ms of the oldest.
    assert_eq!(names(&tank.former.next(tank.now).unwrap()), [0]);
}

#[test]
fn no_mate_is_taken_in_that_would_make_another_late() {
    let mut tank = Tank::new(padded());
    tank.submit(0, 100, ms(300), 0);
    tank.submit(1, 110, ms(300), 0);
    tank.now += ms(285); // Each alone takes 12 or 13 ms, both together 24 ms, and one of them is late behind the other.
    let batch = tank.former.next(tank.now).unwrap();
    assert_eq!(names(&batch), [0]);
}

#[test]
fn what_cannot_be_done_in_time_is_refused_at_once_with_the_excess() {
    let mut tank = Tank::new(padded());
    assert_eq!(tank.submit(0, 200, ms(1), 0), None, "an idle model takes everything");
    let running = tank.former.next(tank.now).unwrap();
    for id in 1..9 {
        assert_eq!(tank.submit(id, 198, Duration::from_mins(1), 0), None);
    }
    // Eight rows of 198 together take about 160 ms, the running one 22 ms; with a tenth of caution about 202 ms.
    assert_eq!(tank.submit(20, 8, ms(190), 0), Some(Code::ResourceExhausted));
    assert_eq!(tank.submit(21, 8, ms(220), 0), None);
    assert_eq!(tank.metrics.dropped_late.get(), 1);
    let (request, _answer) = request(22, &[1, 8], tank.now);
    let deadline = tank.now + ms(100);
    let error = tank.former.admit(seatrial_types::Request { deadline, ..request }, tank.now).unwrap_err().1;
    assert!(error.message.contains("its deadline is in 100 ms"), "{}", error.message);
    let hint = error.retry_after.unwrap();
    assert!((ms(95)..ms(110)).contains(&hint), "about 203 ms are needed, the hint is {hint:?}");
    tank.now += ms(22);
    tank.former.done(running.ticket, tank.now);
    assert_eq!(tank.submit(23, 8, ms(190), 0), None, "time has passed");
}

#[test]
fn an_unread_body_is_judged_by_its_size() {
    let mut tank = Tank::new(padded());
    for id in 0..50 {
        tank.submit(id, 100, Duration::from_mins(1), 0);
    }
    tank.former.next(tank.now).unwrap();
    let refused = |bytes: usize, in_ms: u64| {
        tank.former.would_refuse(bytes, tank.now + ms(in_ms), tank.now).map(|error| error.code)
    };
    // 42 requests of at least 10.25 ms wait and 82 ms run: about 565 ms with caution.
    assert_eq!(refused(0, 500), Some(Code::ResourceExhausted));
    assert_eq!(refused(0, 600), None);
    assert_eq!(refused(100_000, 600), Some(Code::ResourceExhausted), "a hundred times as long as the others");
}

#[test]
fn an_unread_body_finds_no_place_in_a_full_queue() {
    let mut tank = Tank::new(Config { queue_rows: 2, ..padded() });
    tank.submit_all(&[8, 8]);
    let error = tank.former.would_refuse(0, tank.now + ms(1), tank.now).unwrap();
    assert_eq!(error.message, "the queue of the model is full: 2 rows wait, the limit is 2 rows");
    tank.former.close();
    assert_eq!(tank.former.would_refuse(0, tank.now, tank.now).unwrap().code, Code::Unavailable);
}

#[test]
fn what_was_admitted_is_not_refused_when_the_machine_slows_down() {
    let mut tank = Tank::new(padded());
    for id in 0..40 {
        tank.submit(id, 100, ms(2000), 0);
    }
    for _ in 0..4 {
        let batch = tank.former.next(tank.now).unwrap();
        tank.now += ms(400);
        tank.former.done(batch.ticket, tank.now);
    }
    assert_eq!(tank.submit(90, 100, ms(150), 0), Some(Code::ResourceExhausted), "the newest is");
    assert!(tank.former.next(tank.now).is_some());
    assert_eq!(tank.metrics.dropped_late.get(), 1);
}

#[test]
fn levels_are_served_in_order_and_none_starves() {
    let config = Config { mode: BatchMode::None, levels: 3, queue_rows: 1000, ..CONFIG };
    let mut tank = Tank::new(config);
    let long = Duration::from_mins(5);
    tank.submit(100, 8, long, 0);
    tank.submit(101, 8, long, 3);
    tank.submit(102, 8, long, 77);
    for id in 0..12 {
        tank.submit(id, 8, long, 1);
    }
    tank.submit(50, 8, long, 2);
    let order: Vec<u32> = tank.drain().into_iter().map(|(names, _)| names[0]).collect();
    assert_eq!(order, [0, 1, 2, 3, 4, 5, 6, 7, 100, 8, 9, 10, 11, 50, 101, 102]);
}

#[test]
fn a_higher_level_waits_for_its_own_and_those_above_alone() {
    let mut tank = Tank::new(Config { levels: 2, ..padded() });
    let long = Duration::from_mins(1);
    tank.submit(0, 8, long, 0);
    tank.former.next(tank.now).unwrap();
    for id in 1..40 {
        tank.submit(id, 200, long, 0);
    }
    assert_eq!(tank.submit(50, 8, ms(50), 0), Some(Code::ResourceExhausted));
    assert_eq!(tank.submit(51, 8, ms(50), 1), None);
    let batch = tank.former.next(tank.now).unwrap();
    assert!(batch.requests.iter().any(|request| name(request) == 51));
}
