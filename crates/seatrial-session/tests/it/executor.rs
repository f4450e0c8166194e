//! The executor: rows to their owners, one bad row alone, gone clients, wrong declarations, panics.

use std::sync::{Arc, Mutex};

use seatrial_metrics::Registry;
use seatrial_session::{ExecutorMetrics, SharedSession, run_executor};
use seatrial_types::{
    Code, DataType, Error, PadInput, PadPlan, Padding, Request, Result, Runner, Stage, Tensor,
};

use crate::dock::{self, Given, as_floats, floats, integers, request, strings};

fn metrics() -> ExecutorMetrics {
    ExecutorMetrics::register(&Registry::new(), &[("model", "m")]).unwrap()
}

/// A stand-in that doubles floats, keeps what came, and does what a test asks on certain values.
struct Stand {
    seen: Arc<Mutex<Vec<Vec<usize>>>>,
    outputs: fn(&[Tensor]) -> Result<Vec<Tensor>>,
}

impl Runner for Stand {
    fn run(&mut self, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
        self.seen.lock().unwrap().push(inputs[0].shape.clone());
        (self.outputs)(inputs)
    }
}

struct Outcome {
    /// Shapes of the first input of every run.
    seen: Vec<Vec<usize>>,
    complaints: Vec<String>,
    metrics: ExecutorMetrics,
}

fn execute(batches: Vec<Vec<Request>>, outputs: fn(&[Tensor]) -> Result<Vec<Tensor>>) -> Outcome {
    execute_padded(batches, None, outputs)
}

fn execute_padded(
    batches: Vec<Vec<Request>>,
    padding: Option<PadPlan>,
    outputs: fn(&[Tensor]) -> Result<Vec<Tensor>>,
) -> Outcome {
    let (seen, complaints) = (Arc::default(), Arc::new(Mutex::new(Vec::new())));
    let (metrics, told) = (metrics(), Arc::clone(&complaints));
    let runner = Box::new(Stand { seen: Arc::clone(&seen), outputs });
    let complain = Box::new(move |text: &str| told.lock().unwrap().push(text.to_owned()));
    run_executor(Given::new(batches), (runner, padding), metrics.clone(), complain);
    let seen = seen.lock().unwrap().clone();
    Outcome { seen, complaints: complaints.lock().unwrap().clone(), metrics }
}

fn twice(inputs: &[Tensor]) -> Result<Vec<Tensor>> {
    let values: Vec<f32> = as_floats(&inputs[0]).iter().map(|x| 2.0 * x).collect();
    if values.contains(&26.0) {
        return Err(Error::invalid("thirteen"));
    }
    assert!(!values.contains(&1332.0), "the stand-in was told to panic");
    Ok(vec![floats(&inputs[0].shape, &values)])
}

#[test]
fn rows_come_back_to_their_owners() {
    let (a, mut a_answer) = request(vec![floats(&[1, 2], &[1.0, 2.0])], 1);
    let (b, mut b_answer) = request(vec![floats(&[3, 2], &[3.0, 4.0, 5.0, 6.0, 7.0, 8.0])], 3);
    let (c, mut c_answer) = request(vec![floats(&[2, 2], &[9.0, 10.0, 11.0, 12.0])], 2);
    let outcome = execute(vec![vec![a, b, c]], twice);
    assert_eq!(outcome.seen, [[6, 2]], "one run for all");
    let [a, b, c] = [&mut a_answer, &mut b_answer, &mut c_answer].map(|answer| answer.try_recv().unwrap());
    assert_eq!(a.outcome.unwrap()[0], floats(&[1, 2], &[2.0, 4.0]));
    assert_eq!(b.outcome.unwrap()[0], floats(&[3, 2], &[6.0, 8.0, 10.0, 12.0, 14.0, 16.0]));
    assert_eq!(c.outcome.unwrap()[0], floats(&[2, 2], &[18.0, 20.0, 22.0, 24.0]));
    let spent: std::time::Duration = Stage::ALL.into_iter().map(|stage| b.stages.spent(stage)).sum();
    assert_eq!(spent, b.stages.total());
    assert!(b.stages.spent(Stage::CopyIn).as_nanos() > 0 && b.stages.spent(Stage::Run).as_nanos() > 0);
}

