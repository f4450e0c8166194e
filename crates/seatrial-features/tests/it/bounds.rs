//! Columns that lie about their lengths are refused, not read beyond.

use seatrial_features::{Column, Values};
use serde_json::json;

use crate::making::one;

#[test]
fn short_columns_and_wrong_offsets_are_refused() {
    let text = one("INT64", json!({"type": "string", "steps": [{"step": "to_number"}]}));
    let number = one("FP64", json!({"type": "number"}));
    let of = |offsets: Vec<i64>, data: &[u8]| Values::Text { offsets, data: data.to_vec() };
    let cases = [
        (&number, Values::Float(vec![1.0])),
        (&number, Values::Int(vec![1])),
        (&text, of(vec![0, 1], b"1")),
        (&text, of(vec![0, 1, 9], b"12")),
        (&text, of(vec![0, -1, 2], b"12")),
        (&text, of(vec![2, 1, 2], b"12")),
        (&text, of(vec![0, 1, 2], b"1\xff")),
    ];
    for (plan, values) in cases {
        let shown = format!("{values:?}");
        let columns = [("f".to_owned(), Column { values, valid: None })];
        let refusal = plan.columns(2, &columns).unwrap_err().message;
        assert!(refusal.contains("is cut short or no UTF-8"), "{shown} gave: {refusal}");
    }
}

#[test]
fn columns_of_no_field_and_the_same_twice_are_refused() {
    let plan = one("FP64", json!({"type": "number"}));
    let column = || Column { values: Values::Float(vec![1.0]), valid: None };
    let refusal = plan.columns(1, &[("g".to_owned(), column())]).unwrap_err().message;
    assert_eq!(refusal, "there is no field `g`, expected `f`");
    let twice = [("f".to_owned(), column()), ("f".to_owned(), column())];
    assert_eq!(plan.columns(1, &twice).unwrap_err().message, "field `f` is given twice");
    let refusal =
        plan.columns(1, &[("f".to_owned(), Column { values: Values::Nothing, valid: None })]).unwrap_err();
    assert!(refusal.message.contains("instance 0, field `f`: got nothing"), "{}", refusal.message);
}
