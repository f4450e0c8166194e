//! Values of every type through JSON and binary and back, against oracles that share no code with the decoder:
//! the standard library's number parser and `serde_json`.

use bytes::Bytes;
use proptest::{collection::vec, prelude::*};
use seatrial_protocol::{AnswerShape, InferBody, ModelId, OutputChoice, decode_infer, encode_infer};
use seatrial_types::{DataType, Tensor};
use serde_json::Value;

use crate::signatures::{decode, decode_x, echo, f32s, prefixed};

fn tensor(datatype: DataType, data: Vec<u8>) -> Tensor {
    let elements = data.len() / datatype.size().unwrap();
    Tensor { datatype, shape: vec![elements], data: Bytes::from(data) }
}

fn encode(tensor: &Tensor, binary: bool) -> InferBody {
    let model = ModelId { name: "m".into(), version: "1".into() };
    let outputs = vec![OutputChoice { index: 0, binary, classification: None }];
    let signature = echo(tensor.datatype, &["n"]);
    encode_infer(&model, &signature, &AnswerShape { id: None, outputs }, std::slice::from_ref(tensor))
        .unwrap()
}

/// The answer about `y` read as a request about `x`.
fn back(tensor: &Tensor, binary: bool) -> Tensor {
    let InferBody { body, header_length } = encode(tensor, binary);
    let (json, rest) = body.split_at(header_length.unwrap_or(body.len()));
    let json = std::str::from_utf8(json)
        .unwrap()
        .replace("\"outputs\":[", "\"inputs\":[")
        .replace("\"name\":\"y\"", "\"name\":\"x\"");
    let request = [json.as_bytes(), rest].concat();
    let length = header_length.map(|_| json.len());
    decode_infer(&echo(tensor.datatype, &["n"]), Bytes::from(request), length).unwrap().inputs.remove(0)
}

/// Whether the bits are those of a NaN, of which JSON keeps only that it is one.
fn is_nan(datatype: DataType, element: &[u8]) -> bool {
    match datatype {
        DataType::F16 => u16::from_le_bytes(element.try_into().unwrap()) & 0x7fff > 0x7c00,
        DataType::BF16 => u16::from_le_bytes(element.try_into().unwrap()) & 0x7fff > 0x7f80,
        DataType::F32 => f32::from_le_bytes(element.try_into().unwrap()).is_nan(),
        DataType::F64 => f64::from_le_bytes(element.try_into().unwrap()).is_nan(),
        _ => false,
    }
}

fn fixed_types() -> impl Strategy<Value = DataType> {
    proptest::sample::select(DataType::ALL.into_iter().filter(|t| t.size().is_some()).collect::<Vec<_>>())
}