#[test]
fn strings_are_split_by_rows_too() {
    let texts: [&[u8]; 6] = [b"", b"ab", b"\0\0", b"c", b"dddd", b"e"];
    let (a, mut a_answer) = request(vec![strings(&[1, 2], &texts[..2])], 1);
    let (b, mut b_answer) = request(vec![strings(&[2, 2], &texts[2..])], 2);
    execute(vec![vec![a, b]], |inputs| Ok(inputs.to_vec()));
    assert_eq!(a_answer.try_recv().unwrap().outcome.unwrap()[0], strings(&[1, 2], &texts[..2]));
    assert_eq!(b_answer.try_recv().unwrap().outcome.unwrap()[0], strings(&[2, 2], &texts[2..]));
}

#[test]
fn a_single_request_is_run_on_its_own_buffers() {
    let input = floats(&[2, 1], &[1.0, 2.0]);
    let start = input.data.as_ptr();
    let (a, mut answer) = request(vec![input], 2);
    execute(vec![vec![a]], |inputs| Ok(inputs.to_vec()));
    assert_eq!(answer.try_recv().unwrap().outcome.unwrap()[0].data.as_ptr(), start);
}

#[test]
fn a_bad_row_fails_alone() {
    let (requests, mut answers): (Vec<_>, Vec<_>) =
        (10..18u8).map(|i| request(vec![floats(&[1, 1], &[f32::from(i)])], 1)).unzip();
    let (next, mut next_answer) = request(vec![floats(&[1, 1], &[1.0])], 1);
    let outcome = execute(vec![requests, vec![next]], twice);
    for (i, answer) in (10..18u8).zip(&mut answers) {
        match answer.try_recv().unwrap().outcome {
            Ok(outputs) => assert_eq!(as_floats(&outputs[0]), [2.0 * f32::from(i)]),
            Err(error) => assert_eq!((i, error.code), (13, Code::InvalidArgument)),
        }
    }
    assert!(next_answer.try_recv().unwrap().outcome.is_ok());
    assert_eq!(outcome.metrics.isolated.get(), 8);
    assert_eq!((outcome.metrics.runs_ok.get(), outcome.metrics.runs_failed.get()), (8, 2));
}

#[test]
fn a_panic_costs_one_request() {
    let (requests, mut answers): (Vec<_>, Vec<_>) =
        [1.0, 666.0, 3.0].map(|x| request(vec![floats(&[1, 1], &[x])], 1)).into_iter().unzip();
    let (next, mut next_answer) = request(vec![floats(&[1, 1], &[4.0])], 1);
    let outcome = execute(vec![requests, vec![next]], twice);
    assert!(answers[0].try_recv().unwrap().outcome.is_ok());
    assert_eq!(answers[1].try_recv().unwrap().outcome.unwrap_err().code, Code::Internal);
    assert!(answers[2].try_recv().unwrap().outcome.is_ok());
    assert!(next_answer.try_recv().unwrap().outcome.is_ok());
    assert_eq!(outcome.metrics.panics.get(), 2, "once joined, once alone");
}

#[test]
fn requests_whose_client_has_gone_are_not_run() {
    let (a, a_answer) = request(vec![floats(&[1, 1], &[1.0])], 1);
    let (b, mut b_answer) = request(vec![floats(&[1, 1], &[2.0])], 1);
    let (c, c_answer) = request(vec![floats(&[1, 1], &[3.0])], 1);
    drop((a_answer, c_answer));
    let outcome = execute(vec![vec![a, b], vec![c]], twice);
    assert_eq!(outcome.seen, [[1, 1]]);
    assert_eq!(as_floats(&b_answer.try_recv().unwrap().outcome.unwrap()[0]), [4.0]);
    assert_eq!(outcome.metrics.dropped_client_gone.get(), 2);
}

