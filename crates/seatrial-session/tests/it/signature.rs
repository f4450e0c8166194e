//! A graph that is not what its signature says is refused, and the difference is named.

use seatrial_session::{SessionError, SessionOptions};
use seatrial_types::{DataType, Signature, TensorSpec};

use crate::dock::{self, spec};

fn check(name: &str, signature: &Signature, expected: &str) {
    let Some(runtime) = dock::runtime() else { return };
    let opened = runtime.session(&dock::model(name), signature, &SessionOptions::default());
    let error = opened.map(|_| ()).expect_err("it must be refused");
    assert_eq!(error.to_string(), expected);
    assert!(matches!(error, SessionError::Signature(_) | SessionError::Unsupported(_)), "{error:?}");
}

fn x(datatype: DataType, shape: &[i64]) -> TensorSpec {
    spec("x", datatype, shape)
}

fn y() -> TensorSpec {
    spec("y", DataType::F32, &[-1, 3])
}

#[test]
fn differences_are_named() {
    let signature = |input: TensorSpec, output: TensorSpec| dock::signature(&[input], &[output]);
    check(
        "double.onnx",
        &signature(x(DataType::F64, &[-1, 3]), y()),
        "the graph differs from the signature: the input `x` is FP32 in the graph and FP64 in the signature",
    );
    check(
        "double.onnx",
        &signature(x(DataType::F32, &[-1]), y()),
        "the graph differs from the signature: the input `x` has 2 dimensions in the graph and 1 in the signature",
    );
    check(
        "double.onnx",
        &signature(x(DataType::F32, &[-1, 4]), y()),
        "the graph differs from the signature: dimension 1 of the input `x` is 3 in the graph and 4 in the signature",
    );
    check(
        "double_fixed.onnx",
        &signature(x(DataType::F32, &[-1, 3]), y()),
        "the graph differs from the signature: dimension 0 of the input `x` is 2 in the graph and free (`d0`) in the \
         signature",
    );
    check(
        "double.onnx",
        &signature(spec("z", DataType::F32, &[-1, 3]), y()),
        "the graph differs from the signature: the input `x` is not in the signature",
    );
    check(
        "double.onnx",
        &dock::signature(&[x(DataType::F32, &[-1, 3]), spec("w", DataType::F32, &[-1])], &[y()]),
        "the graph differs from the signature: the graph has no input `w`",
    );
    check(
        "double.onnx",
        &signature(x(DataType::F32, &[-1, 3]), spec("y", DataType::F32, &[-1])),
        "the graph differs from the signature: the output `y` has 2 dimensions in the graph and 1 in the signature",
    );
    check(
        "double.onnx",
        &dock::signature(&[x(DataType::F32, &[-1, 3])], &[y(), spec("p", DataType::F32, &[-1])]),
        "the graph differs from the signature: the graph has no output `p`",
    );
}

#[test]
fn a_sequence_is_refused_with_the_cure() {
    let signature = dock::signature(&[x(DataType::F32, &[-1, 2])], &[spec("s", DataType::F32, &[-1, 2])]);
    check("sequence.onnx", &signature, "the output `s` is a sequence, only tensors can be served");
}

#[test]
fn the_order_of_the_signature_decides_not_that_of_the_graph() {
    let Some(runtime) = dock::runtime() else { return };
    let mut turned = dock::mixed();
    turned.inputs.reverse();
    turned.outputs.reverse();
    let session = dock::open(&runtime, "mixed.onnx", &turned);
    let inputs = [dock::strings(&[1, 1], &[b"t"]), dock::floats(&[1, 2], &[1.0, 2.0])];
    let outputs = session.run(&inputs).unwrap();
    assert_eq!(outputs[0], inputs[0]);
    assert_eq!(dock::as_floats(&outputs[1]), [2.0, 4.0]);
}

#[test]
fn a_narrower_signature_than_the_graph_is_allowed() {
    let Some(runtime) = dock::runtime() else { return };
    let narrow = dock::signature(&[x(DataType::F32, &[5, 3])], &[y()]);
    dock::open(&runtime, "double.onnx", &narrow);
}
