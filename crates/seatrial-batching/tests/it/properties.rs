//! Properties over random histories: nothing lost, nothing twice, order kept within a shape, bounds kept.

use std::{
    collections::{HashMap, VecDeque},
    time::{Duration, Instant},
};

use proptest::{collection::vec, prelude::*};
use seatrial_batching::{Config, Former};
use seatrial_types::{Batch, BatchMode, Release, Reply};
use tokio::sync::oneshot::Receiver;

use crate::{
    costs::{plan, table},
    tank::{CONFIG, metrics, name, request},
};

#[derive(Clone, Debug)]
enum Act {
    Submit { rows: usize, inner: usize, timeout_ms: u64 },
    Take,
    Leave(usize),
    Sweep,
    Pass(u64),
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        5 => (0..12usize, 1..4usize, 1..40u64)
            .prop_map(|(rows, inner, timeout_ms)| Act::Submit { rows, inner, timeout_ms }),
        2 => Just(Act::Take),
        1 => (0..50usize).prop_map(Act::Leave),
        1 => Just(Act::Sweep),
        1 => (1..15u64).prop_map(Act::Pass),
    ]
}

/// What became of one request.
#[derive(Default)]
struct Fate {
    refused: bool,
    /// Why the batch with it was let go.
    taken: Option<Release>,
    left: bool,
    answer: Option<Receiver<Reply>>,
}

struct Voyage {
    config: Config,
    former: Former,
    now: Instant,
    fates: Vec<Fate>,
    shapes: HashMap<u32, (usize, usize)>,
}

impl Voyage {
    fn new(config: Config) -> Self {
        let mut former = Former::new(config.clone(), metrics());
        if config.padding.is_some() {
            former.set_costs(table());
        }
        Self { config, former, now: Instant::now(), fates: Vec::new(), shapes: HashMap::new() }
    }

    fn act(&mut self, act: &Act) {
        match *act {
            Act::Submit { rows, inner, timeout_ms } => self.submit(rows, inner, timeout_ms),
            Act::Take => {
                if let Some(batch) = self.former.next(self.now) {
                    self.check_batch(&batch);
                    self.now += Duration::from_millis(3);
                    self.former.done(batch.ticket, self.now);
                }
            }
            Act::Leave(which) => {
                if let Some(fate) = self.fates.get_mut(which)
                    && fate.taken.is_none()
                {
                    fate.left |= fate.answer.take().is_some();
                }
            }
            Act::Sweep => {
                let next = self.former.expire(self.now);
                assert!(next.is_none_or(|at| at > self.now), "a passed deadline survived the sweep");
            }
            Act::Pass(ms) => self.now += Duration::from_millis(ms),
        }
        assert!(self.former.queued_rows() <= self.config.queue_rows, "the bound was passed");
    }

    fn submit(&mut self, rows: usize, inner: usize, timeout_ms: u64) {
        let id = self.fates.len() as u32;
        let (mut request, answer) = request(id, &[rows, inner], self.now);
        request.deadline = self.now + Duration::from_millis(timeout_ms);
        self.shapes.insert(id, (rows, inner));
        let refused = self.former.admit(request, self.now).is_err();
        self.fates.push(Fate { refused, answer: Some(answer), ..Fate::default() });
    }

    fn check_batch(&mut self, batch: &Batch) {
        let rows: usize = batch.requests.iter().map(|r| r.rows).sum();
        assert!(!batch.requests.is_empty());
        assert!(rows <= self.config.max_rows || batch.requests.len() == 1, "{rows} rows in one batch");
        let inner = batch.requests[0].inputs[0].shape[1];
        for request in &batch.requests {
            let mixed = self.config.padding.is_some();
            assert!(mixed || request.inputs[0].shape[1] == inner, "mixed shapes");
            assert!(request.deadline > self.now, "a late request was run");
            let id = name(request);
            assert!(!self.fates[id as usize].left, "request {id} was run for nobody");
            assert!(self.fates[id as usize].taken.is_none(), "request {id} was run twice");
            self.fates[id as usize].taken = Some(batch.release);
            if batch.release != Release::Deadline {
                self.check_order(id);
            }
        }
    }

    /// No younger request of the same shape was taken before this one, but for the sake of a deadline. Requests without rows never join and may be
    /// overtaken by those that do.
    fn check_order(&self, id: u32) {
        let (rows, inner) = self.shapes[&id];
        if rows == 0 {
            return;
        }
        for (other, fate) in self.fates.iter().enumerate().skip(id as usize + 1) {
            let (other_rows, other_inner) = self.shapes[&(other as u32)];
            let same = other_inner == inner && other_rows > 0;
            assert!(
                !(same && fate.taken.is_some_and(|release| release != Release::Deadline)),
                "request {other} overtook {id}"
            );
        }
    }

    /// Takes all that is left, then every request has exactly one fate.
    fn finish(&mut self) {
        while let Some(batch) = self.former.next(self.now) {
            self.check_batch(&batch);
        }
        assert_eq!(self.former.queued_rows(), 0);
        for (id, fate) in self.fates.iter_mut().enumerate() {
            let answered = fate.answer.as_mut().is_some_and(|answer| answer.try_recv().is_ok());
            let ends = [fate.refused, fate.taken.is_some(), answered, fate.left && !fate.refused];
            assert_eq!(ends.iter().filter(|end| **end).count(), 1, "request {id} ended as {ends:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_request_has_one_fate(
        acts in vec(act(), 1..120),
        max_rows in 1..10usize,
        queue_rows in 1..60usize,
        mode in prop_oneof![Just(BatchMode::Full), Just(BatchMode::EqualLength), Just(BatchMode::None)],
        padded in any::<bool>(),
    ) {
        let padding = padded.then(plan);
        let mut voyage = Voyage::new(Config { mode, padding, max_rows, queue_rows, ..CONFIG });
        for act in &acts {
            voyage.act(act);
        }
        voyage.finish();
    }

    /// With nobody leaving and no deadline passing, each batch begins with the oldest request that waits.
    #[test]
    fn each_batch_begins_with_the_oldest(inners in vec(1..5usize, 1..80), max_rows in 1..6usize) {
        let now = Instant::now();
        let mut former = Former::new(Config { max_rows, queue_rows: 1000, ..CONFIG }, metrics());
        let mut waiting = VecDeque::new();
        let mut answers = Vec::new();
        for (id, inner) in inners.iter().enumerate() {
            let (request, answer) = request(id as u32, &[1, *inner], now);
            former.admit(request, now).unwrap();
            answers.push(answer);
            waiting.push_back(id as u32);
        }
        while let Some(batch) = former.next(now) {
            prop_assert_eq!(name(&batch.requests[0]), waiting[0]);
            waiting.retain(|id| !batch.requests.iter().any(|r| name(r) == *id));
        }
        prop_assert!(waiting.is_empty());
    }
}
