//! The bodies of the shared HTTP cases that the decoder decides: public symptoms of comparable systems.
//! The folder lies beside the repository; without it the test says so and passes.

use std::path::{Path, PathBuf};

use bytes::Bytes;
use seatrial_protocol::{InferCall, codings::inflate, decode_infer};
use seatrial_types::{Code, DataType, Error, Signature};

use crate::signatures::{echo, f32s, i64s, spec, strings};

fn folder() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/cases/http");
    if !folder.is_dir() {
        eprintln!("SKIPPED: {} is not here", folder.display());
        return None;
    }
    Some(folder)
}

/// The signature of a model of the cases, as far as its requests show it.
fn signature(model: &str) -> Option<Signature> {
    use DataType::{Bool, Bytes, F16, F32, I64, U8, U64};
    let mut ids = echo(I64, &["batch", "k"]);
    ids.inputs[0].name = "ids".into();
    ids.inputs[0].range = Some((0.0, 7.0));
    let mut odd = echo(F32, &["n"]);
    odd.inputs[0].name = "serving_default_input:0".into();
    let two = Signature {
        inputs: vec![spec("a", F32, &["batch_a", "2"]), spec("b", F32, &["batch_b", "2"])],
        outputs: echo(F32, &["n", "2"]).outputs,
    };
    Some(match model {
        "echo_float" | "echo%5Ffloat" | "nonzero_rows" => echo(F32, &["n", "m"]),
        "echo_float16" => echo(F16, &["n", "m"]),
        "echo_string" => echo(Bytes, &["n", "m"]),
        "echo_bool" => echo(Bool, &["n", "m"]),
        "echo_uint8" => echo(U8, &["n", "m"]),
        "echo_uint64" => echo(U64, &["n", "m"]),
        "int64_add1" => echo(I64, &["n"]),
        "nan_inf_out" => echo(F32, &["n"]),
        "zipmap_int64" => echo(F32, &["n", "3"]),
        "scalar_in" => echo(F32, &[]),
        "embed" => ids,
        "odd_names" => odd,
        "two_batch_symbols" => two,
        _ => return None,
    })
}

