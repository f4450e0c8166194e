//! Hashes give the buckets of other implementations, for each way of reading them.

use serde_json::{Value, json};

use crate::making::{of, one, shared, try_one};

fn bucket(text: &str, algorithm: &str, sign: &str, modulo: &str, buckets: u64) -> f64 {
    let step = json!({"step": "hash", "algorithm": algorithm, "seed": 0, "encoding": "utf-8", "sign": sign,
        "modulo": modulo, "buckets": buckets});
    of(&one("INT64", json!({"type": "string", "steps": [step], "missing_texts": []})), &json!(text)).unwrap()
        [0]
}

#[test]
fn shared_vectors_are_exact() {
    let Some(path) = shared("cases/features/hash_vectors.json") else { return };
    let vectors: Vec<Value> = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    assert_eq!(vectors.len(), 20);
    for vector in vectors {
        let text = vector["text"].as_str().unwrap();
        let cases = [
            ("murmur3_32", "unsigned", "floor", 1 << 32, "murmur3_32_unsigned"),
            ("murmur3_32_spark", "unsigned", "floor", 1 << 32, "spark_style_tail"),
            ("murmur3_32", "unsigned", "floor", 1000, "bucket_1000_unsigned"),
            ("murmur3_32", "signed", "floor", 1000, "bucket_1000_python_mod_of_signed"),
            ("murmur3_32", "signed", "abs", 1000, "bucket_1000_c_or_java_abs_of_signed"),
        ];
        for (algorithm, sign, modulo, buckets, key) in cases {
            let found = bucket(text, algorithm, sign, modulo, buckets);
            assert_eq!(Some(found), vector[key].as_f64(), "{key} of {text:?}");
        }
    }
}

#[test]
fn xxh64_is_the_published_one() {
    // Of the specification's test values: the empty input, and `abc` as xxhsum prints it.
    let low = |text: &str| bucket(text, "xxh64", "unsigned", "floor", 1 << 32) as u64;
    assert_eq!(low(""), 0xef46_db37_51d8_e999 & 0xffff_ffff);
    assert_eq!(low("abc"), 0x44bc_2cf5_ad77_0999 & 0xffff_ffff);
}

#[test]
fn seed_encoding_and_offset_count() {
    let of_step = |change: (&str, Value)| {
        let mut step = json!({"step": "hash", "algorithm": "murmur3_32", "seed": 0, "encoding": "utf-8",
            "sign": "unsigned", "modulo": "floor", "buckets": 1_000_000});
        step[change.0] = change.1;
        of(&one("INT64", json!({"type": "string", "steps": [step]})), &json!("foo")).unwrap()[0]
    };
    let plain = of_step(("seed", json!(0)));
    assert_eq!(plain, 58_784.0);
    assert_eq!(of_step(("offset", json!(7))), plain + 7.0);
    assert_ne!(of_step(("seed", json!(1))), plain);
    assert_ne!(of_step(("encoding", json!("utf-16-le"))), plain);
}

#[test]
fn numbers_are_hashed_as_their_digits() {
    let hash = json!({"step": "hash", "algorithm": "murmur3_32", "seed": 0, "encoding": "utf-8",
        "sign": "unsigned", "modulo": "floor", "buckets": 1000});
    let text = one("INT64", json!({"type": "string", "steps": [hash]}));
    let digits = one("INT64", json!({"type": "integer", "steps": [{"step": "to_text"}, hash]}));
    for number in [json!(0), json!(-7), json!(260.0), json!(u64::MAX)] {
        let spelled = if number == json!(260.0) { "260".to_owned() } else { number.to_string() };
        assert_eq!(of(&digits, &number), of(&text, &json!(spelled)), "{number}");
    }
}

#[test]
fn what_cannot_be_a_hash_is_named() {
    let step = |change: (&str, Value)| {
        let mut step = json!({"step": "hash", "algorithm": "murmur3_32", "seed": 0, "encoding": "utf-8",
            "sign": "unsigned", "modulo": "floor", "buckets": 10});
        step[change.0] = change.1;
        try_one("INT64", json!({"type": "string", "steps": [step]})).unwrap_err()
    };
    assert!(step(("buckets", json!(0))).contains("`buckets` is 0: expected 1 or more"));
    assert!(step(("seed", json!(1_u64 << 32))).contains("`seed` is 4294967296: expected at most 4294967295"));
    assert!(step(("algorithm", json!("md5"))).contains("unknown variant `md5`"));
    assert!(step(("sign", json!(null))).contains("invalid type"));
}
