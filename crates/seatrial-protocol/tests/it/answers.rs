//! Answers: JSON and binary, labels, classification, values that JSON has no number for.

use bytes::Bytes;
use seatrial_protocol::{AnswerShape, InferBody, ModelId, OutputChoice, encode_infer, error_body};
use seatrial_types::{Code, DataType, Error, Result, Signature, Tensor};
use serde_json::{Value, json};

use crate::signatures::{echo, prefixed, spec};

fn tensor(datatype: DataType, shape: &[usize], data: Vec<u8>) -> Tensor {
    Tensor { datatype, shape: shape.to_vec(), data: Bytes::from(data) }
}

fn floats(shape: &[usize], values: &[f32]) -> Tensor {
    tensor(DataType::F32, shape, values.iter().flat_map(|v| v.to_le_bytes()).collect())
}

fn answer(
    signature: &Signature,
    choices: &[(usize, bool, Option<usize>)],
    outputs: &[Tensor],
) -> Result<InferBody> {
    let outputs_asked = choices
        .iter()
        .map(|(index, binary, classification)| OutputChoice {
            index: *index,
            binary: *binary,
            classification: *classification,
        })
        .collect();
    let model = ModelId { name: "m \"q\"".into(), version: "1.0.0".into() };
    encode_infer(&model, signature, &AnswerShape { id: Some("né\n".into()), outputs: outputs_asked }, outputs)
}

fn as_json(body: &InferBody) -> Value {
    serde_json::from_slice(&body.body[..body.header_length.unwrap_or(body.body.len())]).unwrap()
}

#[test]
fn a_json_answer_carries_name_type_shape_and_flat_data() {
    let signature = echo(DataType::F32, &["n", "2"]);
    let body = answer(&signature, &[(0, false, None)], &[floats(&[1, 2], &[1.5, -0.0])]).unwrap();
    assert_eq!(body.header_length, None);
    assert_eq!(
        as_json(&body),
        json!({"model_name": "m \"q\"", "model_version": "1.0.0", "id": "né\n", "outputs": [
            {"name": "y", "datatype": "FP32", "shape": [1, 2], "data": [1.5, -0.0]}]})
    );
    let empty = answer(&signature, &[(0, false, None)], &[floats(&[2, 0], &[])]).unwrap();
    assert_eq!(
        as_json(&empty)["outputs"][0],
        json!({"name": "y", "datatype": "FP32", "shape": [2, 0], "data": []})
    );
}

#[test]
fn binary_parts_follow_the_json_in_the_order_of_the_outputs() {
    let signature = Signature {
        inputs: vec![],
        outputs: vec![
            spec("a", DataType::U8, &["n"]),
            spec("b", DataType::F32, &["n"]),
            spec("c", DataType::Bytes, &["n"]),
        ],
    };
    let nan = f32::from_bits(0x7fa0_0001);
    let outputs = [
        tensor(DataType::U8, &[2], vec![1, 2]),
        floats(&[1], &[nan]),
        tensor(DataType::Bytes, &[1], prefixed(&[b"\xff\xfe"])),
    ];
    let body = answer(&signature, &[(2, true, None), (0, false, None), (1, true, None)], &outputs).unwrap();
    let head = body.header_length.unwrap();
    assert_eq!(body.body[head..], [prefixed(&[b"\xff\xfe"]), nan.to_le_bytes().to_vec()].concat());
    assert_eq!(
        as_json(&body)["outputs"],
        json!([
            {"name": "c", "datatype": "BYTES", "shape": [1], "parameters": {"binary_data_size": 6}},
            {"name": "a", "datatype": "UINT8", "shape": [2], "data": [1, 2]},
            {"name": "b", "datatype": "FP32", "shape": [1], "parameters": {"binary_data_size": 4}},
        ])
    );
}

#[test]
fn non_finite_values_are_strings_and_stay_apart() {
    let signature = echo(DataType::F32, &["n"]);
    let output = floats(&[4], &[f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 0.0]);
    let body = answer(&signature, &[(0, false, None)], &[output]).unwrap();
    assert_eq!(as_json(&body)["outputs"][0]["data"], json!(["NaN", "Infinity", "-Infinity", 0.0]));
    let halves = tensor(DataType::F16, &[3], [0x7e00_u16, 0xfc00, 0x3e00].map(u16::to_le_bytes).concat());
    let body = answer(&echo(DataType::F16, &["n"]), &[(0, false, None)], &[halves]).unwrap();
    assert_eq!(as_json(&body)["outputs"][0]["data"], json!(["NaN", "-Infinity", 1.5]));
}

