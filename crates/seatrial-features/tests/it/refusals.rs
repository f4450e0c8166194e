//! What a client does wrong is named: the instance, the field, what came, what was expected.

use seatrial_types::Code;
use serde_json::json;

use crate::making::plan;

#[test]
fn bodies_that_are_no_instances() {
    let plan = plan(
        json!({"t": ["FP32", [2], [0, 100]]}),
        json!([{"field": "age", "type": "integer", "tensor": "t", "column": 0},
            {"field": "price", "type": "number", "tensor": "t", "column": 1, "steps": [{"step": "log1p"}]}]),
    );
    let good = r#"{"age": 3, "price": 9.9}"#;
    let cases = [
        ("", "the JSON is wrong"),
        ("[]", "expected an object with `instances`"),
        ("{}", "the body has no `instances`, expected a list of objects"),
        (r#"{"inputs": []}"#, "there is no key `inputs` in a body, expected `instances`"),
        (r#"{"instances": {}}"#, "expected a list of objects for `instances`"),
        (r#"{"instances": [7]}"#, "expected an object for instance 0"),
        (r#"{"instances": [GOOD, {"age": 1, "price": 2} x]}"#, "the JSON is wrong"),
        (r#"{"instances": [GOOD]} x"#, "trailing characters"),
        (r#"{"instances": [GOOD], "instances": []}"#, "`instances` is given twice"),
        (r#"{"instances": [GOOD, {"age": 3}]}"#, "instance 1, field `price`: got nothing, expected a value"),
        (
            r#"{"instances": [GOOD, {"age": "3", "price": 1}]}"#,
            "instance 1, field `age`: got the string `3`, expected a whole number",
        ),
        (r#"{"instances": [{"age": 3.5, "price": 1}]}"#, "got `3.5`, expected a whole number"),
        (r#"{"instances": [{"age": true, "price": 1}]}"#, "got `true`, expected a whole number"),
        (r#"{"instances": [{"age": {"a": [1]}, "price": 1}]}"#, "got an object, expected a whole number"),
        (r#"{"instances": [{"age": [1, 2], "price": 1}]}"#, "got a list of 2 beginning with `1`"),
        (
            r#"{"instances": [{"age": 1, "price": -1}]}"#,
            "got `-1.0`, expected a number above -1 for its logarithm",
        ),
        (
            r#"{"instances": [{"age": 101, "price": 1}]}"#,
            "got `101`, expected a value of 0 to 100 in tensor `t`",
        ),
        (r#"{"instances": [{"age": 1, "price": 1e999}]}"#, "number out of range"),
        (r#"{"instances": [{"age": 1, "price": NaN}]}"#, "the JSON is wrong"),
        (
            r#"{"instances": [{"age": 1, "cost": 1}]}"#,
            "instance 0: there is no field `cost`, expected `age`, `price`",
        ),
        (r#"{"instances": [{"age": 1, "age": 2, "price": 1}]}"#, "instance 0: field `age` is given twice"),
        (r#"{"instances": [GOOD, GOOD, GOOD, GOOD]}"#, "more than 3 `instances`"),
    ];
    for (body, expected) in cases {
        let error = plan.instances(body.replace("GOOD", good).as_bytes(), Some(3)).unwrap_err();
        assert_eq!(error.code, Code::InvalidArgument, "{body}");
        assert!(error.message.contains(expected), "{body} gave: {error}");
    }
    let taken = format!(
        r#"{{"signature_name": "serving_default", "instances": [{good}, {{"\u0061ge": 1, "price": 0}}]}}"#
    );
    assert_eq!(plan.instances(taken.as_bytes(), Some(3)).unwrap().rows(), 2);
    assert_eq!(plan.instances(br#"{"instances": []}"#, Some(3)).unwrap().by_length().len(), 0);
}

#[test]
fn a_client_s_text_is_shortened_and_made_printable() {
    let plan = plan(json!({"t": ["FP32", [1]]}), json!([{"field": "f", "type": "number", "tensor": "t"}]));
    let body = json!({"instances": [{"f": format!("\n{}", "x".repeat(1000))}]}).to_string();
    let message = plan.instances(body.as_bytes(), None).unwrap_err().message;
    assert!(message.contains(r"`\nxxx") && message.contains('…') && message.len() < 200, "{message}");
}

#[test]
fn a_spec_that_leaves_a_column_open_or_fills_it_twice_is_refused() {
    let feature = |field: &str, column: usize| json!({"field": field, "type": "number", "tensor": "t", "column": column});
    let of = |features| crate::making::try_plan(json!({"t": ["FP32", [2]]}), features).unwrap_err();
    assert!(of(json!([feature("a", 0)])).contains("tensor `t`: no feature fills column 1"));
    assert!(of(json!([feature("a", 0), feature("b", 0)])).contains("more than one feature fills column 0"));
    assert!(of(json!([feature("a", 0), feature("b", 2)])).contains("has no column 2: it has 2"));
    let mut other = feature("a", 0);
    other["tensor"] = json!("u");
    assert!(of(json!([other])).contains("feature 0 (field `a`): there is no tensor `u`: expected `t`"));
    let free = crate::making::try_plan(json!({"t": ["FP32", [null]]}), json!([feature("a", 0)])).unwrap_err();
    assert!(free.contains("goes with `tokenizer`"), "{free}");
    let text = crate::making::try_plan(json!({"t": ["BYTES", [1]]}), json!([feature("a", 0)])).unwrap_err();
    assert!(text.contains("tensor `t` is BYTES: features make integers, FP32, FP64 and BOOL"), "{text}");
}
