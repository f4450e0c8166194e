//! The cheapest way to cut a row of requests, sorted by length, into batches. Pure: costs come as a function.

/// One request as far as the cut is concerned. Its place in the slice is its name.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Item {
    pub(crate) rows: usize,
    pub(crate) length: usize,
    /// Seconds until its deadline.
    pub(crate) slack: f64,
}

/// A batch of neighbours: places `from..to`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Part {
    pub(crate) from: usize,
    pub(crate) to: usize,
    /// Seconds of its run.
    pub(crate) cost: f64,
    /// Seconds until the first deadline in it.
    pub(crate) slack: f64,
}

/// Seconds that a run costs beside the model itself: taking the batch, joining, splitting, waking the doors. Where
/// the table finds no difference, it tips the scale towards fewer runs.
const OVERHEAD: f64 = 20e-6;

/// The parts whose costs have the least sum. `items` are sorted by length, ascending; `cost` gives the seconds of a
/// run by rows and length. No part has more than `max_rows` rows or misses a deadline that it holds, unless it is a
/// single request, which cannot be cut.
pub(crate) fn split(items: &[Item], max_rows: usize, cost: impl Fn(usize, usize) -> f64) -> Vec<Part> {
    // best[i]: the least sum of the first i items, and the last part of that way.
    let mut best: Vec<(f64, Option<Part>)> = vec![(0.0, None)];
    for (last, item) in items.iter().enumerate() {
        let mut least = (f64::INFINITY, None);
        let (mut rows, mut slack) = (0, f64::INFINITY);
        for (from, mate) in items.iter().enumerate().take(last + 1).rev() {
            rows += mate.rows;
            slack = slack.min(mate.slack);
            let single = from == last;
            if rows > max_rows && !single {
                break;
            }
            let cost = cost(rows, item.length);
            let before = best.get(from).map_or(f64::INFINITY, |(sum, _)| *sum);
            let sum = before + cost + OVERHEAD;
            if sum < least.0 && (single || cost <= slack) {
                least = (sum, Some(Part { from, to: last + 1, cost, slack }));
            }
        }
        best.push(least);
    }
    walk_back(&best)
}

fn walk_back(best: &[(f64, Option<Part>)]) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut end = best.len().saturating_sub(1);
    while let Some((_, Some(part))) = best.get(end) {
        parts.push(*part);
        end = part.from;
    }
    parts.reverse();
    parts
}

/// How many of the first requests, all of one length, to run together: those that cost the least a row, and the most
/// of them where it is nearly the same.
pub(crate) fn prefix(rows: impl Iterator<Item = usize>, cost: impl Fn(usize) -> f64) -> usize {
    const NEARLY: f64 = 1.02;
    let (mut sum, mut best) = (0, (0, f64::INFINITY));
    for (at, rows) in rows.enumerate() {
        sum += rows;
        let each = (cost(sum) + OVERHEAD) / sum.max(1) as f64;
        if each <= best.1 * NEARLY {
            best = (at + 1, each.min(best.1));
        }
    }
    best.0
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;

    fn whole(parts: &[Part], cost: impl Fn(usize, usize) -> f64, items: &[Item]) -> f64 {
        let mut at = 0;
        let mut sum = 0.0;
        for part in parts {
            assert_eq!(part.from, at, "the parts follow each other");
            at = part.to;
            let inside = &items[part.from..part.to];
            let rows = inside.iter().map(|item| item.rows).sum();
            sum += cost(rows, inside.last().unwrap().length) + OVERHEAD;
        }
        assert_eq!(at, items.len(), "nothing is left out");
        sum
    }

    /// Every way to cut: bit i of `cuts` cuts behind item i.
    fn by_force(items: &[Item], max_rows: usize, cost: impl Fn(usize, usize) -> f64) -> f64 {
        let ways = 0..1u32 << (items.len() - 1);
        let sums = ways.filter_map(|cuts| {
            let (mut sum, mut from) = (0.0, 0);
            for at in 0..items.len() {
                if at + 1 < items.len() && cuts >> at & 1 == 0 {
                    continue;
                }
                let part = &items[from..=at];
                let rows = part.iter().map(|item| item.rows).sum();
                let price = cost(rows, items[at].length);
                let slack = part.iter().map(|item| item.slack).fold(f64::INFINITY, f64::min);
                if part.len() > 1 && (rows > max_rows || price > slack) {
                    return None;
                }
                sum += price + OVERHEAD;
                from = at + 1;
            }
            Some(sum)
        });
        sums.fold(f64::INFINITY, f64::min)
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn no_other_cut_is_cheaper(
            drawn in vec((1..4usize, 1..200usize, 0.001..0.1f64), 1..11),
            max_rows in 1..12usize,
            fixed in 0.0..0.01f64,
            per_token in 1e-6..1e-3f64,
        ) {
            let mut items: Vec<_> =
                drawn.iter().map(|(rows, length, slack)| Item { rows: *rows, length: *length, slack: *slack }).collect();
            items.sort_by_key(|item| item.length);
            let cost = |rows: usize, length: usize| fixed + per_token * (rows * length) as f64;
            let parts = split(&items, max_rows, cost);
            let (ours, least) = (whole(&parts, cost, &items), by_force(&items, max_rows, cost));
            prop_assert!((ours - least).abs() < 1e-9, "{ours} against {least}: {parts:?} of {items:?}");
        }
    }

    fn sizes(lengths: &[usize], cost: impl Fn(usize, usize) -> f64) -> Vec<usize> {
        let items: Vec<_> =
            lengths.iter().map(|length| Item { rows: 1, length: *length, slack: 1.0 }).collect();
        split(&items, 16, cost).iter().map(|part| part.to - part.from).collect()
    }

    #[test]
    fn like_lengths_stay_together_and_long_ones_go_apart() {
        let cost = |rows: usize, length: usize| 0.002 + 0.0002 * (rows * length) as f64;
        assert_eq!(sizes(&[8, 8, 9, 10, 120, 128], cost), [4, 2]);
        assert_eq!(sizes(&[8, 100], cost), [1, 1]);
        assert_eq!(sizes(&[8; 16], cost), [16]);
    }

    #[test]
    fn nothing_is_joined_where_joining_does_not_pay() {
        let dear = |rows: usize, length: usize| 0.001 * (rows * rows * length) as f64;
        assert_eq!(sizes(&[8, 8, 8], dear), [1, 1, 1]);
        assert_eq!(prefix([1; 8].into_iter(), |rows| 0.001 * (rows * rows) as f64), 1);
    }

    #[test]
    fn equal_lengths_go_in_the_number_that_costs_least_a_row() {
        let saturating =
            |rows: usize| 0.002 * rows.min(4) as f64 + 0.003 * rows.saturating_sub(4) as f64 + 0.002;
        assert_eq!(prefix([1; 16].into_iter(), saturating), 4);
        assert_eq!(prefix([1; 16].into_iter(), |rows| 0.004 + 0.001 * rows as f64), 16);
        assert_eq!(
            prefix([5, 1, 1].into_iter(), |rows| 0.001 * rows as f64),
            3,
            "the same price: fewer runs"
        );
        assert_eq!(prefix(std::iter::empty(), |_| 1.0), 0);
    }
}