#[test]
fn strings_that_are_not_text_need_a_binary_answer() {
    let signature = echo(DataType::Bytes, &["n"]);
    let output = [tensor(DataType::Bytes, &[2], prefixed(&[b"a", b"\xff"]))];
    let error = answer(&signature, &[(0, false, None)], &output).unwrap_err();
    assert_eq!(error.code, Code::InvalidArgument);
    assert!(error.message.contains("`y`") && error.message.contains("binary_data"), "{error}");
    assert!(answer(&signature, &[(0, true, None)], &output).is_ok());
}

#[test]
fn labels_stand_beside_the_output() {
    let mut signature = echo(DataType::F32, &["n", "2"]);
    signature.outputs[0].labels = Some(vec!["cat".into(), "dög\"".into()]);
    let output = [floats(&[1, 2], &[0.25, 0.75])];
    let body = answer(&signature, &[(0, false, None)], &output).unwrap();
    assert_eq!(as_json(&body)["outputs"][0]["parameters"], json!({"labels": ["cat", "dög\""]}));
    let body = answer(&signature, &[(0, true, None)], &output).unwrap();
    assert_eq!(
        as_json(&body)["outputs"][0]["parameters"],
        json!({"binary_data_size": 8, "labels": ["cat", "dög\""]})
    );
}

#[test]
fn classification_gives_the_largest_values_of_each_row() {
    let mut signature = echo(DataType::F32, &["n", "3"]);
    let output = [floats(&[2, 3], &[1.0, 20.0, f32::NAN, -1.5, f32::INFINITY, -1.5])];
    let body = answer(&signature, &[(0, false, Some(2))], &output).unwrap();
    assert_eq!(
        as_json(&body)["outputs"][0],
        json!({"name": "y", "datatype": "BYTES", "shape": [2, 2], "data": ["20.000000:1", "1.000000:0", "inf:1", "-1.500000:0"]})
    );
    signature.outputs[0].labels = Some(vec!["a".into(), "b".into()]);
    let body = answer(&signature, &[(0, true, Some(9))], &output).unwrap();
    let items = [
        b"20.000000:1:b".as_slice(),
        b"1.000000:0:a",
        b"nan:2",
        b"inf:1:b",
        b"-1.500000:0:a",
        b"-1.500000:2",
    ];
    assert_eq!(body.body[body.header_length.unwrap()..], prefixed(&items));
    assert_eq!(as_json(&body)["outputs"][0]["shape"], json!([2, 3]));

    let flat = answer(
        &echo(DataType::U8, &["3"]),
        &[(0, false, Some(1))],
        &[tensor(DataType::U8, &[3], vec![1, 9, 3])],
    );
    assert_eq!(as_json(&flat.unwrap())["outputs"][0]["data"], json!(["9:1"]));
    let close = [i64::MAX - 1, i64::MAX].into_iter().flat_map(i64::to_le_bytes).collect();
    let whole =
        answer(&echo(DataType::I64, &["2"]), &[(0, false, Some(2))], &[tensor(DataType::I64, &[2], close)]);
    assert_eq!(
        as_json(&whole.unwrap())["outputs"][0]["data"],
        json!(["9223372036854775807:1", "9223372036854775806:0"])
    );
    let none =
        answer(&echo(DataType::F32, &["n", "3"]), &[(0, false, Some(2))], &[floats(&[0, 3], &[])]).unwrap();
    assert_eq!(as_json(&none)["outputs"][0]["data"], json!([]));
    let text = tensor(DataType::Bytes, &[1], prefixed(&[b"a"]));
    assert!(answer(&echo(DataType::Bytes, &["n"]), &[(0, false, Some(1))], &[text]).is_err());
}

#[test]
fn a_model_that_breaks_its_word_is_our_fault() {
    let signature = echo(DataType::F32, &["n"]);
    for outputs in [
        vec![],
        vec![tensor(DataType::F32, &[2], vec![0; 7])],
        vec![tensor(DataType::Bytes, &[1], vec![9, 0, 0, 0])],
    ] {
        let error = answer(&signature, &[(0, false, None)], &outputs).unwrap_err();
        assert_eq!(error.code, Code::Internal, "{error}");
    }
}

#[test]
fn an_error_has_a_text_and_a_code() {
    let body = error_body(&Error::new(Code::ResourceExhausted, "queue is \"full\"\n"));
    let body: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(body, json!({"error": "queue is \"full\"\n", "code": "resource_exhausted"}));
}
