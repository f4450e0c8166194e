//! Inference messages, read by this crate and written by another implementation of protocol buffers, and the other way
//! round.

use bytes::Bytes;
use proptest::prelude::*;
use prost::Message as _;
use seatrial_protocol::{
    InferCall, ModelId,
    message::{Envelope, InferMessage, encode_message, stream_error},
    proto::inference::{
        InferParameter, InferTensorContents, ModelInferRequest, ModelInferResponse, ModelStreamInferResponse,
        infer_parameter::ParameterChoice,
        model_infer_request::{InferInputTensor, InferRequestedOutputTensor},
    },
};
use seatrial_types::{Code, DataType, Dim, Result, Signature, Tensor, TensorSpec};

fn spec(name: &str, datatype: DataType) -> TensorSpec {
    let shape = vec![Dim::Free { name: "n".to_owned(), max: Some(4) }];
    TensorSpec { name: name.to_owned(), datatype, shape, range: None, labels: None }
}

fn signature(datatype: DataType) -> Signature {
    Signature { inputs: vec![spec("x", datatype)], outputs: vec![spec("y", datatype)] }
}

fn input(datatype: DataType, shape: &[i64], contents: Option<InferTensorContents>) -> InferInputTensor {
    InferInputTensor {
        name: "x".to_owned(),
        datatype: datatype.name().to_owned(),
        shape: shape.to_vec(),
        contents,
        ..Default::default()
    }
}

fn request(inputs: Vec<InferInputTensor>, raw: &[&[u8]]) -> ModelInferRequest {
    ModelInferRequest {
        model_name: "m".to_owned(),
        id: "r-1".to_owned(),
        inputs,
        raw_input_contents: raw.iter().map(|part| Bytes::copy_from_slice(part)).collect(),
        ..Default::default()
    }
}

fn decode(signature: &Signature, request: &ModelInferRequest) -> Result<InferCall> {
    InferMessage::read(request.encode_to_vec().into())?.decode(signature)
}

fn parameter(value: ParameterChoice) -> InferParameter {
    InferParameter { parameter_choice: Some(value) }
}

/// The typed form of some values of each type, and their bytes.
fn typed() -> Vec<(DataType, InferTensorContents, Vec<u8>)> {
    let none = InferTensorContents::default;
    let ints = vec![-1, 0, 100];
    let uints = vec![1, 0, 200];
    let flat = |parts: &[&[u8]]| parts.concat();
    vec![
        (DataType::Bool, InferTensorContents { bool_contents: vec![true, false], ..none() }, vec![1, 0]),
        (DataType::I8, InferTensorContents { int_contents: ints.clone(), ..none() }, vec![255, 0, 100]),
        (
            DataType::I16,
            InferTensorContents { int_contents: ints.clone(), ..none() },
            vec![255, 255, 0, 0, 100, 0],
        ),
        (
            DataType::I32,
            InferTensorContents { int_contents: vec![i32::MIN, 7], ..none() },
            flat(&[&i32::MIN.to_le_bytes(), &7_i32.to_le_bytes()]),
        ),
        (
            DataType::I64,
            InferTensorContents { int64_contents: vec![i64::MIN, i64::MAX], ..none() },
            flat(&[&i64::MIN.to_le_bytes(), &i64::MAX.to_le_bytes()]),
        ),
        (DataType::U8, InferTensorContents { uint_contents: uints.clone(), ..none() }, vec![1, 0, 200]),
        (DataType::U16, InferTensorContents { uint_contents: uints, ..none() }, vec![1, 0, 0, 0, 200, 0]),
        (
            DataType::U32,
            InferTensorContents { uint_contents: vec![u32::MAX], ..none() },
            u32::MAX.to_le_bytes().to_vec(),
        ),
        (
            DataType::U64,
            InferTensorContents { uint64_contents: vec![u64::MAX, 1], ..none() },
            flat(&[&u64::MAX.to_le_bytes(), &1_u64.to_le_bytes()]),
        ),
        (
            DataType::F32,
            InferTensorContents { fp32_contents: vec![1.5, f32::INFINITY], ..none() },
            flat(&[&1.5_f32.to_le_bytes(), &f32::INFINITY.to_le_bytes()]),
        ),
        (
            DataType::F64,
            InferTensorContents { fp64_contents: vec![-0.1], ..none() },
            (-0.1_f64).to_le_bytes().to_vec(),
        ),
        (
            DataType::Bytes,
            InferTensorContents { bytes_contents: vec![Bytes::from_static(b"ab"), Bytes::new()], ..none() },
            b"\x02\0\0\0ab\0\0\0\0".to_vec(),
        ),
    ]
}

