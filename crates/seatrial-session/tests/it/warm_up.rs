//! Warm-up: what it runs, what it makes up, and when a failure is fatal.

use std::{sync::Arc, time::Duration};

use seatrial_session::{SharedSession, measure_costs, warm_up};
use seatrial_types::{
    BatchMode, Batching, Code, DataType, Error, PadInput, PadPlan, Padding, Result, Runner, Signature,
    Tensor, TensorSpec,
};

use crate::dock::{self, spec};

/// Keeps what came and answers as it is told.
struct Probe {
    seen: Vec<Vec<Tensor>>,
    answer: fn(&[Tensor]) -> Result<Vec<Tensor>>,
}

impl Runner for Probe {
    fn run(&mut self, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
        self.seen.push(inputs.to_vec());
        (self.answer)(inputs)
    }
}

fn probe(answer: fn(&[Tensor]) -> Result<Vec<Tensor>>) -> Probe {
    Probe { seen: Vec::new(), answer }
}

fn batching(mode: BatchMode, max_rows: usize) -> Batching {
    Batching { mode, max_rows, why: String::new(), padding: None, preferred: None }
}

fn inputs(inputs: &[TensorSpec]) -> Signature {
    dock::signature(inputs, &[])
}

#[test]
fn one_row_and_a_full_batch_are_run() {
    let Some(runtime) = dock::runtime() else { return };
    let session = Arc::new(dock::open(&runtime, "mixed.onnx", &dock::mixed()));
    let found = warm_up(&mut SharedSession(session), &dock::mixed(), &batching(BatchMode::Full, 16)).unwrap();
    assert_eq!(found.runs.iter().map(|run| run.rows).collect::<Vec<_>>(), [1, 16]);
    assert!(found.runs.iter().all(|run| run.time.as_nanos() > 0));
    assert_eq!(found.notes, Vec::<String>::new());
}

#[test]
fn models_that_run_alone_are_warmed_with_one_row() {
    let mut probe = probe(|_| Ok(Vec::new()));
    let signature = inputs(&[spec("x", DataType::F32, &[-1, 3])]);
    let found = warm_up(&mut probe, &signature, &batching(BatchMode::None, 16)).unwrap();
    assert_eq!(found.runs.len(), 1);
    assert_eq!(probe.seen.len(), 1);
}

#[test]
fn values_lie_in_the_declared_range_and_sizes_under_the_declared_bounds() {
    let ranged =
        |name: &str, datatype, range| TensorSpec { range: Some(range), ..spec(name, datatype, &[1]) };
    let mut bounded = spec("s", DataType::Bytes, &[-1, -1]);
    bounded.shape[0] = seatrial_types::Dim::Free { name: "batch".into(), max: Some(4) };
    let signature = inputs(&[
        ranged("a", DataType::I32, (5.5, 9.0)),
        ranged("b", DataType::I8, (-9.0, -3.5)),
        ranged("c", DataType::F32, (0.5, 1.0)),
        ranged("d", DataType::I64, (-4.0, 4.0)),
        ranged("e", DataType::U64, (1e3, 1e9)),
        bounded,
    ]);
    let mut probe = probe(|_| Ok(Vec::new()));
    warm_up(&mut probe, &signature, &batching(BatchMode::Full, 16)).unwrap();
    let data: Vec<&[u8]> = probe.seen[0].iter().map(|tensor| &tensor.data[..]).collect();
    assert_eq!(data[0], 6i32.to_le_bytes());
    assert_eq!(data[1], (-4i8).to_le_bytes());
    assert_eq!(data[2], 0.5f32.to_le_bytes());
    assert_eq!(data[3], 0i64.to_le_bytes());
    assert_eq!(data[4], 1000u64.to_le_bytes());
    assert_eq!((probe.seen[0][5].shape.as_slice(), data[5]), (&[1, 1][..], &[0; 4][..]));
    assert_eq!((probe.seen[1][5].shape.as_slice(), probe.seen[1][5].data.len()), (&[4, 1][..], 16));
}