#[test]
fn a_model_that_must_not_be_joined_is_found_and_told_once() {
    let pair = |x: f32| [x, x + 1.0].map(|x| request(vec![floats(&[1, 1], &[x])], 1)).into_iter().unzip();
    let (first, mut first_answers): (Vec<_>, Vec<_>) = pair(1.0);
    let (second, mut second_answers): (Vec<_>, Vec<_>) = pair(3.0);
    // The output does not follow the rows of the input.
    let column = |inputs: &[Tensor]| Ok(vec![floats(&[1, inputs[0].shape[0]], &as_floats(&inputs[0]))]);
    let outcome = execute(vec![first, second], column);
    for (answer, x) in first_answers.iter_mut().chain(&mut second_answers).zip([1.0, 2.0, 3.0, 4.0]) {
        assert_eq!(as_floats(&answer.try_recv().unwrap().outcome.unwrap()[0]), [x]);
    }
    assert_eq!(outcome.complaints, ["output 0 has the shape [1, 2] for 2 joined rows"]);
    assert_eq!(outcome.seen, [[2, 1], [1, 1], [1, 1], [1, 1], [1, 1]], "joined once, then never again");
}

#[test]
fn a_model_whose_joined_runs_fail_is_not_joined_for_ever() {
    let one_row = |inputs: &[Tensor]| {
        if inputs[0].rows() > 1 { Err(Error::internal("baked")) } else { Ok(inputs.to_vec()) }
    };
    let mut answers = Vec::new();
    let mut batch = |x: f32| {
        let (requests, new): (Vec<_>, Vec<_>) =
            [x, x + 0.5].map(|x| request(vec![floats(&[1, 1], &[x])], 1)).into_iter().unzip();
        answers.extend(new);
        requests
    };
    let outcome = execute(vec![batch(1.0), batch(2.0), batch(3.0), batch(4.0)], one_row);
    assert!(answers.iter_mut().all(|answer| answer.try_recv().unwrap().outcome.is_ok()));
    assert_eq!(outcome.complaints, ["joined runs fail whose requests succeed alone: baked"]);
    let joined = outcome.seen.iter().filter(|shape| shape[0] == 2).count();
    assert_eq!((joined, outcome.seen.len()), (3, 3 * 3 + 2), "three times joined and alone, then only alone");
}

#[test]
fn bad_rows_are_no_reason_to_stop_joining() {
    let mut answers = Vec::new();
    let batches = (0..6).map(|_| {
        let (requests, new): (Vec<_>, Vec<_>) =
            [13.0, 1.0].map(|x| request(vec![floats(&[1, 1], &[x])], 1)).into_iter().unzip();
        answers.extend(new);
        requests
    });
    let outcome = execute(batches.collect(), twice);
    assert_eq!(outcome.complaints, Vec::<String>::new());
    assert_eq!(outcome.seen.iter().filter(|shape| shape[0] == 2).count(), 6);
}

#[test]
fn a_deadline_that_passes_behind_a_slow_mate_is_answered_without_a_run() {
    let (mut late, mut answer) = request(vec![floats(&[1, 1], &[1.0])], 1);
    late.deadline = late.stages.started();
    let outcome = execute(vec![vec![late]], twice);
    assert_eq!(answer.try_recv().unwrap().outcome.unwrap_err().code, Code::DeadlineExceeded);
    assert_eq!((outcome.seen.len(), outcome.metrics.dropped_deadline.get()), (0, 1));
}

#[test]
fn a_scalar_output_is_no_row() {
    let pair = || [1.0, 2.0].map(|x| request(vec![floats(&[1, 1], &[x])], 1)).into_iter().unzip();
    let (requests, _answers): (Vec<_>, Vec<_>) = pair();
    let scalar = execute(vec![requests], |_| Ok(vec![floats(&[], &[1.0])]));
    assert_eq!(scalar.complaints, ["output 0 has the shape [] for 2 joined rows"]);
}