fn elements(datatype: DataType, data: &[u8]) -> usize {
    datatype.size().map_or_else(|| seatrial_types::byte_strings(data).count(), |size| data.len() / size)
}

#[test]
fn typed_contents_become_tensors_and_go_back_typed() {
    for (datatype, contents, bytes) in typed() {
        let n = elements(datatype, &bytes);
        let signature = signature(datatype);
        let wanted = request(vec![input(datatype, &[size(n)], Some(contents.clone()))], &[]);
        let call = decode(&signature, &wanted).unwrap();
        assert_eq!(call.inputs[0].data, bytes, "{datatype}");
        assert_eq!((call.rows, call.id.as_deref()), (n, Some("r-1")));
        let answer = answer(&signature, call, Envelope::Alone);
        let answer = ModelInferResponse::decode(&answer[..]).unwrap();
        assert_eq!(answer.outputs[0].contents.as_ref(), Some(&contents), "{datatype}");
        assert_eq!(answer.raw_output_contents, Vec::<Bytes>::new());
        assert_eq!((&*answer.model_name, &*answer.model_version, &*answer.id), ("m", "1", "r-1"));
        assert_eq!(answer.outputs[0].shape, [size(n)]);
    }
}

fn size(n: usize) -> i64 {
    i64::try_from(n).unwrap()
}

/// The answer of a model that gives back what it takes.
fn answer(signature: &Signature, call: InferCall, envelope: Envelope) -> Vec<u8> {
    let id = ModelId { name: "m".to_owned(), version: "1".to_owned() };
    let (inputs, shape) = call.into_parts();
    let mut out = Vec::new();
    encode_message(&mut out, (&id, signature), (&shape, envelope), &inputs).unwrap();
    out
}

#[test]
fn raw_contents_are_borrowed_from_the_message_and_go_back_raw() {
    for datatype in DataType::ALL {
        let data: &[u8] = if datatype == DataType::Bytes { b"\x01\0\0\0a\0\0\0\0" } else { &[0; 16] };
        let n = elements(datatype, data).min(2);
        let data = datatype.size().map_or(data, |size| &data[..size * n]);
        let signature = signature(datatype);
        let message: Bytes = request(vec![input(datatype, &[size(n)], None)], &[data]).encode_to_vec().into();
        let call = InferMessage::read(message.clone()).unwrap().decode(&signature).unwrap();
        let inside = message.as_ptr_range().contains(&call.inputs[0].data.as_ptr());
        assert!(inside, "{datatype} was copied");
        let answer = ModelInferResponse::decode(&answer(&signature, call, Envelope::Alone)[..]).unwrap();
        assert_eq!(answer.raw_output_contents, [data], "{datatype}");
        assert!(answer.outputs[0].contents.is_none());
    }
}

#[test]
fn what_has_no_typed_form_is_answered_raw() {
    let mut signature = signature(DataType::F32);
    signature.outputs.push(spec("z", DataType::F16));
    let contents = InferTensorContents { fp32_contents: vec![1.0], ..Default::default() };
    let call = decode(&signature, &request(vec![input(DataType::F32, &[1], Some(contents))], &[])).unwrap();
    let (mut outputs, shape) = call.into_parts();
    outputs.push(Tensor { datatype: DataType::F16, shape: vec![1], data: Bytes::from_static(&[0, 60]) });
    let id = ModelId { name: "m".to_owned(), version: "1".to_owned() };
    let mut out = Vec::new();
    encode_message(&mut out, (&id, &signature), (&shape, Envelope::Alone), &outputs).unwrap();
    let answer = ModelInferResponse::decode(&out[..]).unwrap();
    assert_eq!(answer.raw_output_contents, [&1.0_f32.to_le_bytes()[..], &[0, 60]]);
}

