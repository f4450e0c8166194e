//! Runs of one session: values, buffers, strings, errors, threads.

use std::{fs, path::PathBuf, thread};

use bytes::Bytes;
use seatrial_session::{SessionError, SessionOptions};
use seatrial_types::{Code, DataType, Tensor};

use crate::dock::{self, as_floats, floats, integers, strings};

#[test]
fn rows_are_computed_in_place_and_from_unaligned_buffers() {
    let Some(runtime) = dock::runtime() else { return };
    let session = dock::open(&runtime, "double.onnx", &dock::double());
    let input = floats(&[2, 3], &[1.0, -2.0, 3.5, 0.0, f32::MIN_POSITIVE, 1e30]);
    let expected = [2.0, -4.0, 7.0, 0.0, 2.0 * f32::MIN_POSITIVE, 2e30];
    for data in [input.data.clone(), dock::unaligned(&input.data)] {
        let outputs = session.run(&[Tensor { data, ..input.clone() }]).unwrap();
        assert_eq!(outputs.len(), 1);
        assert_eq!(outputs[0].shape, [2, 3]);
        assert_eq!(as_floats(&outputs[0]), expected);
    }
    assert_eq!(as_floats(&input), [1.0, -2.0, 3.5, 0.0, f32::MIN_POSITIVE, 1e30], "inputs are only read");
}

#[test]
fn zero_rows_give_zero_rows() {
    let Some(runtime) = dock::runtime() else { return };
    let session = dock::open(&runtime, "double.onnx", &dock::double());
    let outputs = session.run(&[floats(&[0, 3], &[])]).unwrap();
    assert_eq!((outputs[0].shape.as_slice(), outputs[0].data.len()), (&[0, 3][..], 0));
}

#[test]
fn strings_of_any_bytes_go_through_beside_numbers() {
    let Some(runtime) = dock::runtime() else { return };
    let session = dock::open(&runtime, "mixed.onnx", &dock::mixed());
    let long = vec![0xffu8; 100_000];
    let texts: [&[u8]; 6] = [b"", b"a\0b\0", "\u{1f600}e\u{301}".as_bytes(), &[0xc3, 0x28], &long, b" "];
    let inputs = [floats(&[2, 2], &[1.0, 2.0, 3.0, 4.0]), strings(&[2, 3], &texts)];
    let outputs = session.run(&inputs).unwrap();
    assert_eq!(as_floats(&outputs[0]), [2.0, 4.0, 6.0, 8.0]);
    assert_eq!(outputs[1], inputs[1]);
    let none = session.run(&[floats(&[2, 2], &[0.0; 4]), strings(&[2, 0], &[])]).unwrap();
    assert_eq!((none[1].shape.as_slice(), none[1].data.len()), (&[2, 0][..], 0));
}

#[test]
fn an_input_that_the_model_refuses_is_the_clients_mistake() {
    let Some(runtime) = dock::runtime() else { return };
    let session = dock::open(&runtime, "lookup.onnx", &dock::lookup());
    let error = session.run(&[integers(&[2], &[1, 8])]).unwrap_err();
    assert_eq!(error.code, Code::InvalidArgument);
    assert_eq!(
        error.message,
        "the model could not compute this request: Gather: indices element out of data bounds, idx=8 must be \
         within the inclusive range [-8,7]"
    );
    let wrong_type = session.run(&[floats(&[2], &[1.0, 2.0])]).unwrap_err();
    assert_eq!(wrong_type.code, Code::InvalidArgument, "{wrong_type}");
    let wrong_rank = session.run(&[integers(&[1, 1], &[1])]).unwrap_err();
    assert_eq!(wrong_rank.code, Code::InvalidArgument, "{wrong_rank}");
    assert_eq!(
        as_floats(&session.run(&[integers(&[1], &[3])]).unwrap()[0]),
        [6.0, 7.0],
        "it works on after errors"
    );
}

