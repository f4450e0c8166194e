//! Signatures and values that the tests share.

use bytes::Bytes;
use seatrial_protocol::{InferCall, decode_infer};
use seatrial_types::{Code, DataType, Dim, Error, Signature, Tensor, TensorSpec, byte_strings};

/// A free dimension for names, a fixed one for digits: `["batch", "2"]`.
pub fn dims(words: &[&str]) -> Vec<Dim> {
    words
        .iter()
        .map(|word| match word.parse() {
            Ok(size) => Dim::Fixed(size),
            Err(_) => match word.split_once('<') {
                Some((name, max)) => Dim::Free { name: name.into(), max: Some(max.parse().unwrap()) },
                None => Dim::Free { name: (*word).into(), max: None },
            },
        })
        .collect()
}

pub fn spec(name: &str, datatype: DataType, words: &[&str]) -> TensorSpec {
    TensorSpec { name: name.into(), datatype, shape: dims(words), range: None, labels: None }
}

/// `x` to `y`, both of this type and shape.
pub fn echo(datatype: DataType, words: &[&str]) -> Signature {
    Signature { inputs: vec![spec("x", datatype, words)], outputs: vec![spec("y", datatype, words)] }
}

/// FP32 `a` and INT64 `b`, both [batch, 2], to `y` and `z`.
pub fn pair() -> Signature {
    Signature {
        inputs: vec![spec("a", DataType::F32, &["batch", "2"]), spec("b", DataType::I64, &["batch", "2"])],
        outputs: vec![spec("y", DataType::F32, &["batch"]), spec("z", DataType::Bytes, &["batch"])],
    }
}

pub fn decode(signature: &Signature, body: impl AsRef<[u8]>) -> Result<InferCall, Error> {
    decode_infer(signature, Bytes::copy_from_slice(body.as_ref()), None)
}

/// The one input of a body for [`echo`], given its shape and data as JSON text.
pub fn decode_x(datatype: DataType, words: &[&str], shape: &str, data: &str) -> Result<Tensor, Error> {
    let body =
        format!(r#"{{"inputs":[{{"name":"x","datatype":"{datatype}","shape":{shape},"data":{data}}}]}}"#);
    decode(&echo(datatype, words), body).map(|mut call| call.inputs.remove(0))
}

/// JSON of a body and the bytes behind it.
pub fn decode_parts(signature: &Signature, json: &str, binary: &[u8]) -> Result<InferCall, Error> {
    let body = [json.as_bytes(), binary].concat();
    decode_infer(signature, Bytes::from(body), Some(json.len()))
}

/// The message of a request that must be refused as the client's mistake.
pub fn refusal(outcome: Result<impl std::fmt::Debug, Error>) -> String {
    let error = outcome.expect_err("must be refused");
    assert_eq!(error.code, Code::InvalidArgument, "{error}");
    error.message
}

pub fn f32s(tensor: &Tensor) -> Vec<f32> {
    tensor.data.as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)).collect()
}

pub fn i64s(tensor: &Tensor) -> Vec<i64> {
    tensor.data.as_chunks().0.iter().map(|b| i64::from_le_bytes(*b)).collect()
}

pub fn strings(tensor: &Tensor) -> Vec<&[u8]> {
    byte_strings(&tensor.data).collect()
}

pub fn prefixed(items: &[&[u8]]) -> Vec<u8> {
    items
        .iter()
        .flat_map(|item| {
            let length = u32::try_from(item.len()).unwrap();
            length.to_le_bytes().into_iter().chain(item.iter().copied())
        })
        .collect()
}
