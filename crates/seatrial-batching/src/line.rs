//! The waiting requests by level of priority, each level in order of arrival, with their sums.

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

use seatrial_types::Request;

/// How many batches may pass over an older request of a lower level before it has its turn.
const PATIENCE: usize = 8;

/// A request in the queue.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub(crate) request: Request,
    pub(crate) since: Instant,
    /// 0 is served first.
    pub(crate) level: usize,
    /// Arrivals before it: the order within a level.
    pub(crate) place: u64,
    /// What the cost of its run depends on, beside its rows.
    pub(crate) length: usize,
    /// The least that it costs the executors.
    pub(crate) work: Duration,
}

impl Waiting {
    /// What it counts for in the bound of the queue.
    pub(crate) fn weight(&self) -> usize {
        self.request.rows.max(1)
    }
}

#[derive(Debug)]
pub(crate) struct Line {
    levels: Vec<Level>,
    /// Batches that passed over an older request of a lower level, since the last that did not.
    passed_over: usize,
}

#[derive(Debug, Default)]
struct Level {
    waiting: VecDeque<Waiting>,
    rows: usize,
    work: Duration,
}

impl Line {
    pub(crate) fn new(levels: usize) -> Self {
        Self { levels: (0..levels.max(1)).map(|_| Level::default()).collect(), passed_over: 0 }
    }

    /// The level of a request that asks for `priority`: 1 is the first, 0 and all beyond the last are the last.
    pub(crate) fn level_of(&self, priority: u64) -> usize {
        let last = self.levels.len() - 1;
        usize::try_from(priority).ok().and_then(|p| p.checked_sub(1)).map_or(last, |level| level.min(last))
    }

    /// Rows waiting, a request without rows counting as one.
    pub(crate) fn rows(&self) -> usize {
        self.levels.iter().map(|level| level.rows).sum()
    }

    /// Work that is served before a new request of `level`.
    pub(crate) fn work_before(&self, level: usize) -> Duration {
        self.levels.iter().take(level + 1).map(|level| level.work).sum()
    }

    pub(crate) fn push(&mut self, waiting: Waiting) {
        if let Some(level) = self.counted(&waiting) {
            level.waiting.push_back(waiting);
        }
    }

    /// Puts one back that was popped; the youngest first.
    pub(crate) fn put_back(&mut self, waiting: Waiting) {
        if let Some(level) = self.counted(&waiting) {
            level.waiting.push_front(waiting);
        }
    }

    fn counted(&mut self, waiting: &Waiting) -> Option<&mut Level> {
        let level = self.levels.get_mut(waiting.level)?;
        level.rows += waiting.weight();
        level.work += waiting.work;
        Some(level)
    }

    /// The first request of the level whose turn it is: the first level that has any, but for an older one that was
    /// passed over too often.
    pub(crate) fn pop_turn(&mut self) -> Option<Waiting> {
        let first = self.levels.iter().position(|level| !level.waiting.is_empty())?;
        let oldest = self.oldest().unwrap_or(first);
        self.passed_over = if oldest == first { 0 } else { self.passed_over + 1 };
        if self.passed_over > PATIENCE {
            self.passed_over = 0;
            return self.pop(oldest);
        }
        self.pop(first)
    }

    /// The first request of the first level that has any.
    pub(crate) fn pop_first(&mut self) -> Option<Waiting> {
        let first = self.levels.iter().position(|level| !level.waiting.is_empty())?;
        self.pop(first)
    }

    /// Every waiting request, level by level.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Waiting> {
        self.levels.iter().flat_map(|level| &level.waiting)
    }

    /// Takes everything out, in order.
    pub(crate) fn drain(&mut self) -> Vec<Waiting> {
        std::iter::from_fn(|| self.pop_first()).collect()
    }

    fn oldest(&self) -> Option<usize> {
        let fronts =
            self.levels.iter().enumerate().filter_map(|(at, level)| Some((at, level.waiting.front()?.place)));
        fronts.min_by_key(|(_, place)| *place).map(|(at, _)| at)
    }

    fn pop(&mut self, level: usize) -> Option<Waiting> {
        let level = self.levels.get_mut(level)?;
        let waiting = level.waiting.pop_front()?;
        level.rows -= waiting.weight();
        level.work = level.work.saturating_sub(waiting.work);
        Some(waiting)
    }
}
