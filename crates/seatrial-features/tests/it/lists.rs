//! Vocabularies, lists to rows of 0 and 1, lists to rows of fixed length.

use serde_json::{Value, json};

use crate::making::{numbers, plan, plan_in, tensors};

fn row(features: &Value, width: usize, value: &Value) -> Result<Vec<f64>, String> {
    let plan = crate::making::try_plan(json!({"t": ["INT64", [width]]}), features.clone())?;
    let body = json!({"instances": [{"f": value}]}).to_string();
    plan.instances(body.as_bytes(), None).map(|p| numbers(&tensors(p)[0].1)).map_err(|e| e.message)
}

fn genres(unknown: Value) -> Value {
    json!([{"field": "f", "type": "string", "tensor": "t", "steps": [
        {"step": "split", "separator": " "},
        {"step": "vocabulary", "words": ["Action", "Drama", "War"], "unknown": unknown},
        {"step": "multi_hot", "size": 3, "min": 1, "max": 2}]}])
}

#[test]
fn words_become_a_row_of_zero_and_one() {
    let skip = genres(json!({"rule": "skip"}));
    assert_eq!(row(&skip, 3, &json!("War Action")), Ok(vec![1.0, 0.0, 1.0]));
    assert_eq!(row(&skip, 3, &json!("Drama Horror")), Ok(vec![0.0, 1.0, 0.0]));
    assert!(
        row(&skip, 3, &json!("Horror")).unwrap_err().contains("got 0 that count, expected 1 to 2 entries")
    );
    assert!(row(&skip, 3, &json!("War Action Drama")).unwrap_err().contains("got 3 that count"));
    let error = genres(json!({"rule": "error"}));
    let refusal = row(&error, 3, &json!("War Horror")).unwrap_err();
    assert_eq!(refusal, "instance 0, field `f`: got the entry `Horror`, expected a word of the vocabulary");
    let outside = genres(json!({"rule": "index", "index": 3}));
    assert!(
        row(&outside, 3, &json!("Horror"))
            .unwrap_err()
            .contains("got the index `3`, expected indexes of 0 to 2")
    );
}

#[test]
fn sequences_are_cut_and_filled_on_the_named_sides() {
    let of = |pad: &str, cut: &str, value: Value| {
        let features = json!([{"field": "f", "type": "list", "items": "integer", "tensor": "t", "steps": [
            {"step": "sequence", "length": 3, "pad": -1, "pad_side": pad, "truncate_side": cut}]}]);
        row(&features, 3, &value).unwrap()
    };
    assert_eq!(of("right", "right", json!([1, 2])), [1.0, 2.0, -1.0]);
    assert_eq!(of("left", "right", json!([1, 2])), [-1.0, 1.0, 2.0]);
    assert_eq!(of("right", "right", json!([1, 2, 3, 4])), [1.0, 2.0, 3.0]);
    assert_eq!(of("right", "left", json!([1, 2, 3, 4])), [2.0, 3.0, 4.0]);
    assert_eq!(of("left", "left", json!([])), [-1.0, -1.0, -1.0]);
}

#[test]
fn a_history_of_joined_ids_is_hashed_entry_by_entry() {
    let hash = json!({"step": "hash", "algorithm": "murmur3_32", "seed": 0, "encoding": "utf-8", "sign": "unsigned",
        "modulo": "floor", "buckets": 1000, "offset": 1});
    let features = json!([{"field": "f", "type": "string", "tensor": "t", "steps": [
        {"step": "split", "separator": "^"}, hash,
        {"step": "sequence", "length": 4, "pad": 0, "pad_side": "left", "truncate_side": "left"}]}]);
    assert_eq!(row(&features, 4, &json!("foo^test")), Ok(vec![0.0, 0.0, 785.0, 308.0]));
    assert!(row(&features, 4, &json!(["foo"])).unwrap_err().contains("expected a string"));
}

#[test]
fn vocabularies_are_read_from_the_package_and_count_what_they_do_not_know() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("vocab")).unwrap();
    std::fs::write(folder.path().join("vocab/user.txt"), "unknown\nu1\nü 2\n").unwrap();
    let feature = |file: &str| {
        json!([{"field": "f", "type": "string", "tensor": "t", "steps": [
            {"step": "vocabulary", "file": file, "unknown": {"rule": "index", "index": 0}}]}])
    };
    let of = |file: &str| plan_in(json!({"t": ["INT64", [1]]}), feature(file), folder.path());
    let plan = of("vocab/user.txt").unwrap();
    let body = json!({"instances": [{"f": "u1"}, {"f": "ü 2"}, {"f": "u3"}, {"f": "u1 "}]}).to_string();
    assert_eq!(numbers(&tensors(plan.instances(body.as_bytes(), None).unwrap())[0].1), [1.0, 2.0, 0.0, 0.0]);
    assert_eq!(plan.counts()[0].unknown, 2);
    let broken = [
        ("a\nb\na\n", "line 3: the word `a` stands in line 1 already"),
        ("a\r\nb\r\n", "line 1: ends with a carriage return"),
        ("", "holds no word"),
    ];
    for (text, expected) in broken {
        std::fs::write(folder.path().join("vocab/user.txt"), text).unwrap();
        let refusal = of("vocab/user.txt").unwrap_err();
        assert!(refusal.contains(expected), "{refusal}");
        assert!(refusal.starts_with("feature 0 (field `f`): "), "{refusal}");
    }
    std::fs::write(folder.path().join("vocab/user.txt"), b"\xff\n").unwrap();
    assert!(of("vocab/user.txt").unwrap_err().contains("is not UTF-8 at byte 0"));
    for outside in ["../user.txt", "/etc/passwd", "", "vocab/../../x"] {
        assert!(
            of(outside).unwrap_err().contains("expected the path of a file inside the package"),
            "{outside}"
        );
    }
    assert!(of("vocab/none.txt").unwrap_err().contains("`vocab/none.txt` cannot be read"));
}

#[test]
fn an_unknown_word_can_go_to_a_bucket_behind_the_known() {
    let hash = json!({"rule": "hash", "algorithm": "murmur3_32", "seed": 0, "encoding": "utf-8", "sign": "unsigned",
        "modulo": "floor", "buckets": 10, "offset": 2});
    let plan = plan(
        json!({"t": ["INT64", [1]]}),
        json!([{"field": "f", "type": "string", "tensor": "t",
            "steps": [{"step": "vocabulary", "words": ["a", "b"], "unknown": hash}]}]),
    );
    let body = json!({"instances": [{"f": "b"}, {"f": "foo"}]}).to_string();
    assert_eq!(numbers(&tensors(plan.instances(body.as_bytes(), None).unwrap())[0].1), [1.0, 2.0 + 4.0]);
}

#[test]
fn a_slice_counts_characters() {
    let features = json!([{"field": "f", "type": "string", "tensor": "t", "steps": [
        {"step": "slice", "start": 1, "length": 1},
        {"step": "vocabulary", "words": ["ü", "b"], "unknown": {"rule": "index", "index": -1}}]}]);
    for (text, place) in [("aüb", 0.0), ("abb", 1.0), ("a", -1.0), ("x\u{1f600}", -1.0)] {
        assert_eq!(row(&features, 1, &json!(text)), Ok(vec![place]), "{text}");
    }
}