/// Ids padded with 9 on axis 1, beside a fixed input; the output of axis 2 follows the length, the other does not.
fn padding() -> PadPlan {
    let signature = dock::signature(
        &[dock::spec("ids", DataType::I64, &[-1, -1]), dock::spec("x", DataType::F32, &[-1, 1])],
        &[dock::spec("each", DataType::I64, &[-1, 2, -1]), dock::spec("x", DataType::F32, &[-1, 1])],
    );
    let inputs = [("ids".to_owned(), PadInput { axis: 1, value: 9 })].into();
    PadPlan::new(&Padding { inputs, outputs: [("each".to_owned(), 2)].into() }, &signature).unwrap()
}

/// Every id, then every id negated, and the fixed input. Refuses the id 13.
fn each(inputs: &[Tensor]) -> Result<Vec<Tensor>> {
    let (rows, length) = (inputs[0].shape[0], inputs[0].shape[1]);
    let ids: Vec<i64> =
        inputs[0].data.chunks_exact(8).map(|id| i64::from_le_bytes(id.try_into().unwrap())).collect();
    if ids.contains(&13) {
        return Err(Error::invalid("thirteen"));
    }
    let both = ids.chunks(length).flat_map(|row| row.iter().copied().chain(row.iter().map(|id| -id)));
    Ok(vec![integers(&[rows, 2, length], &both.collect::<Vec<_>>()), inputs[1].clone()])
}

fn texts(ids: &[i64], rows: usize) -> (Request, tokio::sync::oneshot::Receiver<seatrial_types::Reply>) {
    let x: Vec<f32> = (0..rows).map(|row| row as f32).collect();
    request(vec![integers(&[rows, ids.len() / rows], ids), floats(&[rows, 1], &x)], rows)
}

#[test]
fn rows_of_different_lengths_are_padded_and_cut_back() {
    let (a, mut a_answer) = texts(&[1, 2, 3], 1);
    let (b, mut b_answer) = texts(&[4, 5], 2);
    let outcome = execute_padded(vec![vec![a, b]], Some(padding()), |inputs| {
        let ids: Vec<i64> =
            inputs[0].data.chunks_exact(8).map(|id| i64::from_le_bytes(id.try_into().unwrap())).collect();
        assert_eq!(ids, [1, 2, 3, 4, 9, 9, 5, 9, 9]);
        each(inputs)
    });
    assert_eq!((outcome.seen, outcome.metrics.panics.get()), (vec![vec![3, 3]], 0));
    let a = a_answer.try_recv().unwrap().outcome.unwrap();
    assert_eq!(a[0], integers(&[1, 2, 3], &[1, 2, 3, -1, -2, -3]));
    let b = b_answer.try_recv().unwrap().outcome.unwrap();
    assert_eq!(b[0], integers(&[2, 2, 1], &[4, -4, 5, -5]));
    assert_eq!(as_floats(&b[1]), [0.0, 1.0]);
}

#[test]
fn a_bad_row_fails_alone_among_padded_ones() {
    let (requests, mut answers): (Vec<_>, Vec<_>) =
        [&[1i64, 2][..], &[13], &[3]].map(|ids| texts(ids, 1)).into_iter().unzip();
    execute_padded(vec![requests], Some(padding()), each);
    let outcomes: Vec<_> = answers.iter_mut().map(|answer| answer.try_recv().unwrap().outcome).collect();
    assert_eq!(outcomes[0].as_ref().unwrap()[0], integers(&[1, 2, 2], &[1, 2, -1, -2]));
    assert_eq!(outcomes[1].as_ref().unwrap_err().code, Code::InvalidArgument);
    assert_eq!(outcomes[2].as_ref().unwrap()[0], integers(&[1, 2, 1], &[3, -3]));
}