#[test]
fn larger_free_sizes_are_tried_before_a_model_is_called_broken() {
    let signature = inputs(&[spec("image", DataType::F32, &[-1, 3, -1, -1])]);
    let mut picky = probe(|inputs| {
        if inputs[0].shape[2] < 8 { Err(Error::internal("window larger than image")) } else { Ok(Vec::new()) }
    });
    let found = warm_up(&mut picky, &signature, &batching(BatchMode::Full, 2)).unwrap();
    assert_eq!(found.runs.iter().map(|run| run.rows).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(picky.seen[2][0].shape, [2, 3, 8, 8]);
}

#[test]
fn refused_zeros_are_a_note_and_a_model_that_never_runs_is_an_error() {
    let signature = inputs(&[spec("x", DataType::F32, &[-1, 3])]);
    let full = batching(BatchMode::Full, 4);
    let refused = warm_up(&mut probe(|_| Err(Error::invalid("no zeros"))), &signature, &full).unwrap();
    assert_eq!(refused.runs, []);
    assert_eq!(refused.notes, ["warm-up with one row of zeros was refused: no zeros"]);
    let broken = warm_up(&mut probe(|_| Err(Error::internal("broken"))), &signature, &full).unwrap_err();
    assert_eq!((broken.code, broken.message.as_str()), (Code::Internal, "broken"));
    let only_one = |inputs: &[Tensor]| {
        if inputs[0].rows() > 1 { Err(Error::internal("baked")) } else { Ok(Vec::new()) }
    };
    let found = warm_up(&mut probe(only_one), &signature, &full).unwrap();
    assert_eq!(found.notes, ["warm-up with 4 rows of zeros failed: baked"]);
}

#[test]
fn inputs_too_large_to_make_up_are_a_note() {
    let mut probe = probe(|_| Ok(Vec::new()));
    let signature = inputs(&[spec("x", DataType::F32, &[-1, 100_000_000])]);
    let found = warm_up(&mut probe, &signature, &batching(BatchMode::Full, 4)).unwrap();
    assert_eq!((found.runs.len(), probe.seen.len(), found.notes.len()), (0, 0, 1));
    assert!(found.notes[0].contains("too large to make up"), "{:?}", found.notes);
}

#[test]
fn costs_are_measured_from_small_to_large_up_to_what_is_declared() {
    let mut bounded = spec("ids", DataType::I64, &[-1, -1]);
    bounded.shape[1] = seatrial_types::Dim::Free { name: "tokens".into(), max: Some(20) };
    let signature = inputs(&[bounded, spec("x", DataType::F32, &[-1, 3])]);
    let full = batching(BatchMode::Full, 6);
    let mut quick = probe(|_| Ok(Vec::new()));
    let found = measure_costs(&mut quick, &signature, (&full, None), 1, Duration::from_mins(1));
    let measured: Vec<_> = found.iter().map(|run| (run.rows, run.length)).collect();
    let expected = [(1, 11), (1, 19), (2, 11), (1, 23), (2, 19), (4, 11), (2, 23), (6, 11), (4, 19), (4, 23)];
    assert_eq!(measured[..10], expected, "elements of a row, by work");
    assert_eq!(measured.len(), 12);
    let plan = PadPlan::new(
        &Padding { inputs: [("ids".into(), PadInput { axis: 1, value: 0 })].into(), ..Padding::default() },
        &signature,
    );
    let plan = plan.unwrap();
    let found = measure_costs(&mut quick, &signature, (&full, Some(&plan)), 1, Duration::from_mins(1));
    assert!(found.iter().all(|run| [8, 16, 20].contains(&run.length)), "lengths as the plan counts them");
    let alone = batching(BatchMode::None, 6);
    let found = measure_costs(&mut quick, &signature, (&alone, None), 1, Duration::from_mins(1));
    assert!(found.iter().all(|run| run.rows == 1) && found.len() == 3);
}

#[test]
fn what_would_take_too_long_or_is_refused_is_not_measured() {
    let signature = inputs(&[spec("x", DataType::F32, &[-1, 3])]);
    let full = batching(BatchMode::Full, 64);
    let mut slow = probe(|inputs| {
        std::thread::sleep(Duration::from_millis(4 * inputs[0].rows() as u64));
        if inputs[0].rows() == 4 { Err(Error::internal("four")) } else { Ok(Vec::new()) }
    });
    let found = measure_costs(&mut slow, &signature, (&full, None), 1, Duration::from_millis(200));
    let rows: Vec<_> = found.iter().map(|run| run.rows).collect();
    assert!(rows.starts_with(&[1, 2, 8]) && !rows.contains(&64), "measured {rows:?} rows");
    assert_eq!(measure_costs(&mut slow, &signature, (&full, None), 1, Duration::ZERO), []);
}
