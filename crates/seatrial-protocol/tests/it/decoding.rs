//! Requests that are right, and what they become.

use std::time::Duration;

use bytes::Bytes;
use seatrial_protocol::{OutputChoice, decode_infer};
use seatrial_types::{DataType, Signature};

use crate::signatures::{decode, decode_parts, decode_x, echo, f32s, i64s, pair, prefixed, spec, strings};

#[test]
fn flat_and_nested_data_mean_the_same() {
    let shapes = [
        ("[1,2]", "[1, 2]", "[[1,2]]"),
        ("[2,2]", "[1,2.5,-3e0,4]", " [ [1 ,2.5] , [-3, 4.0] ] "),
        ("[0,2]", "[]", "[]"),
    ];
    for (shape, flat, nested) in shapes {
        let flat = decode_x(DataType::F32, &["n", "2"], shape, flat).unwrap();
        assert_eq!(decode_x(DataType::F32, &["n", "2"], shape, nested).unwrap(), flat);
    }
    let deep = decode_x(DataType::U8, &["a", "b", "c"], "[2,1,3]", "[[[1,2,3]],[[4,5,6]]]").unwrap();
    assert_eq!(deep.data, [1, 2, 3, 4, 5, 6].as_slice());
    for empty in ["[]", "[[],[]]"] {
        let hollow = decode_x(DataType::F32, &["a", "b", "3"], "[2,0,3]", empty).unwrap();
        assert_eq!((hollow.shape, hollow.data.len()), (vec![2, 0, 3], 0));
    }
}

#[test]
fn a_scalar_has_rank_zero() {
    for data in ["3.5", "[3.5]"] {
        let scalar = decode_x(DataType::F32, &[], "[]", data).unwrap();
        assert_eq!((scalar.shape.as_slice(), f32s(&scalar)), ([].as_slice(), vec![3.5]));
    }
}

#[test]
fn keys_come_in_any_order_and_unknown_ones_are_skipped() {
    let body = r#" {"model_name":"m","outputs":null,"inputs":[
        {"data":[[1,2]],"extra":{"deep":[[{"a":"\ud83d\ude00"}]]},"shape":[1,2],"datatype":"INT64","name":"b"},
        {"parameters":null,"data":[0.5,1e-1],"name":"a","datatype":"FP32","shape":[1,2]}],"id":"7"} "#;
    let call = decode(&pair(), body).unwrap();
    assert_eq!(call.id.as_deref(), Some("7"));
    assert_eq!(f32s(&call.inputs[0]), [0.5, 0.1]);
    assert_eq!(i64s(&call.inputs[1]), [1, 2]);
    assert_eq!(call.rows, 1);
}

#[test]
fn names_may_be_written_with_escapes() {
    let body = r#"{"inputs":[{"n\u0061me":"\u0078","datatype":"FP32","shape":[1],"data":[1]}]}"#;
    assert!(decode(&echo(DataType::F32, &["n"]), body).is_ok());
}

#[test]
fn integers_are_exact_to_the_last_digit() {
    let x = decode_x(
        DataType::I64,
        &["n"],
        "[4]",
        "[9007199254740993,-9223372036854775808,9223372036854775807,-0]",
    );
    assert_eq!(i64s(&x.unwrap()), [9_007_199_254_740_993, i64::MIN, i64::MAX, 0]);
    let x = decode_x(DataType::U64, &["n"], "[2]", "[18446744073709551615,0]").unwrap();
    assert_eq!(x.data, [[255; 8], [0; 8]].as_flattened());
}

#[test]
fn non_finite_floats_are_three_strings() {
    let x = decode_x(DataType::F32, &["n"], "[4]", r#"["NaN","Infinity","-Infinity",-0.0]"#).unwrap();
    let values = f32s(&x);
    assert!(values[0].is_nan());
    assert_eq!(values[1..3], [f32::INFINITY, f32::NEG_INFINITY]);
    assert_eq!(values[3].to_bits(), (-0.0_f32).to_bits());
    let x = decode_x(DataType::F16, &["n"], "[2]", r#"["-Infinity",65519]"#).unwrap();
    assert_eq!(x.data, [0x00, 0xfc, 0xff, 0x7b].as_slice());
}

#[test]
fn strings_keep_every_character() {
    let data = r#"["caf\u00e9 \ud83d\udc68\u200d\ud83d\udc69","\u5317\u4eac\u0000x","","\/\"\\\n","日本"]"#;
    let x = decode_x(DataType::Bytes, &["n"], "[5]", data).unwrap();
    let due = ["café 👨\u{200d}👩", "北京\0x", "", "/\"\\\n", "日本"];
    assert_eq!(strings(&x), due.map(str::as_bytes));
}

#[test]
fn binary_parts_follow_in_the_order_of_the_json() {
    let json = r#"{"inputs":[{"name":"b","datatype":"INT64","shape":[1,2],"parameters":{"binary_data_size":16}},
        {"name":"a","datatype":"FP32","shape":[1,2],"data":[1,2]}]}"#;
    let call = decode_parts(&pair(), json, &[[1_u8; 8], [2; 8]].concat()).unwrap();
    assert_eq!(call.inputs[1].data, [[1_u8; 8], [2; 8]].concat());
    assert_eq!(f32s(&call.inputs[0]), [1.0, 2.0]);
}