#[test]
fn a_fault_inside_the_graph_is_internal_and_names_the_node_without_source_files() {
    let Some(runtime) = dock::runtime() else { return };
    let signature = dock::signature(
        &[dock::spec("x", DataType::F32, &[-1, 4])],
        &[dock::spec("y", DataType::F32, &[2, 2])],
    );
    let session = dock::open(&runtime, "one_row.onnx", &signature);
    assert!(session.run(&[floats(&[1, 4], &[1.0; 4])]).is_ok());
    let error = session.run(&[floats(&[2, 4], &[1.0; 8])]).unwrap_err();
    assert_eq!(error.code, Code::Internal);
    assert!(error.message.contains("Reshape: The input tensor cannot be reshaped"), "{error}");
    for private in [".h:", ".cc", "onnxruntime::", "/onnxruntime_src"] {
        assert!(!error.message.contains(private), "{error}");
    }
}

#[test]
fn buffers_that_do_not_fit_their_shape_never_reach_the_runtime() {
    let Some(runtime) = dock::runtime() else { return };
    let session = dock::open(&runtime, "double.onnx", &dock::double());
    let short = Tensor { data: Bytes::from_static(&[0; 23]), ..floats(&[2, 3], &[]) };
    let huge = Tensor { shape: vec![usize::MAX, 3], ..floats(&[2, 3], &[0.0; 6]) };
    let overflow = Tensor { shape: vec![1 << 62, 3], ..floats(&[2, 3], &[0.0; 6]) };
    for tensor in [short, huge, overflow] {
        assert!(session.run(&[tensor]).is_err());
    }
    assert!(session.run(&[]).is_err());
    let mixed = dock::open(&runtime, "mixed.onnx", &dock::mixed());
    let numbers = floats(&[1, 2], &[0.0; 2]);
    let cut = Tensor { data: Bytes::from_static(&[9, 0, 0, 0, 1]), ..strings(&[1, 1], &[]) };
    let few = strings(&[1, 3], &[b"a", b"b"]);
    let endless = Tensor { shape: vec![1 << 62, 8], ..strings(&[1, 1], &[]) };
    for tensor in [cut, few, endless] {
        assert!(mixed.run(&[numbers.clone(), tensor]).is_err());
    }
}

#[test]
fn one_session_serves_many_threads_at_once() {
    let Some(runtime) = dock::runtime() else { return };
    let session = dock::open(&runtime, "mixed.onnx", &dock::mixed());
    thread::scope(|scope| {
        for thread in 0..4u32 {
            let session = &session;
            scope.spawn(move || {
                for i in 0..500u32 {
                    let value = (thread * 1000 + i) as f32;
                    let text = format!("{thread}-{i}");
                    let inputs = [floats(&[1, 2], &[value, -value]), strings(&[1, 1], &[text.as_bytes()])];
                    let outputs = session.run(&inputs).unwrap();
                    assert_eq!(as_floats(&outputs[0]), [2.0 * value, -2.0 * value]);
                    assert_eq!(outputs[1], inputs[1]);
                }
            });
        }
    });
}

#[test]
fn threads_inside_an_operator_give_the_same_answer() {
    let Some(runtime) = dock::runtime() else { return };
    let options = SessionOptions { intra_op_threads: 2, spin: false };
    let session = runtime.session(&dock::model("double.onnx"), &dock::double(), &options).unwrap();
    let values: Vec<f32> = (0..300_000u32).map(|i| i as f32).collect();
    let outputs = session.run(&[floats(&[100_000, 3], &values)]).unwrap();
    assert!(as_floats(&outputs[0]).iter().zip(&values).all(|(y, x)| y.to_bits() == (2.0 * x).to_bits()));
}

#[test]
fn a_file_that_is_no_model_is_refused_with_its_name() {
    let Some(runtime) = dock::runtime() else { return };
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("junk-{}.onnx", std::process::id()));
    fs::write(&path, "not a model").unwrap();
    let missing = path.with_extension("missing");
    for path in [&path, &missing] {
        let error =
            runtime.session(path, &dock::double(), &SessionOptions::default()).map(|_| ()).unwrap_err();
        assert!(matches!(&error, SessionError::Model { path: named, .. } if named == path), "{error:?}");
        assert!(!error.to_string().contains('\n'), "{error}");
    }
    fs::remove_file(path).unwrap();
}
