//! What a run costs: times measured at some numbers of rows and lengths, and everything between by interpolation.

use std::time::Duration;

/// The time of a run by rows and length, never falling in either. Made from measurements; the length is what the
/// owner of the queue counts, such as tokens.
#[derive(Clone, Debug, PartialEq)]
pub struct CostTable {
    rows: Vec<usize>,
    lengths: Vec<usize>,
    /// Seconds; one line for each length, one entry for each number of rows.
    lines: Vec<Vec<f64>>,
}

impl CostTable {
    /// A table from measured points `(rows, length, time)`, in any order; the least time of equal points counts.
    /// Where a number of rows was not measured at some length, it is taken to cost as much a row as the next smaller
    /// one. `None` without points of at least one row.
    pub fn new(points: impl IntoIterator<Item = (usize, usize, Duration)>) -> Option<Self> {
        let points: Vec<_> = points.into_iter().filter(|(rows, _, _)| *rows > 0).collect();
        let rows = distinct(points.iter().map(|point| point.0));
        let lengths = distinct(points.iter().map(|point| point.1));
        let measured = |rows: usize, length: usize| {
            let same = points.iter().filter(|point| (point.0, point.1) == (rows, length));
            same.map(|point| point.2.as_secs_f64()).reduce(f64::min)
        };
        let mut lines: Vec<Vec<f64>> = Vec::with_capacity(lengths.len());
        for (at, length) in lengths.iter().enumerate() {
            let shorter = at.checked_sub(1).and_then(|at| Some((*lengths.get(at)?, lines.get(at)?)));
            lines.push(line(&rows, |rows| measured(rows, *length), shorter.map(|s| (s.0, *length, s.1))));
        }
        let mut table = Self { rows, lengths, lines };
        table.level();
        (!table.rows.is_empty()).then_some(table)
    }

    /// The time of a run of `rows` rows, each padded to `length`. Below the least measured size it is that of the
    /// least. Above the greatest it goes on with the rows as steeply as before, and with the length in proportion.
    pub fn cost(&self, rows: usize, length: usize) -> Duration {
        Duration::from_secs_f64(self.seconds(rows, length))
    }

    /// The least that a row of `length` can cost in a batch of at most `max_rows` rows.
    pub fn least_per_row(&self, length: usize, max_rows: usize) -> Duration {
        let sizes = self.rows.iter().copied().filter(|rows| *rows <= max_rows).chain([1]);
        let least = sizes.map(|rows| self.seconds(rows, length) / rows as f64).reduce(f64::min);
        Duration::from_secs_f64(least.unwrap_or_default())
    }

    pub(crate) fn seconds(&self, rows: usize, length: usize) -> f64 {
        let longest = self.lengths.last().copied().unwrap_or_default();
        if length > longest {
            return self.seconds(rows, longest) * length as f64 / longest.max(1) as f64;
        }
        let (lower, upper, share) = between(&self.lengths, length);
        let at = |line: usize| self.lines.get(line).map_or(0.0, |line| along(&self.rows, line, rows));
        if lower == upper {
            return at(upper);
        }
        // Beyond the measured rows the lines are drawn on and might cross.
        let low = at(lower);
        low + (at(upper).max(low) - low) * share
    }

    /// Noise only adds time, so where more work took less time, the smaller work is given the time of the greater.
    fn level(&mut self) {
        let mut longer: Option<Vec<f64>> = None;
        for line in self.lines.iter_mut().rev() {
            let mut least = f64::INFINITY;
            for (at, seconds) in line.iter_mut().enumerate().rev() {
                let beyond = longer.as_ref().and_then(|line| line.get(at)).copied();
                least = least.min(*seconds).min(beyond.unwrap_or(f64::INFINITY));
                *seconds = least;
            }
            longer = Some(line.clone());
        }
    }
}

fn distinct(values: impl Iterator<Item = usize>) -> Vec<usize> {
    let mut values: Vec<_> = values.collect();
    values.sort_unstable();
    values.dedup();
    values
}

