//! Requests that are wrong, and what they are told.

use bytes::Bytes;
use seatrial_protocol::decode_infer;
use seatrial_types::{Code, DataType, Signature};

use crate::signatures::{decode, decode_parts, decode_x, echo, pair, prefixed, refusal, spec};

/// Every message must contain all of the words.
fn check(cases: &[(&str, String)]) {
    for (words, message) in cases {
        for word in words.split(" .. ") {
            assert!(message.contains(word), "`{word}` is not in: {message}");
        }
    }
}

#[test]
fn values_of_the_wrong_kind_or_size_are_named_with_their_place() {
    use DataType::{BF16, Bool, Bytes, F16, F32, F64, I8, I64, U8, U16, U64};
    let bad = |datatype, data: &str| refusal(decode_x(datatype, &["n"], "[2]", data));
    check(&[
        ("`x` .. data[0] .. `null` .. a number", bad(F32, "[null,2]")),
        (r#"data[1] .. `"2"` .. a number"#, bad(F32, r#"[1,"2"]"#)),
        (r#"`"nan"`"#, bad(F32, r#"[1,"nan"]"#)),
        ("`true` .. whole number", bad(I64, "[true,1]")),
        ("data[0] .. `1.5` .. without point", bad(I64, "[1.5,1]")),
        ("data[1] .. `5.0` .. without point", bad(U8, "[1,5.0]")),
        ("`1e2` .. exponent", bad(U8, "[1e2,1]")),
        ("data[0] .. `300` .. UINT8", bad(U8, "[300,-1]")),
        ("data[1] .. `-1` .. UINT8", bad(U8, "[3,-1]")),
        ("`65536` .. UINT16", bad(U16, "[65536,0]")),
        ("`-129` .. INT8", bad(I8, "[-129,0]")),
        ("`9223372036854775808` .. INT64", bad(I64, "[9223372036854775808,0]")),
        ("`-9223372036854775809` .. INT64", bad(I64, "[0,-9223372036854775809]")),
        ("`18446744073709551616` .. UINT64", bad(U64, "[18446744073709551616,0]")),
        ("`99999999999999999999999` .. out of range", bad(U64, "[99999999999999999999999,0]")),
        ("`1e400` .. FP32", bad(F32, "[1e400,1]")),
        ("`1e39` .. FP32", bad(F32, "[1e39,1]")),
        ("`-1e309` .. FP64", bad(F64, "[1,-1e309]")),
        ("`65520` .. FP16", bad(F16, "[65520,1]")),
        ("`3.4e38` .. BF16", bad(BF16, "[1,3.4e38]")),
        ("`1` .. true or false", bad(Bool, "[1,0]")),
        (r#"`"true"` .. true or false"#, bad(Bool, r#"["true",false]"#)),
        ("data[0] .. a string", bad(Bytes, r#"[{"b64":"AAAA"},"a"]"#)),
        ("data[1] .. `7` .. a string", bad(Bytes, r#"["a",7]"#)),
    ]);
}

#[test]
fn data_must_have_the_number_and_the_nesting_of_its_shape() {
    let bad = |shape: &str, data: &str| refusal(decode_x(DataType::F32, &["n", "m"], shape, data));
    check(&[
        ("[1, 2] takes 2 values, data has 3", bad("[1,2]", "[1,2,3]")),
        ("takes 2 values, data has 1", bad("[1,2]", "[1]")),
        ("takes 2 values, data has 0", bad("[1,2]", "[]")),
        ("takes 0 values, data has 1", bad("[0,2]", "[1]")),
        ("takes 4 values, data has 3", bad("[2,2]", "[[1,2],[3]]")),
        ("evenly", bad("[2,2]", "[[1,2,3],[4]]")),
        ("evenly", bad("[2,2]", "[[[1,2],[3,4]]]")),
        ("evenly", bad("[2,2]", "[1,[2,3],4]")),
        ("evenly", bad("[2,2]", "[[1,2],3,4]")),
        ("evenly", bad("[0,2]", "[[]]")),
        ("evenly", bad("[1,1]", "7")),
        ("evenly", bad("[1,1]", r#"{"b64":"AAAA"}"#)),
    ]);
    let scalar = |data: &str| refusal(decode_x(DataType::F32, &[], "[]", data));
    check(&[("takes 1 values, data has 2", scalar("[1,2]")), ("evenly", scalar("[[1]]"))]);
}

#[test]
fn shapes_must_be_sizes_that_fit_the_signature() {
    let bad = |shape: &str| refusal(decode_x(DataType::F32, &["n<8", "2"], shape, "[1,2]"));
    check(&[
        ("`-1` .. size", bad("[-1,2]")),
        ("`1.0` .. size", bad("[1.0,2.5]")),
        (r#"a list of sizes .. `"-1"`"#, bad(r#""-1""#)),
        ("`99999999999999999999`", bad("[99999999999999999999,2]")),
        ("1 dimensions, expected 2 .. [n, 2]", bad("[2]")),
        ("axis 1 of shape [2, 3] is 3, expected 2", bad("[2,3]")),
        ("axis 0 of shape [9, 2] is 9, at most 8", bad("[9,2]")),
    ]);
}

#[test]
fn a_huge_shape_with_little_data_costs_nothing() {
    for datatype in [DataType::U8, DataType::F64, DataType::Bytes, DataType::Bool] {
        for shape in ["[4611686018427387904,2,2]", "[4611686018427387904,1,1]", "[1000000000000,1000,1000]"] {
            refusal(decode_x(datatype, &["a", "b", "c"], shape, "[[[1]]]"));
            refusal(decode_x(datatype, &["a", "b", "c"], shape, "[1]"));
        }
    }
    let zero = decode_x(DataType::F64, &["a", "b", "c"], "[0,9223372036854775807,9223372036854775807]", "[]");
    assert!(zero.unwrap().data.is_empty());
    let json = r#"{"inputs":[{"name":"x","datatype":"FP64","shape":[4611686018427387904,4],"parameters":{"binary_data_size":8}}]}"#;
    refusal(decode_parts(&echo(DataType::F64, &["a", "b"]), json, &[0; 8]));
}

#[test]
fn broken_json_is_located() {
    let bad = |body: &[u8]| refusal(decode(&echo(DataType::F32, &["n"]), body));
    let x =
        |data: &str| format!(r#"{{"inputs":[{{"name":"x","datatype":"FP32","shape":[1],"data":{data}}}]}}"#);
    let deep = format!(r#"{{"x":{}"#, "[".repeat(100_000));
    let deep_data = x(&"[".repeat(100_000));
    check(&[
        ("empty", bad(b"")),
        ("cut short at byte 10", bad(br#"{"inputs":"#)),
        ("cut short", bad(br#"{"inputs":[{"name":"x"#)),
        ("the end of the JSON, got `}`", bad(br#"{"inputs":[]}}garbage"#)),
        ("byte order mark", bad(b"\xef\xbb\xbf{}")),
        ("`NaN` .. not JSON .. \"NaN\"", bad(x("[NaN]").as_bytes())),
        ("`-Infinity` .. not JSON", bad(x("[-Infinity]").as_bytes())),
        ("cut short", bad(&x("[1").as_bytes()[..52])),
        ("`,` or `]`", bad(x("[1 2]").as_bytes())),
        ("`01`", bad(x("[01]").as_bytes())),
        ("`+1`", bad(x("[+1]").as_bytes())),
        ("`.5`", bad(x("[.5]").as_bytes())),
        ("`1.`", bad(x("[1.]").as_bytes())),
        ("`1e`", bad(x("[1e]").as_bytes())),
        ("got `x10`", bad(x("[0x10]").as_bytes())),
        ("a JSON value", bad(x("[1,]").as_bytes())),
        ("deeper than 64", bad(deep.as_bytes())),
        ("deeper than 64", bad(deep_data.as_bytes())),
        ("a list of inputs", bad(br#"{"inputs":{"x":[1,2]}}"#)),
        ("an object for each", bad(br#"{"inputs":[1]}"#)),
        ("a JSON object", bad(b"[]")),
        ("a JSON object", bad(b"\x16\x03\x01")),
    ]);
}

#[test]
fn broken_text_is_refused() {
    let bad = |data: &[u8]| {
        let head = br#"{"inputs":[{"name":"x","datatype":"BYTES","shape":[1],"data":["#;
        refusal(decode(&echo(DataType::Bytes, &["n"]), [head.as_slice(), data, b"]}]}"].concat()))
    };
    check(&[
        ("`x` .. surrogate", bad(br#""\ud83d""#)),
        ("surrogate", bad(br#""\ud83dx""#)),
        ("surrogate", bad(br#""\ude00""#)),
        ("surrogate", bad(br#""\ud83d\ud83d""#)),
        ("invalid UTF-8", bad(b"\"\xff\xfe\"")),
        ("invalid UTF-8", bad(b"\"\xed\xa0\x80\"")),
        ("hexadecimal", bad(br#""\u12g4""#)),
        ("hexadecimal", bad(br#""\u+123""#)),
        ("escape", bad(br#""\x""#)),
        ("control characters", bad(b"\"a\nb\"")),
    ]);
}

#[test]
fn keys_and_inputs_come_once() {
    let x = r#"{"name":"x","datatype":"FP32","shape":[1],"data":[1]}"#;
    let bad = |body: String| refusal(decode(&echo(DataType::F32, &["n"]), body));
    check(&[
        ("`inputs` stands twice", bad(format!(r#"{{"inputs":[{x}],"inputs":[{x}]}}"#))),
        ("`id` stands twice", bad(format!(r#"{{"id":null,"id":"a","inputs":[{x}]}}"#))),
        (
            "`parameters` stands twice",
            bad(format!(r#"{{"parameters":{{}},"parameters":{{}},"inputs":[{x}]}}"#)),
        ),
        ("`outputs` stands twice", bad(format!(r#"{{"outputs":[],"outputs":[],"inputs":[{x}]}}"#))),
        (
            "`timeout` stands twice",
            bad(format!(r#"{{"parameters":{{"timeout":1,"timeout":2}},"inputs":[{x}]}}"#)),
        ),
        (
            "`data` stands twice",
            bad(r#"{"inputs":[{"name":"x","datatype":"FP32","shape":[1],"data":[1],"data":[2]}]}"#.into()),
        ),
        (
            "`shape` stands twice",
            bad(r#"{"inputs":[{"name":"x","datatype":"FP32","shape":[1],"shape":[1],"data":[2]}]}"#.into()),
        ),
        ("`name` stands twice", bad(r#"{"inputs":[{"name":"x","name":"x"}]}"#.into())),
        ("input `x` is given twice", bad(format!(r#"{{"inputs":[{x},{x}]}}"#))),
    ]);
}

#[test]
fn missing_and_unknown_inputs_are_named_together() {
    let a = r#"{"name":"a","datatype":"FP32","shape":[1,2],"data":[1,2]}"#;
    let zzz = r#"{"name":"zzz","datatype":"FP32","shape":[1],"data":[1]}"#;
    let bad = |inputs: &str| refusal(decode(&pair(), format!(r#"{{"inputs":[{inputs}]}}"#)));
    assert_eq!(bad(&format!("{a},{zzz}")), "missing input `b`; unknown input `zzz`; the model takes a, b");
    assert_eq!(bad(""), "missing inputs `a`, `b`; the model takes a, b");
    assert_eq!(refusal(decode(&pair(), "{}")), "no `inputs`; missing inputs `a`, `b`; the model takes a, b");
    check(&[("no `name`", bad("{}"))]);
}

#[test]
fn an_input_needs_all_of_its_parts() {
    let bad =
        |input: &str| refusal(decode(&echo(DataType::F32, &["n"]), format!(r#"{{"inputs":[{input}]}}"#)));
    check(&[
        ("`x` has no `shape`", bad(r#"{"name":"x","datatype":"FP32","data":[1]}"#)),
        ("`x` has no `datatype`", bad(r#"{"name":"x","shape":[1],"data":[1]}"#)),
        ("`x` has neither `data` nor", bad(r#"{"name":"x","datatype":"FP32","shape":[1]}"#)),
        ("INT64, expected FP32", bad(r#"{"name":"x","datatype":"INT64","shape":[1],"data":[1]}"#)),
        (
            "`STRING` does not exist .. BYTES",
            bad(r#"{"name":"x","datatype":"STRING","shape":[1],"data":["a"]}"#),
        ),
    ]);
}

#[test]
fn binary_parts_must_add_up() {
    let signature = echo(DataType::F32, &["n", "2"]);
    let json = |size: usize| {
        format!(
            r#"{{"inputs":[{{"name":"x","datatype":"FP32","shape":[1,2],"parameters":{{"binary_data_size":{size}}}}}]}}"#
        )
    };
    let both = r#"{"inputs":[{"name":"x","datatype":"FP32","shape":[1,2],"data":[1,2],"parameters":{"binary_data_size":8}}]}"#;
    check(&[
        ("8 bytes .. 7 after the JSON", refusal(decode_parts(&signature, &json(8), &[0; 7]))),
        ("8 bytes .. 9 after the JSON", refusal(decode_parts(&signature, &json(8), &[0; 9]))),
        ("takes 8 bytes, binary_data_size is 7", refusal(decode_parts(&signature, &json(7), &[0; 7]))),
        ("both", refusal(decode_parts(&signature, both, &[0; 8]))),
        ("no header", refusal(decode(&signature, json(8)))),
    ]);
    let long = decode_infer(&signature, Bytes::from_static(b"{}"), Some(3));
    check(&[("is 3, the body has 2 bytes", refusal(long))]);
}

#[test]
fn binary_strings_must_add_up() {
    let bad = |shape: &str, bytes: &[u8]| {
        let size = bytes.len();
        let json = format!(
            r#"{{"inputs":[{{"name":"x","datatype":"BYTES","shape":{shape},"parameters":{{"binary_data_size":{size}}}}}]}}"#
        );
        refusal(decode_parts(&echo(DataType::Bytes, &["n"]), &json, bytes))
    };
    check(&[
        ("takes 2 strings, the binary data has 1", bad("[2]", &prefixed(&[b"ab"]))),
        ("takes 0 strings, the binary data has 1", bad("[0]", &prefixed(&[b""]))),
        ("passes the end", bad("[1]", b"\x05\0\0\0ab")),
        ("passes the end", bad("[1]", b"\xff\xff\xff\xffab")),
        ("passes the end", bad("[1]", b"\x01\0\0\0ab")),
    ]);
    let json =
        r#"{"inputs":[{"name":"x","datatype":"BOOL","shape":[2],"parameters":{"binary_data_size":2}}]}"#;
    check(&[("byte 1 is 2", refusal(decode_parts(&echo(DataType::Bool, &["n"]), json, &[1, 2])))]);
}

#[test]
fn equal_names_need_equal_sizes() {
    let body = |a: &str, b: &str| {
        format!(
            r#"{{"inputs":[{{"name":"a","datatype":"FP32","shape":{a},"data":[1,2,3,4]}},{{"name":"b","datatype":"FP32","shape":{b},"data":[1,1,1,1]}}]}}"#
        )
    };
    let signature = |a: &[&str], b: &[&str]| Signature {
        inputs: vec![spec("a", DataType::F32, a), spec("b", DataType::F32, b)],
        outputs: vec![],
    };
    check(&[
        (
            "`n` is 2 in input `a` and 4 in input `b`",
            refusal(decode(&signature(&["n", "m"], &["n"]), body("[2,2]", "[4]"))),
        ),
        (
            "`a` has 2 rows and input `b` has 4",
            refusal(decode(&signature(&["n", "m"], &["k"]), body("[2,2]", "[4]"))),
        ),
        ("`n` is 1 .. and 4", refusal(decode(&signature(&["n", "n"], &["n"]), body("[1,4]", "[4]")))),
    ]);
}

#[test]
fn values_outside_the_promised_range_are_named() {
    let mut signature = echo(DataType::I64, &["n", "m"]);
    let mut bad = |range, datatype: DataType, data: &str| {
        signature.inputs[0].range = Some(range);
        signature.inputs[0].datatype = datatype;
        let body =
            format!(r#"{{"inputs":[{{"name":"x","datatype":"{datatype}","shape":[2,2],"data":{data}}}]}}"#);
        decode(&signature, body)
    };
    check(&[
        ("`x`: value `8` at [1, 0] is outside 0 to 7", refusal(bad((0.0, 7.0), DataType::I64, "[1,2,8,0]"))),
        ("value `-1` at [0, 0]", refusal(bad((0.0, 7.0), DataType::I8, "[-1,2,8,0]"))),
        ("value `0.5` at [0, 1]", refusal(bad((-0.25, 0.25), DataType::F32, "[0,0.5,0,0]"))),
        (
            "value `1e300` at [0, 0] is outside 0 to 1e20",
            refusal(bad((0.0, 1e20), DataType::F64, "[1e300,0,0,0]")),
        ),
        ("value `NaN`", refusal(bad((0.0, 1.0), DataType::F64, r#"[0,"NaN",0,0]"#))),
        ("value `2.0` at [1, 1]", refusal(bad((0.0, 1.5), DataType::F16, "[0,0,0,2]"))),
        // 2^53 as a bound must not swallow 2^53 + 1.
        (
            "9007199254740993",
            refusal(bad((0.0, 9_007_199_254_740_992.0), DataType::U64, "[0,0,0,9007199254740993]")),
        ),
    ]);
    assert!(
        bad((f64::NEG_INFINITY, 1e300), DataType::I64, "[-9223372036854775808,0,0,9223372036854775807]")
            .is_ok()
    );
    // A bound is rounded like the values are: 0.1 is within 0 to 0.1 in every width.
    for datatype in [DataType::F16, DataType::BF16, DataType::F32, DataType::F64] {
        assert!(bad((-0.1, 0.1), datatype, "[0,0.1,-0.1,0]").is_ok(), "{datatype}");
        assert!(bad((-0.1, 0.1), datatype, "[0,0.11,0,0]").is_err(), "{datatype}");
        assert!(bad((-1e300, 1e300), datatype, "[0,60000,0,0]").is_ok(), "{datatype}");
    }
    let mut signature = echo(DataType::U8, &["n"]);
    signature.inputs[0].range = Some((0.0, 7.0));
    let json =
        r#"{"inputs":[{"name":"x","datatype":"UINT8","shape":[2],"parameters":{"binary_data_size":2}}]}"#;
    check(&[("value `8` at [1]", refusal(decode_parts(&signature, json, &[7, 8])))]);
}

#[test]
fn outputs_and_parameters_are_checked() {
    let x = r#""inputs":[{"name":"x","datatype":"FP32","shape":[1],"data":[1]}]"#;
    let asked = |rest: &str| decode(&echo(DataType::F32, &["n"]), format!("{{{x},{rest}}}"));
    let bad = |rest: &str| refusal(asked(rest));
    check(&[
        ("unknown output `nope`; the model gives y", bad(r#""outputs":[{"name":"nope"}]"#)),
        ("`y` is asked for twice", bad(r#""outputs":[{"name":"y"},{"name":"y"}]"#)),
        ("an output has no `name`", bad(r#""outputs":[{}]"#)),
        ("`id` must be a string, got `7`", bad(r#""id":7"#)),
        ("`triton_x` .. reserved", bad(r#""parameters":{"triton_x":1}"#)),
        ("`timeout` is `-1`", bad(r#""parameters":{"timeout":-1}"#)),
        ("`timeout` is the string `5`", bad(r#""parameters":{"timeout":"5"}"#)),
        ("`priority` is `1.5`", bad(r#""parameters":{"priority":1.5}"#)),
        ("`binary_data_output` is `1`", bad(r#""parameters":{"binary_data_output":1}"#)),
        ("an object for `parameters`", bad(r#""parameters":[]"#)),
    ]);
    for rest in [
        r#""parameters":{"sequence_id":7}"#,
        r#""parameters":{"sequence_id":"s"}"#,
        r#""parameters":{"sequence_start":true}"#,
        r#""outputs":[{"name":"y","parameters":{"shared_memory_region":"r"}}]"#,
    ] {
        assert_eq!(asked(rest).unwrap_err().code, Code::Unimplemented, "{rest}");
    }
}

#[test]
fn messages_stay_short_whatever_was_sent() {
    let long = "é\u{7}\\u0000".repeat(50_000);
    let many: Vec<String> = (0..1000).map(|n| format!(r#"{{"name":"n{n}"}}"#)).collect();
    let bodies = [
        format!(r#"{{"inputs":[{{"name":"{}"}}]}}"#, long.replace('\u{7}', "")),
        format!(r#"{{"inputs":[{}]}}"#, many.join(",")),
        format!(r#"{{"inputs":[{{"name":"x","datatype":"{}"}}]}}"#, long.replace('\u{7}', "")),
        format!(
            r#"{{"inputs":[{{"name":"x","datatype":"FP32","shape":[1],"data":["{}"]}}]}}"#,
            long.replace('\u{7}', "")
        ),
        format!(
            r#"{{"inputs":[{{"name":"x","datatype":"FP32","shape":[1],"data":[{}]}}]}}"#,
            "9".repeat(100_000)
        ),
        format!("{{\"inputs\":[{}", "é".repeat(100_000)),
        format!(r#"{{"id":{}}}"#, "7".repeat(100_000)),
        format!(
            r#"{{"inputs":[{{"name":"x","datatype":"FP32","shape":[{}1],"data":[1]}}]}}"#,
            "1,".repeat(100_000)
        ),
    ];
    for body in bodies {
        let message = refusal(decode(&echo(DataType::F32, &["n"]), &body));
        assert!(message.chars().count() < 400, "{} characters: {message}", message.chars().count());
        assert!(!message.chars().any(char::is_control), "{message}");
    }
}
