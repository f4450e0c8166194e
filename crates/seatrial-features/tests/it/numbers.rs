//! Steps from number to number, and the rules for a missing one.

use serde_json::{Value, json};

use crate::making::{numbers, of, one, plan, tensors, try_one};

fn check(datatype: &str, steps: Value, cases: &[(f64, f64)]) {
    let plan = one(datatype, json!({"type": "number", "steps": steps}));
    for (value, expected) in cases {
        assert_eq!(of(&plan, &json!(value)), Ok(vec![*expected]), "{value}");
    }
}

#[test]
fn each_step_does_what_its_name_says() {
    let edges = |side: &str| json!([{"step": "bucketise", "edges": [18, 25, 35], "side": side, "offset": 1}]);
    check("INT64", edges("right"), &[(17.0, 1.0), (18.0, 2.0), (24.9, 2.0), (35.0, 4.0), (99.0, 4.0)]);
    check("INT64", edges("left"), &[(17.0, 1.0), (18.0, 1.0), (18.1, 2.0), (35.0, 3.0)]);
    check("FP32", json!([{"step": "clip", "min": 0, "max": 2.5}]), &[(-1.0, 0.0), (1.0, 1.0), (3.0, 2.5)]);
    check("FP64", json!([{"step": "log1p"}]), &[(0.0, 0.0), (1.0, std::f64::consts::LN_2)]);
    check("FP64", json!([{"step": "standardise", "mean": 2, "std": 4}]), &[(2.0, 0.0), (0.0, -0.5)]);
    check("FP64", json!([{"step": "min_max", "min": -1, "max": 3}]), &[(-1.0, 0.0), (0.0, 0.25), (3.0, 1.0)]);
    check(
        "FP32",
        json!([{"step": "clip", "min": 0}, {"step": "log1p"}, {"step": "min_max", "min": 0, "max": 2}]),
        &[(-5.0, 0.0)],
    );
}

#[test]
fn whole_numbers_stay_exact_beyond_what_a_double_holds() {
    let plan = one("INT64", json!({"type": "integer"}));
    let body = br#"{"instances": [{"f": 9007199254740993}, {"f": -9223372036854775808}, {"f": 260.0}]}"#;
    let made = tensors(plan.instances(body, None).unwrap());
    let whole: Vec<i64> = made[0].1.data.as_chunks::<8>().0.iter().map(|b| i64::from_le_bytes(*b)).collect();
    assert_eq!(whole, [9_007_199_254_740_993, i64::MIN, 260]);
}

#[test]
fn narrow_tensors_round_once_and_refuse_what_they_cannot_hold() {
    let single = one("FP32", json!({"type": "number"}));
    assert_eq!(of(&single, &json!(0.1)), Ok(vec![f64::from(0.1_f32)]));
    assert!(of(&single, &json!(1e39)).unwrap_err().contains("expected a value that FP32 can hold"));
    let byte = one("INT8", json!({"type": "integer"}));
    assert_eq!(of(&byte, &json!(-128)), Ok(vec![-128.0]));
    assert!(of(&byte, &json!(128)).unwrap_err().contains("`128`, expected a value that INT8 can hold"));
    let flag = one("BOOL", json!({"type": "boolean"}));
    assert_eq!(of(&flag, &json!(true)), Ok(vec![1.0]));
    let whole = one("INT64", json!({"type": "number"}));
    assert_eq!(of(&whole, &json!(5.0)), Ok(vec![5.0]));
    assert!(
        of(&whole, &json!(5.5)).unwrap_err().contains("got `5.5`, expected a whole number for tensor `t`")
    );
}

#[test]
fn missing_values_follow_the_rule_and_are_counted() {
    let plan = plan(
        json!({"x": ["FP32", [5]]}),
        json!([
            {"field": "a", "type": "number", "tensor": "x", "column": 0, "missing": {"rule": "value", "value": -1}},
            {"field": "b", "type": "number", "tensor": "x", "column": 1,
             "missing": {"rule": "indicator", "value": 0, "column": 4}},
            {"field": "c", "type": "string", "tensor": "x", "column": 2, "missing_texts": ["", "NA"],
             "steps": [{"step": "to_number"}], "missing": {"rule": "replace", "with": "7"}},
            {"tensor": "x", "column": 3, "steps": [{"step": "constant", "value": 0.5}]},
        ]),
    );
    let body =
        json!({"instances": [{"a": 3, "b": 4, "c": "5"}, {"a": null, "c": "NA"}, {"c": ""}]}).to_string();
    let made = tensors(plan.instances(body.as_bytes(), None).unwrap());
    assert_eq!(
        numbers(&made[0].1),
        [3.0, 4.0, 5.0, 0.5, 0.0, -1.0, 0.0, 7.0, 0.5, 1.0, -1.0, 0.0, 7.0, 0.5, 1.0]
    );
    let missing: Vec<u64> = plan.counts().into_iter().map(|c| c.missing).collect();
    assert_eq!(missing, [2, 2, 2]);
}

#[test]
fn texts_become_numbers_only_when_they_are_decimal() {
    let plan = one("FP64", json!({"type": "string", "steps": [{"step": "to_number"}]}));
    for (text, number) in [("260.0", 260.0), ("-3", -3.0), ("1e3", 1000.0), ("+5", 5.0)] {
        assert_eq!(of(&plan, &json!(text)), Ok(vec![number]));
    }
    for text in ["nan", "inf", "0x10", "1,5", " 1", "1_000", "1e999"] {
        let refusal = of(&plan, &json!(text)).unwrap_err();
        assert!(refusal.contains("expected a decimal number in the text"), "{refusal}");
    }
}

#[test]
fn steps_that_cannot_follow_each_other_are_refused() {
    let cases = [
        (json!({"type": "string"}), "a text must become a number"),
        (json!({"type": "number", "steps": [{"step": "to_text"}]}), "expected type `integer`"),
        (json!({"type": "integer", "steps": [{"step": "to_number"}]}), "put `to_text` before them"),
        (
            json!({"type": "number", "steps": [{"step": "log1p"}, {"step": "slice", "start": 0, "length": 1}]}),
            "a step stands in the wrong place",
        ),
        (json!({"type": "number", "steps": [{"step": "log1p"}]}), "takes whole numbers"),
        (json!({"type": "number", "missing": {"rule": "value", "value": 0.5}}), "takes whole numbers"),
        (
            json!({"type": "number", "steps": [{"step": "bucketise", "edges": [2, 1], "side": "left"}]}),
            "ascending",
        ),
        (
            json!({"type": "number", "steps": [{"step": "clip", "min": 2, "max": 1}]}),
            "expected at most `max`",
        ),
        (json!({"type": "number", "steps": [{"step": "standardise", "mean": 0, "std": 0}]}), "positive"),
        (json!({"type": "number", "steps": [{"step": "min_max", "min": 1, "max": 1}]}), "more than `min`"),
        (json!({"type": "number", "steps": [{"step": "bucketize"}]}), "unknown variant `bucketize`"),
        (json!({"steps": [{"step": "constant", "value": 1}]}), "leave out `field`"),
        (json!({"type": "list", "items": "integer"}), "must end in `multi_hot` or `sequence`"),
        (json!({"type": "integer", "items": "integer"}), "`items` goes with type `list`"),
        (json!({"type": "integer", "column": 3}), "has no column 3"),
    ];
    for (feature, expected) in cases {
        let refusal = try_one("INT64", feature.clone()).unwrap_err();
        assert!(refusal.contains(expected), "{feature} gave: {refusal}");
    }
}
