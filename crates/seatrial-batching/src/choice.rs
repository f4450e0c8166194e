//! Which of the requests that fit together run now: by measured cost within the deadlines.

use std::time::Instant;

use seatrial_types::Release;

use crate::{
    forecast::Forecast,
    line::Waiting,
    split::{Item, Part, prefix, split},
};

/// The requests of the batch to run now, and why it is let go.
pub(crate) struct Choice {
    pub(crate) taken: Vec<Waiting>,
    pub(crate) release: Release,
}

/// Of requests of one length, the first in the list being the one whose turn it is: as many as cost least a row.
/// `left` gets those that stay.
pub(crate) fn cut_equal(
    mut mates: Vec<Waiting>,
    full: bool,
    forecast: &Forecast,
    left: &mut Vec<Waiting>,
) -> Choice {
    let length = mates.first().map_or(0, |first| first.length);
    let rows = mates.iter().map(|mate| mate.request.rows);
    let n = forecast.table().map_or(mates.len(), |table| prefix(rows, |rows| table.seconds(rows, length)));
    let cut = n.max(1) < mates.len();
    left.extend(mates.drain(n.max(1).min(mates.len())..));
    let release = match (cut, full) {
        (true, _) => Release::Cost,
        (false, true) => Release::Full,
        (false, false) => Release::Idle,
    };
    Choice { taken: mates, release }
}

/// Of requests of several lengths, the first being the one whose turn it is: the batch that holds it in the cheapest
/// cut of all, or one that would miss its deadline behind that. `left` gets those that stay.
pub(crate) fn cut_mixed(
    mates: Vec<Waiting>,
    max_rows: usize,
    (forecast, now): (&Forecast, Instant),
    left: &mut Vec<Waiting>,
) -> Choice {
    let (Some(first), Some(table)) = (mates.first(), forecast.table()) else {
        return Choice { taken: mates, release: Release::Idle };
    };
    let head = (first.length, first.place);
    let sorted = sorted_around(mates, head.0);
    let item = |mate: &Waiting| Item {
        rows: mate.request.rows,
        length: mate.length,
        slack: mate.request.deadline.saturating_duration_since(now).as_secs_f64(),
    };
    let items: Vec<Item> = sorted.iter().map(item).collect();
    let speed = forecast.speed();
    let parts = split(&items, max_rows, |rows, length| table.seconds(rows, length) * speed);
    let at = sorted.iter().position(|mate| mate.place == head.1).unwrap_or_default();
    let Some(due) = parts.iter().find(|part| (part.from..part.to).contains(&at)) else {
        return Choice { taken: sorted, release: Release::Idle };
    };
    let urgent = most_urgent(&parts, due);
    let part = urgent.unwrap_or(due);
    let rows: usize = items.iter().skip(part.from).take(part.to - part.from).map(|item| item.rows).sum();
    let release = match urgent {
        Some(_) => Release::Deadline,
        None if rows >= max_rows => Release::Full,
        None if parts.len() == 1 => Release::Idle,
        None => Release::Cost,
    };
    Choice { taken: take_out(sorted, part, left), release }
}

/// By length. Within a length those that the batch of the head would take first stand next to it: younger ones are
/// never taken before older ones of the same length.
fn sorted_around(mut mates: Vec<Waiting>, head: usize) -> Vec<Waiting> {
    mates.sort_by(|a, b| {
        let in_turn = (a.level, a.place).cmp(&(b.level, b.place));
        let same = if a.length < head { in_turn.reverse() } else { in_turn };
        a.length.cmp(&b.length).then(same)
    });
    mates
}

/// A batch that still makes its deadline now, would not behind `due`, and lets `due` make its own.
fn most_urgent<'a>(parts: &'a [Part], due: &Part) -> Option<&'a Part> {
    let spare = |part: &Part| part.slack - part.cost;
    let urgent = parts.iter().filter(|part| {
        let others = part.from != due.from;
        others && spare(part) >= 0.0 && spare(part) < due.cost && spare(due) >= part.cost
    });
    urgent.min_by(|a, b| spare(a).total_cmp(&spare(b)))
}

fn take_out(sorted: Vec<Waiting>, part: &Part, left: &mut Vec<Waiting>) -> Vec<Waiting> {
    let mut taken = Vec::with_capacity(part.to - part.from);
    for (at, mate) in sorted.into_iter().enumerate() {
        if (part.from..part.to).contains(&at) {
            taken.push(mate);
        } else {
            left.push(mate);
        }
    }
    taken
}