#[test]
fn binary_strings_need_not_be_text() {
    let json =
        r#"{"inputs":[{"name":"x","datatype":"BYTES","shape":[1,2],"parameters":{"binary_data_size":11}}]}"#;
    let call =
        decode_parts(&echo(DataType::Bytes, &["n", "m"]), json, &prefixed(&[b"\xff\x00", b"a"])).unwrap();
    assert_eq!(strings(&call.inputs[0]), [b"\xff\x00".as_slice(), b"a"]);
}

#[test]
fn a_body_without_json_is_the_one_input() {
    let raw =
        |signature: &Signature, body: &[u8]| decode_infer(signature, Bytes::copy_from_slice(body), Some(0));
    let call = raw(&echo(DataType::F32, &["batch", "2"]), &[0; 24]).unwrap();
    assert_eq!((call.inputs[0].shape.as_slice(), call.rows), ([3, 2].as_slice(), 3));
    assert!(call.outputs.iter().all(|output| output.binary));
    let call = raw(&echo(DataType::F32, &["batch", "n"]), &[0; 24]).unwrap();
    assert_eq!(call.inputs[0].shape, [1, 6]);
    let call = raw(&echo(DataType::Bytes, &["batch"]), b"a picture").unwrap();
    assert_eq!(
        (call.inputs[0].shape.as_slice(), strings(&call.inputs[0])),
        ([1].as_slice(), vec![b"a picture".as_slice()])
    );
    let odd = raw(&echo(DataType::F32, &["batch", "2"]), &[0; 9]).unwrap_err();
    assert_eq!(odd.message, "input `x`: 9 bytes do not make FP32 of shape [batch, 2]");
    assert!(raw(&echo(DataType::F32, &["a", "b", "c"]), &[0; 8]).is_err());
    assert!(raw(&echo(DataType::F32, &["a", "0"]), &[0; 8]).is_err());
    assert!(raw(&pair(), &[0; 24]).is_err());
}

#[test]
fn outputs_are_chosen_and_ordered_by_the_client() {
    let inputs = r#""inputs":[{"name":"a","datatype":"FP32","shape":[1,2],"data":[1,2]},
        {"name":"b","datatype":"INT64","shape":[1,2],"data":[1,2]}]"#;
    let outputs = |rest: &str| decode(&pair(), format!("{{{inputs}{rest}}}")).unwrap().outputs;
    let choice = |index, binary, classification| OutputChoice { index, binary, classification };
    assert_eq!(outputs(""), [choice(0, false, None), choice(1, false, None)]);
    assert_eq!(outputs(r#","outputs":[]"#).len(), 2);
    assert_eq!(
        outputs(r#","parameters":{"binary_data_output":true}"#),
        [choice(0, true, None), choice(1, true, None)]
    );
    assert_eq!(
        outputs(
            r#","outputs":[{"name":"z"},{"name":"y","parameters":{"binary_data":false,"classification":3}}],
            "parameters":{"binary_data_output":true}"#
        ),
        [choice(1, true, None), choice(0, false, Some(3))]
    );
}

#[test]
fn timeout_and_priority_come_from_the_parameters() {
    let with = |parameters: &str| {
        let x = r#"{"name":"x","datatype":"FP32","shape":[1],"data":[1]}"#;
        decode(&echo(DataType::F32, &["n"]), format!(r#"{{"parameters":{parameters},"inputs":[{x}]}}"#))
            .unwrap()
    };
    let call =
        with(r#"{"timeout":2500,"priority":1,"anything":{"a":[1]},"sequence_id":0,"sequence_start":false}"#);
    assert_eq!((call.timeout, call.priority), (Some(Duration::from_micros(2500)), 1));
    let call = with(r#"{"timeout":0}"#);
    assert_eq!((call.timeout, call.priority), (None, 0));
}

#[test]
fn rows_count_only_where_all_inputs_have_a_batch() {
    let mut signature = echo(DataType::F32, &["batch", "2"]);
    assert_eq!(decode_x(DataType::F32, &["batch", "2"], "[3,2]", "[1,2,3,4,5,6]").unwrap().shape, [3, 2]);
    signature.inputs.push(spec("scale", DataType::F32, &[]));
    let body = r#"{"inputs":[{"name":"x","datatype":"FP32","shape":[3,2],"data":[1,2,3,4,5,6]},
        {"name":"scale","datatype":"FP32","shape":[],"data":[1]}]}"#;
    assert_eq!(decode(&signature, body).unwrap().rows, 1);
}