/// One line of the table; `shorter` is the line of the next smaller length, with both lengths.
fn line(
    rows: &[usize],
    measured: impl Fn(usize) -> Option<f64>,
    shorter: Option<(usize, usize, &Vec<f64>)>,
) -> Vec<f64> {
    let mut line: Vec<f64> = Vec::with_capacity(rows.len());
    let mut before: Option<(usize, f64)> = None;
    for (at, n) in rows.iter().enumerate() {
        let of_shorter = || {
            let (short, long, line) = shorter?;
            Some(line.get(at)? * long as f64 / short.max(1) as f64)
        };
        let of_fewer = || before.map(|(fewer, seconds)| seconds * *n as f64 / fewer as f64);
        let seconds = measured(*n).or_else(of_fewer).or_else(of_shorter).unwrap_or_default();
        before = Some((*n, seconds));
        line.push(seconds);
    }
    line
}

/// The places around `value` in ascending `grid` and how far it lies between them: 0 below the first, over 1 above
/// the last. A grid of one value gives the proportion to it.
fn between(grid: &[usize], value: usize) -> (usize, usize, f64) {
    let last = grid.len().saturating_sub(1);
    let upper = grid.partition_point(|size| *size < value).min(last);
    let lower = upper.saturating_sub(1);
    let (Some(low), Some(high)) = (grid.get(lower), grid.get(upper)) else { return (0, 0, 0.0) };
    if lower == upper {
        return (lower, upper, if value > *low { value as f64 / (*low).max(1) as f64 } else { 0.0 });
    }
    (lower, upper, (value as f64 - *low as f64) / (*high as f64 - *low as f64))
}

fn along(grid: &[usize], line: &[f64], value: usize) -> f64 {
    let (lower, upper, share) = between(grid, value);
    let (Some(low), Some(high)) = (line.get(lower), line.get(upper)) else { return 0.0 };
    if lower == upper { low * share.max(1.0) } else { low + (high - low) * share }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: f64) -> Duration {
        Duration::from_secs_f64(ms / 1e3)
    }

    fn table(points: &[(usize, usize, f64)]) -> CostTable {
        CostTable::new(points.iter().map(|(rows, length, time)| (*rows, *length, ms(*time)))).unwrap()
    }

    fn check(table: &CostTable, cases: &[(usize, usize, f64)]) {
        for (rows, length, expected) in cases {
            let off = table.cost(*rows, *length).as_secs_f64() * 1e3 - expected;
            assert!(off.abs() < 1e-6, "{rows} rows of {length}: off by {off} ms from {expected}");
        }
    }

    #[test]
    fn measured_points_are_met_and_the_rest_lies_between_them() {
        let table = table(&[(1, 10, 2.0), (4, 10, 5.0), (1, 30, 4.0), (4, 30, 13.0)]);
        check(&table, &[(1, 10, 2.0), (4, 30, 13.0), (2, 10, 3.0), (1, 20, 3.0), (2, 20, 5.0)]);
        check(&table, &[(1, 3, 2.0), (8, 10, 9.0), (1, 60, 8.0), (4, 45, 19.5)]);
    }

    #[test]
    fn one_point_stands_for_work_in_proportion() {
        check(&table(&[(1, 8, 2.0)]), &[(1, 8, 2.0), (1, 4, 2.0), (1, 16, 4.0), (3, 8, 6.0), (2, 16, 8.0)]);
    }

    #[test]
    fn what_was_not_measured_is_taken_as_no_cheaper_a_row() {
        let table = table(&[(1, 10, 2.0), (2, 10, 3.0), (4, 10, 4.0), (1, 20, 5.0), (2, 20, 6.0)]);
        check(&table, &[(4, 20, 12.0)]);
    }

    #[test]
    fn noise_does_not_make_less_work_cost_more() {
        let table = table(&[(1, 8, 9.0), (2, 8, 3.0), (4, 8, 4.0), (1, 16, 4.0), (2, 16, 5.0), (4, 16, 3.5)]);
        check(&table, &[(1, 8, 3.0), (2, 8, 3.0), (4, 8, 3.5), (2, 16, 3.5)]);
        for rows in 1..9 {
            for length in 1..40 {
                let cost = table.cost(rows, length);
                assert!(table.cost(rows + 1, length) >= cost && table.cost(rows, length + 1) >= cost);
            }
        }
    }

    #[test]
    fn the_cheapest_batch_size_sets_the_price_of_a_row() {
        let table = table(&[(1, 8, 4.0), (4, 8, 8.0), (8, 8, 24.0)]);
        assert_eq!(table.least_per_row(8, 8), ms(2.0));
        assert_eq!(table.least_per_row(8, 3), ms(4.0));
        assert_eq!(CostTable::new([(0, 8, ms(1.0))]), None);
    }
}
