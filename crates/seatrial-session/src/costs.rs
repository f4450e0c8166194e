//! What runs cost, measured before readiness: times at some numbers of rows and lengths, within a bound of time.

use std::{
    fs,
    time::{Duration, Instant},
};

use seatrial_types::{BatchMode, Batching, Dim, PadPlan, Result, Runner, Signature, Tensor};

use crate::{
    WarmUpRun,
    warm_up::{has_free_inner, make_up},
};

/// Lengths of models that declare none end here.
const LONGEST_UNDECLARED: usize = 256;

/// Lengths below this differ by too little to be worth a measurement.
const SHORTEST: usize = 8;

/// Runs of one size: the least time counts, and more runs than these do not make it more certain.
const MOST_RUNS: usize = 16;

/// A share of the whole time for one size, beyond which it is not run again.
const SHARE: u32 = 60;

/// Measures runs of 1, 2, 4, … rows at lengths of powers of two, the small ones first, for no longer than `budget`.
/// Sizes that are likely to take more than what is left are not tried. `least` is the smallest size of the free
/// dimensions that the model takes.
///
/// The lengths of the result are what the queue counts: the padded length, or else the elements of a row.
pub fn measure_costs(
    runner: &mut dyn Runner,
    signature: &Signature,
    (batching, padding): (&Batching, Option<&PadPlan>),
    least: usize,
    budget: Duration,
) -> Vec<WarmUpRun> {
    let start = Instant::now();
    let mut found: Vec<WarmUpRun> = Vec::new();
    // Seconds for each row and step of the length, by the last measured size.
    let mut pace = 0.0;
    for (rows, size) in sizes(signature, batching, padding, least) {
        let left = budget.saturating_sub(start.elapsed());
        let work = (rows * size) as f64;
        if pace * work > left.as_secs_f64() / 2.0 || left.is_zero() {
            continue;
        }
        // A size that the model refuses is one that it will not be asked for either.
        let Ok(inputs) = make_up(signature, rows, size) else { continue };
        let Ok(time) = least_time(runner, &inputs, left.min(budget / SHARE)) else { continue };
        pace = time.as_secs_f64() / work;
        let length = padding.map_or_else(|| row_elements(&inputs), |_| size);
        found.push(WarmUpRun { rows, length, time });
    }
    found
}

fn least_time(runner: &mut dyn Runner, inputs: &[Tensor], budget: Duration) -> Result<Duration> {
    let start = Instant::now();
    let mut least = Duration::MAX;
    for _ in 0..MOST_RUNS {
        let (began, waited) = (Instant::now(), cpu_wait());
        runner.run(inputs)?;
        least = least.min(began.elapsed().saturating_sub(cpu_wait().saturating_sub(waited)));
        if start.elapsed() > budget {
            break;
        }
    }
    Ok(least)
}

/// How long this thread has waited for a CPU so far. It is taken off: on a busy machine the scheduler interrupts long
/// runs and not short ones, and large batches would look dearer than they are.
fn cpu_wait() -> Duration {
    let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let ns = text.split_whitespace().nth(1).and_then(|ns| ns.parse().ok());
    Duration::from_nanos(ns.unwrap_or_default())
}

/// Rows and lengths to measure, by the work in them.
fn sizes(
    signature: &Signature,
    batching: &Batching,
    padding: Option<&PadPlan>,
    least: usize,
) -> Vec<(usize, usize)> {
    let most = if batching.mode == BatchMode::None { 1 } else { batching.max_rows.max(1) };
    let rows = powers(1, most);
    let longest = padding.and_then(PadPlan::longest).or_else(|| declared(signature));
    let lengths = if has_free_inner(signature) {
        let longest = longest.unwrap_or(LONGEST_UNDECLARED).max(1);
        powers(least.max(SHORTEST).min(longest), longest)
    } else {
        vec![1]
    };
    let mut sizes: Vec<_> = lengths.iter().flat_map(|size| rows.iter().map(|rows| (*rows, *size))).collect();
    sizes.sort_by_key(|(rows, size)| (rows * size, *rows));
    sizes
}

/// `first` doubled again and again, and `last` at the end.
fn powers(first: usize, last: usize) -> Vec<usize> {
    let doubled = std::iter::successors(Some(first), |size| size.checked_mul(2));
    doubled.take_while(|size| *size < last).chain([last]).collect()
}

/// The smallest bound of a free dimension inside a row.
fn declared(signature: &Signature) -> Option<usize> {
    let inner = signature.inputs.iter().flat_map(|spec| spec.shape.iter().skip(1));
    inner.filter_map(|dim| if let Dim::Free { max, .. } = dim { *max } else { None }).min()
}

fn row_elements(inputs: &[Tensor]) -> usize {
    inputs.iter().map(|input| input.shape.iter().skip(1).product::<usize>()).sum()
}