#[test]
fn a_stream_answer_is_final_and_an_error_keeps_the_id() {
    let signature = signature(DataType::U8);
    let call = decode(&signature, &request(vec![input(DataType::U8, &[1], None)], &[&[7]])).unwrap();
    let answer = answer(&signature, call, Envelope::Stream);
    let answer = ModelStreamInferResponse::decode(&answer[..]).unwrap().infer_response.unwrap();
    assert_eq!(answer.parameters["triton_final_response"], parameter(ParameterChoice::BoolParam(true)));
    assert_eq!(answer.raw_output_contents, [&[7][..]]);
    let error = ModelStreamInferResponse::decode(stream_error("no", "r-2")).unwrap();
    assert_eq!((&*error.error_message, error.infer_response.unwrap().id), ("no", "r-2".to_owned()));
}

#[test]
fn what_is_wrong_is_named() {
    let floats =
        |values: &[f32]| Some(InferTensorContents { fp32_contents: values.to_vec(), ..Default::default() });
    let ints = Some(InferTensorContents { int_contents: vec![1], ..Default::default() });
    let f32 = DataType::F32;
    let cases = [
        (request(vec![], &[]), "no `inputs`; missing input `x`"),
        (
            request(vec![input(f32, &[1], floats(&[1.0]))], &[&[0; 4]]),
            "has both contents and raw_input_contents",
        ),
        (
            request(vec![input(f32, &[1], None)], &[&[0; 4], &[0; 4]]),
            "raw_input_contents has 2 entries for 1 inputs",
        ),
        (request(vec![input(f32, &[2], None)], &[&[0; 4]]), "takes 8 bytes, raw_input_contents is 4"),
        (request(vec![input(f32, &[2], floats(&[1.0]))], &[]), "takes 2 values, contents has 1"),
        (request(vec![input(f32, &[1], floats(&[1.0, 2.0]))], &[]), "takes 1 values, contents has more"),
        (request(vec![input(f32, &[1], None)], &[]), "takes 1 values, contents has 0"),
        (request(vec![input(f32, &[1], ints)], &[]), "FP32 travels in fp32_contents"),
        (request(vec![input(f32, &[-1], None)], &[&[0; 4]]), "`-1` in `shape` is not a size"),
        (request(vec![input(f32, &[5], None)], &[&[0; 20]]), "at most 4"),
        (request(vec![input(f32, &[1, 1], None)], &[&[0; 4]]), "has 2 dimensions, expected 1"),
        (request(vec![input(DataType::I64, &[1], None)], &[&[0; 8]]), "datatype is INT64, expected FP32"),
        (request(vec![input(f32, &[1], None); 2], &[&[0; 4], &[0; 4]]), "is given twice"),
    ];
    for (wrong, expected) in cases {
        let error = decode(&signature(f32), &wrong).unwrap_err();
        assert_eq!(error.code, Code::InvalidArgument);
        assert!(error.message.contains(expected), "`{}` does not say `{expected}`", error.message);
    }
}

#[test]
fn narrow_types_refuse_what_they_cannot_hold() {
    for (datatype, value) in [(DataType::I8, 128), (DataType::I8, -129), (DataType::I16, 40_000)] {
        let contents = InferTensorContents { int_contents: vec![value], ..Default::default() };
        let wrong = request(vec![input(datatype, &[1], Some(contents))], &[]);
        let error = decode(&signature(datatype), &wrong).unwrap_err();
        assert!(error.message.contains(&format!("is {value}, which is out of range")), "{}", error.message);
    }
    let contents = InferTensorContents { uint_contents: vec![256], ..Default::default() };
    let wrong = request(vec![input(DataType::U8, &[1], Some(contents))], &[]);
    assert!(decode(&signature(DataType::U8), &wrong).unwrap_err().message.contains("is 256"));
    let half = request(vec![input(DataType::F16, &[1], None)], &[]);
    assert!(decode(&signature(DataType::F16), &half).unwrap_err().message.contains("no typed contents"));
}