#[test]
fn an_output_that_does_not_follow_the_length_ends_joining() {
    let (a, mut a_answer) = texts(&[1, 2, 3], 1);
    let (b, mut b_answer) = texts(&[4], 1);
    let outcome = execute_padded(vec![vec![a, b]], Some(padding()), |inputs| {
        Ok(vec![integers(&[inputs[0].shape[0], 2, 1], &vec![0; inputs[0].shape[0] * 2]), inputs[1].clone()])
    });
    assert_eq!(outcome.complaints, ["output 0 has the shape [2, 2, 1] for the length 3"]);
    assert!([a_answer.try_recv(), b_answer.try_recv()].into_iter().all(|a| a.unwrap().outcome.is_ok()));
}

#[test]
fn outputs_of_texts_are_cut_back_one_by_one() {
    let signature = dock::signature(
        &[dock::spec("ids", DataType::I64, &[-1, -1])],
        &[dock::spec("t", DataType::Bytes, &[-1, -1])],
    );
    let inputs = [("ids".to_owned(), PadInput { axis: 1, value: 0 })].into();
    let plan = PadPlan::new(&Padding { inputs, outputs: [("t".to_owned(), 1)].into() }, &signature).unwrap();
    let (a, mut a_answer) = request(vec![integers(&[1, 3], &[1, 2, 3])], 1);
    let (b, mut b_answer) = request(vec![integers(&[2, 1], &[4, 5])], 2);
    execute_padded(vec![vec![a, b]], Some(plan), |inputs| {
        let texts: [&[u8]; 9] = [b"a", b"", b"ccc", b"x", b"?", b"?", b"yy", b"??", b""];
        Ok(vec![strings(&inputs[0].shape, &texts)])
    });
    assert_eq!(a_answer.try_recv().unwrap().outcome.unwrap(), [strings(&[1, 3], &[b"a", b"", b"ccc"])]);
    assert_eq!(b_answer.try_recv().unwrap().outcome.unwrap(), [strings(&[2, 1], &[b"x", b"yy"])]);
}

#[test]
fn a_real_lookup_with_one_bad_id_among_eight_requests() {
    let Some(runtime) = dock::runtime() else { return };
    let session = Arc::new(dock::open(&runtime, "lookup.onnx", &dock::lookup()));
    let ids: [&[i64]; 8] = [&[0], &[1, 2], &[3], &[4, 8], &[5], &[6, 7, 0], &[1], &[2]];
    let (requests, mut answers): (Vec<_>, Vec<_>) =
        ids.map(|ids| request(vec![integers(&[ids.len()], ids)], ids.len())).into_iter().unzip();
    let again = ids.map(|ids| request(vec![integers(&[ids.len()], ids)], ids.len()));
    let good: Vec<_> =
        again.into_iter().enumerate().filter(|(at, _)| *at != 3).map(|(_, pair)| pair).collect();
    let (good, mut good_answers): (Vec<_>, Vec<_>) = good.into_iter().unzip();
    let metrics = metrics();
    let runner = Box::new(SharedSession(session));
    run_executor(Given::new(vec![requests, good]), (runner, None), metrics.clone(), Box::new(|_| ()));
    for (at, (answer, ids)) in answers.iter_mut().zip(ids).enumerate() {
        let outcome = answer.try_recv().unwrap().outcome;
        if at == 3 {
            assert_eq!(outcome.unwrap_err().code, Code::InvalidArgument);
        } else {
            assert_eq!(as_floats(&outcome.unwrap()[0]), rows_of(ids));
        }
    }
    let good_ids = ids.into_iter().enumerate().filter(|(at, _)| *at != 3).map(|(_, ids)| ids);
    for (answer, ids) in good_answers.iter_mut().zip(good_ids) {
        assert_eq!(as_floats(&answer.try_recv().unwrap().outcome.unwrap()[0]), rows_of(ids));
    }
    // Eight alone after one failed joined run, then seven in one.
    assert_eq!((metrics.runs_ok.get(), metrics.runs_failed.get(), metrics.isolated.get()), (8, 2, 8));
}

/// The rows 0, 1 / 2, 3 / … of the test model's table.
fn rows_of(ids: &[i64]) -> Vec<f32> {
    ids.iter().flat_map(|id| [2.0 * *id as f32, 2.0 * *id as f32 + 1.0]).collect()
}