fn tensors() -> impl Strategy<Value = Tensor> {
    (fixed_types(), vec(any::<u8>(), 0..200)).prop_map(|(datatype, mut data)| {
        data.truncate(data.len() / datatype.size().unwrap() * datatype.size().unwrap());
        if datatype == DataType::Bool {
            for byte in &mut data {
                *byte &= 1;
            }
        }
        tensor(datatype, data)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(1500) })]

    #[test]
    fn any_bits_of_any_type_come_back(original in tensors()) {
        prop_assert_eq!(&back(&original, true), &original);
        let through_json = back(&original, false);
        let width = original.datatype.size().unwrap();
        for (was, is) in original.data.chunks(width).zip(through_json.data.chunks(width)) {
            prop_assert!(was == is || (is_nan(original.datatype, was) && is_nan(original.datatype, is)), "{was:?} {is:?}");
        }
        prop_assert_eq!(original.data.len(), through_json.data.len());
    }

    #[test]
    fn any_text_comes_back(items in vec(any::<String>(), 0..20)) {
        let items: Vec<&[u8]> = items.iter().map(String::as_bytes).collect();
        let original = Tensor { datatype: DataType::Bytes, shape: vec![items.len()], data: prefixed(&items).into() };
        prop_assert_eq!(&back(&original, false), &original);
        prop_assert_eq!(&back(&original, true), &original);
        let answer: Value = serde_json::from_slice(&encode(&original, false).body).unwrap();
        let read: Vec<&[u8]> = answer["outputs"][0]["data"].as_array().unwrap().iter().map(|v| v.as_str().unwrap().as_bytes()).collect();
        prop_assert_eq!(read, items);
    }

    #[test]
    fn any_bytes_come_back_in_binary(items in vec(vec(any::<u8>(), 0..30), 0..20)) {
        let items: Vec<&[u8]> = items.iter().map(Vec::as_slice).collect();
        let original = Tensor { datatype: DataType::Bytes, shape: vec![items.len()], data: prefixed(&items).into() };
        prop_assert_eq!(&back(&original, true), &original);
    }

    #[test]
    fn numbers_are_read_like_the_standard_library(text in r"-?(0|[1-9][0-9]{0,24})(\.[0-9]{1,25})?([eE][+-]?[0-9]{1,2})?") {
        let list = format!("[{text}]");
        let single = text.parse::<f32>().unwrap();
        match decode_x(DataType::F32, &["n"], "[1]", &list) {
            Ok(x) => prop_assert_eq!(f32s(&x)[0].to_bits(), single.to_bits()),
            Err(_) => prop_assert!(single.is_infinite()),
        }
        let double = text.parse::<f64>().unwrap();
        let x = decode_x(DataType::F64, &["n"], "[1]", &list).unwrap();
        prop_assert_eq!(f64::from_le_bytes(x.data[..].try_into().unwrap()).to_bits(), double.to_bits());
        let whole = decode_x(DataType::I64, &["n"], "[1]", &list).ok().map(|x| i64::from_le_bytes(x.data[..].try_into().unwrap()));
        prop_assert_eq!(whole, text.parse::<i64>().ok());
    }

    /// Decimals at and next to the middle between two floats, where rounding twice goes wrong.
    #[test]
    fn ties_between_floats_round_once(bits in 0x0080_0000_u32..0x7f00_0000, nudge in -1_i64..=1) {
        let middle = f64::midpoint(f64::from(f32::from_bits(bits)), f64::from(f32::from_bits(bits + 1)));
        let near = f64::from_bits(middle.to_bits().wrapping_add_signed(nudge));
        let long = format!("{middle:.60e}");
        let (digits, exponent) = long.split_once('e').unwrap();
        for text in [format!("{near:e}"), format!("{near:.40e}"), format!("{digits}1e{exponent}")] {
            let x = decode_x(DataType::F32, &["n"], "[1]", &format!("[{text}]"));
            match x {
                Ok(x) => prop_assert_eq!(f32s(&x)[0].to_bits(), text.parse::<f32>().unwrap().to_bits(), "{}", text),
                Err(_) => prop_assert!(text.parse::<f32>().unwrap().is_infinite()),
            }
        }
    }

    #[test]
    fn a_whole_body_means_what_serde_json_reads(rows in vec(vec(any::<i32>(), 3), 0..8), spaced in any::<bool>(), nested in any::<bool>()) {
        let flat: Vec<i32> = rows.concat();
        let data = if nested { serde_json::json!(rows) } else { serde_json::json!(flat) };
        let body = serde_json::json!({"id": "q", "inputs": [{"name": "x", "datatype": "INT32", "shape": [rows.len(), 3], "data": data}]});
        let text = if spaced { serde_json::to_string_pretty(&body) } else { serde_json::to_string(&body) }.unwrap();
        let call = decode(&echo(DataType::I32, &["n", "3"]), text).unwrap();
        let due: Vec<u8> = flat.iter().flat_map(|v| v.to_le_bytes()).collect();
        prop_assert_eq!(&call.inputs[0].data[..], &due[..]);
        prop_assert_eq!(call.rows, rows.len());
    }
}

#[test]
fn halves_written_as_decimals_are_exact_floats() {
    let all: Vec<u8> = (0..=u16::MAX).flat_map(u16::to_le_bytes).collect();
    for datatype in [DataType::F16, DataType::BF16] {
        let original = tensor(datatype, all.clone());
        let through_json = back(&original, false);
        for (was, is) in original.data.chunks(2).zip(through_json.data.chunks(2)) {
            assert!(
                was == is || (is_nan(datatype, was) && is_nan(datatype, is)),
                "{datatype} {was:?} {is:?}"
            );
        }
    }
}