#[test]
fn parameters_mean_what_they_mean_in_json() {
    let signature = signature(DataType::U8);
    let with = |key: &str, value: ParameterChoice| {
        let mut made = request(vec![input(DataType::U8, &[1], None)], &[&[7]]);
        made.parameters.insert(key.to_owned(), parameter(value));
        decode(&signature, &made)
    };
    assert_eq!(with("priority", ParameterChoice::Uint64Param(2)).unwrap().priority, 2);
    let timeout = with("timeout", ParameterChoice::Int64Param(1500)).unwrap().timeout;
    assert_eq!(timeout.map(|t| t.as_micros()), Some(1500));
    assert!(with("mine", ParameterChoice::DoubleParam(0.5)).is_ok());
    assert!(with("sequence_id", ParameterChoice::Int64Param(0)).is_ok());
    assert_eq!(with("sequence_id", ParameterChoice::Int64Param(1)).unwrap_err().code, Code::Unimplemented);
    assert_eq!(with("triton_x", ParameterChoice::BoolParam(true)).unwrap_err().code, Code::InvalidArgument);
    assert_eq!(with("timeout", ParameterChoice::Int64Param(-1)).unwrap_err().code, Code::InvalidArgument);
    let mut asked = request(vec![input(DataType::U8, &[1], None)], &[&[7]]);
    let parameters = [("classification".to_owned(), parameter(ParameterChoice::Int64Param(2)))].into();
    asked.outputs = vec![InferRequestedOutputTensor { name: "y".to_owned(), parameters }];
    assert_eq!(decode(&signature, &asked).unwrap().outputs[0].classification, Some(2));
    asked.outputs.push(asked.outputs[0].clone());
    assert!(decode(&signature, &asked).unwrap_err().message.contains("asked for twice"));
    asked.outputs[1].name = "nobody".to_owned();
    assert!(decode(&signature, &asked).unwrap_err().message.contains("unknown output `nobody`"));
}

#[test]
fn a_message_of_empty_parts_is_refused_before_it_grows() {
    for part in [b"\x2a\x00", b"\x3a\x00", b"\x22\x00", b"\x32\x00"] {
        let error = InferMessage::read(part.repeat(1 << 20).into()).unwrap_err();
        assert!(error.message.contains("more than 10000 entries"), "{}", error.message);
    }
}

fn valid() -> Vec<u8> {
    let contents = InferTensorContents { int_contents: vec![1, -2, 3], ..Default::default() };
    let mut made = request(vec![input(DataType::I8, &[3], Some(contents))], &[]);
    made.parameters.insert("priority".to_owned(), parameter(ParameterChoice::Uint64Param(1)));
    made.outputs = vec![InferRequestedOutputTensor { name: "y".to_owned(), ..Default::default() }];
    made.encode_to_vec()
}

proptest! {
    #[test]
    fn any_bytes_give_a_call_or_a_refusal(bytes: Vec<u8>) {
        let signature = signature(DataType::I8);
        let _ = InferMessage::read(bytes.into()).and_then(|message| message.decode(&signature));
    }

    #[test]
    fn a_damaged_message_gives_a_call_that_fits_or_a_refusal(
        damage in proptest::collection::vec((0_usize..200, any::<u8>()), 1..6),
        cut in 0_usize..200,
    ) {
        let mut bytes = valid();
        let length = bytes.len();
        for (at, byte) in damage {
            bytes[at % length] = byte;
        }
        bytes.truncate(length - cut % length.min(7));
        let signature = signature(DataType::I8);
        if let Ok(call) = InferMessage::read(bytes.into()).and_then(|message| message.decode(&signature)) {
            let due: usize = call.inputs[0].shape.iter().product();
            prop_assert_eq!(call.inputs[0].data.len(), due);
        }
    }
}
