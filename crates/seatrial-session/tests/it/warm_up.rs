//! Warm-up: what it runs, what it makes up, and when a failure is fatal.

use std::sync::Arc;

use seatrial_session::{SharedSession, warm_up};
use seatrial_types::{
    BatchMode, Batching, Code, DataType, Error, Result, Runner, Signature, Tensor, TensorSpec,
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
    Batching { mode, max_rows, why: String::new() }
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
