//! Columns and JSON take the same way: equal bytes for any rows, whatever is missing.

use proptest::prelude::*;
use seatrial_features::{Column, Plan, Values};
use serde_json::{Value, json};

use crate::making::{plan, tensors};

type Row = (Option<String>, Option<f64>, Option<i64>, Option<Vec<i64>>, Option<bool>);

fn everything() -> Plan {
    let hash = json!({"step": "hash", "algorithm": "xxh64", "seed": 3, "encoding": "utf-8", "sign": "signed",
        "modulo": "floor", "buckets": 97});
    plan(
        json!({"a": ["INT64", [5]], "b": ["FP32", [5]], "c": ["BOOL", []]}),
        json!([
            {"field": "s", "type": "string", "tensor": "a", "column": 0, "steps": [hash],
             "missing": {"rule": "value", "value": -1}},
            {"field": "n", "type": "number", "tensor": "b", "column": 0,
             "steps": [{"step": "clip", "min": 0}, {"step": "log1p"}],
             "missing": {"rule": "indicator", "value": 0, "column": 1}},
            {"field": "i", "type": "integer", "tensor": "a", "column": 1,
             "steps": [{"step": "bucketise", "edges": [-5, 0, 5], "side": "left"}],
             "missing": {"rule": "replace", "with": 3}},
            {"field": "l", "type": "list", "items": "integer", "tensor": "a", "column": 2, "steps": [{"step":
             "sequence", "length": 3, "pad": 9, "pad_side": "left", "truncate_side": "right"}],
             "missing": {"rule": "value", "value": 9}},
            {"field": "l", "type": "list", "items": "integer", "tensor": "b", "column": 2,
             "steps": [{"step": "clip", "min": 0, "max": 2}, {"step": "multi_hot", "size": 3}],
             "missing": {"rule": "value", "value": 0}},
            {"field": "t", "type": "boolean", "tensor": "c", "missing": {"rule": "value", "value": 0}},
        ]),
    )
}

fn column(values: Values, valid: Vec<u8>) -> Column {
    Column { values, valid: Some(valid) }
}

fn columns(rows: &[Row]) -> Vec<(String, Column)> {
    let valid = |there: &dyn Fn(&Row) -> bool| rows.iter().map(|row| there(row).into()).collect();
    let texts: Vec<&str> = rows.iter().map(|r| r.0.as_deref().unwrap_or("")).collect();
    let lists: Vec<&[i64]> = rows.iter().map(|r| r.3.as_deref().unwrap_or_default()).collect();
    let ends = |lengths: &mut dyn Iterator<Item = usize>| {
        let mut offsets = vec![0_i64];
        lengths.for_each(|n| offsets.push(offsets.last().unwrap() + n as i64));
        offsets
    };
    let text =
        Values::Text { offsets: ends(&mut texts.iter().map(|t| t.len())), data: texts.concat().into_bytes() };
    let list = Values::List {
        offsets: ends(&mut lists.iter().map(|l| l.len())),
        items: Box::new(Column { values: Values::Int(lists.concat()), valid: None }),
    };
    vec![
        ("s".into(), column(text, valid(&|r| r.0.is_some()))),
        // NaN stands for a missing number, as in a data frame.
        (
            "n".into(),
            Column {
                values: Values::Float(rows.iter().map(|r| r.1.unwrap_or(f64::NAN)).collect()),
                valid: None,
            },
        ),
        (
            "i".into(),
            column(Values::Int(rows.iter().map(|r| r.2.unwrap_or(0)).collect()), valid(&|r| r.2.is_some())),
        ),
        ("l".into(), column(list, valid(&|r| r.3.is_some()))),
        (
            "t".into(),
            column(
                Values::Bool(rows.iter().map(|r| r.4.unwrap_or(false).into()).collect()),
                valid(&|r| r.4.is_some()),
            ),
        ),
    ]
}

fn body(rows: &[Row]) -> String {
    let instances: Vec<Value> =
        rows.iter().map(|(s, n, i, l, t)| json!({"s": s, "n": n, "i": i, "l": l, "t": t})).collect();
    json!({"instances": instances}).to_string()
}

proptest! {
    #[test]
    fn columns_and_json_give_equal_bytes(rows in prop::collection::vec(
        (
            prop::option::of(".{0,12}"),
            prop::option::of(-1e6..1e6_f64),
            prop::option::of(any::<i64>()),
            prop::option::of(prop::collection::vec(any::<i64>(), 0..6)),
            prop::option::of(any::<bool>()),
        ),
        0..20,
    )) {
        let plan = everything();
        let by_column = tensors(plan.columns(rows.len(), &columns(&rows)).unwrap());
        let by_json = tensors(plan.instances(body(&rows).as_bytes(), None).unwrap());
        prop_assert_eq!(by_column, by_json);
    }

    #[test]
    fn the_tensors_of_a_row_do_not_depend_on_its_mates(texts in prop::collection::vec(".{0,8}", 1..10)) {
        let plan = everything();
        let rows: Vec<Row> = texts.iter().map(|t| (Some(t.clone()), Some(1.0), Some(1), None, None)).collect();
        let whole = tensors(plan.instances(body(&rows).as_bytes(), None).unwrap());
        let width = whole[0].1.data.len() / rows.len();
        for (n, row) in rows.iter().enumerate() {
            let alone = tensors(plan.instances(body(std::slice::from_ref(row)).as_bytes(), None).unwrap());
            prop_assert_eq!(&whole[0].1.data[n * width..][..width], &alone[0].1.data[..]);
        }
    }

    #[test]
    fn no_body_makes_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = everything().instances(&bytes, Some(4));
    }

    #[test]
    fn no_near_body_makes_it_panic(
        value in "[\\[\\]{}\",:0-9eE+.a-z\\\\-]{0,30}",
        field in "[snilt]",
    ) {
        let _ = everything().instances(format!("{{\"instances\":[{{\"{field}\":{value}}}]}}").as_bytes(), Some(4));
    }
}