/// A raw request taken apart.
struct Asked {
    model: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

/// `None` where the wire or the route decides.
fn request(raw: &[u8]) -> Option<Asked> {
    let end = raw.windows(4).position(|w| w == b"\r\n\r\n")?;
    let head = String::from_utf8(raw[..end].to_vec()).ok()?;
    let mut lines = head.trim_start().lines();
    let path = lines.next()?.split(' ').nth(1)?;
    let mut parts = path.split('/').skip(3);
    let (model, verb) = (parts.next()?, parts.next()?);
    if !verb.starts_with("infer") {
        return None;
    }
    let headers = lines.filter_map(|l| l.split_once(": ")).map(|(k, v)| (k.to_lowercase(), v.to_owned()));
    Some(Asked { model: model.to_owned(), headers: headers.collect(), body: raw[end + 4..].to_vec() })
}

/// What the decoder says to a case, or `None` where others decide.
fn outcome(folder: &Path, case: &str) -> Option<Result<InferCall, Error>> {
    let raw = std::fs::read(folder.join(format!("{case}.http"))).unwrap();
    let Asked { model, headers, mut body } = request(&raw)?;
    let header = |name: &str| headers.iter().find(|(k, _)| k == name).map(|(_, v)| v.as_str());
    if header("transfer-encoding").is_some() {
        return None;
    }
    let length: usize = header("content-length").and_then(|n| n.parse().ok())?;
    body.truncate(length);
    let signature = signature(&model)?;
    let body = match header("content-encoding") {
        Some(coding) => inflate(coding, &body, 1 << 20),
        None => Ok(body),
    };
    let json = header("inference-header-content-length").and_then(|n| n.parse().ok());
    Some(body.and_then(|body| decode_infer(&signature, Bytes::from(body), json)))
}

/// Cases whose answer is not the decoder's: routes, methods, and what never reaches a body.
const OTHERS: [&str; 14] = [
    "ok_chunked",
    "bad_chunk_size_huge",
    "bad_te_unknown",
    "bad_cl_over_2g",
    "bad_cl_too_small",
    "bad_header_huge",
    "bad_header_many",
    "bad_tls_on_http",
    "bad_h2_preface",
    "bad_method_get",
    "bad_model_unknown",
    "bad_version_unknown",
    "bad_version_text",
    "bad_path_dotdot",
];

#[test]
fn the_cases_that_the_decoder_decides_come_out_right() {
    let Some(folder) = folder() else { return };
    let table = std::fs::read_to_string(folder.join("EXPECT.tsv")).unwrap();
    let mut decided = 0;
    for case in table.lines().skip(1).filter_map(|line| line.split('\t').next()) {
        if OTHERS.contains(&case) {
            continue;
        }
        let outcome = outcome(&folder, case).unwrap_or_else(|| panic!("{case} was not decoded"));
        decided += 1;
        match (case.starts_with("ok_"), outcome) {
            (true, outcome) => assert!(outcome.is_ok(), "{case}: {outcome:?}"),
            (false, Ok(call)) => panic!("{case} was taken: {call:?}"),
            (false, Err(error)) => {
                let due =
                    if case == "bad_ce_unknown" { Code::UnsupportedMediaType } else { Code::InvalidArgument };
                assert_eq!(error.code, due, "{case}: {error}");
            }
        }
    }
    assert!(decided >= 55, "only {decided} cases were decided here");
}

#[test]
fn what_the_good_cases_carry_is_exact() {
    let Some(folder) = folder() else { return };
    let input = |case: &str| outcome(&folder, case).unwrap().unwrap().inputs.remove(0);
    for case in ["ok_flat", "ok_nested", "ok_gzip", "ok_deflate_zlib"] {
        assert_eq!((input(case).shape, f32s(&input(case))), (vec![1, 2], vec![1.0, 2.0]), "{case}");
    }
    assert_eq!(
        i64s(&input("ok_big_ints")),
        [9_007_199_254_740_993, -9_007_199_254_740_993, 9_223_372_036_854_775_806]
    );
    assert_eq!(input("ok_uint64_max").data, [[255_u8; 8], [0; 8]].concat());
    assert_eq!(input("ok_bool").data, [1, 0].as_slice());
    assert_eq!(strings(&input("ok_bytes_escape")), ["😀".as_bytes(), b"/"]);
    assert_eq!(
        strings(&input("ok_bytes_unicode")),
        ["café 👨\u{200d}👩\u{200d}👧".as_bytes(), "北京\0x".as_bytes()]
    );
    assert_eq!(strings(&input("ok_binary_bytes")), [b"\xff\x00".as_slice(), b"a"]);
    assert_eq!((input("ok_scalar").shape, f32s(&input("ok_scalar"))), (vec![], vec![3.5]));
    assert_eq!((input("ok_zero_rows").shape, input("ok_zero_rows").data.len()), (vec![0, 2], 0));
    assert_eq!(input("ok_fp16_json").data, [0x00, 0x3e, 0x00, 0xb4].as_slice());
    assert_eq!(input("ok_binary").data.len(), 8);
    let message = |case: &str| outcome(&folder, case).unwrap().unwrap_err().message;
    for (case, words) in [
        ("bad_missing_input", "missing input `b`"),
        ("bad_extra_input", "unknown input `zzz`"),
        ("bad_wrong_dtype", "INT64, expected FP32"),
        ("bad_oov_in_batch", "`8` at [1, 0]"),
        ("bad_negative_id", "`-1` at [0, 0]"),
        ("bad_unequal_rows", "`a` has 2 rows and input `b` has 3"),
    ] {
        assert!(message(case).contains(words), "{case}: {}", message(case));
    }
}
