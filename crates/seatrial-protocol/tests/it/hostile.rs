//! Bodies from enemies: whatever the bytes, there is an answer, and the refusal is valid JSON.

use bytes::Bytes;
use proptest::{collection::vec, prelude::*, sample::Index};
use seatrial_protocol::{codings::inflate, decode_infer, error_body};
use seatrial_types::{DataType, Dim, Error, Signature};

use crate::signatures::{echo, pair, spec};

fn everything() -> Signature {
    let inputs = DataType::ALL.into_iter().map(|t| spec(t.name(), t, &["n"])).collect();
    Signature { inputs, outputs: echo(DataType::F32, &["n"]).outputs }
}

fn good_bodies() -> Vec<(Signature, Vec<u8>, Option<usize>)> {
    let value = |t| match t {
        DataType::Bool => "true",
        DataType::Bytes => r#""a\u00e9\ud83d\ude00""#,
        DataType::F32 => r#""-Infinity""#,
        DataType::F64 => "-1.25e-3",
        _ => "7",
    };
    let inputs: Vec<String> = DataType::ALL
        .into_iter()
        .map(|t| format!(r#"{{"name":"{t}","datatype":"{t}","shape":[2],"data":[{0}, {0}]}}"#, value(t)))
        .collect();
    let all = format!(
        r#"{{"id":"a","inputs":[{}],"outputs":[{{"name":"y","parameters":{{"binary_data":true,"classification":2}}}}],"parameters":{{"timeout":5,"x":[{{}}]}}}}"#,
        inputs.join(",")
    );
    let json = r#"{"inputs":[{"name":"b","shape":[1,2],"datatype":"INT64","parameters":{"binary_data_size":16}},{"data":[[1,2]],"name":"a","datatype":"FP32","shape":[1,2]}]}"#;
    let mixed = [json.as_bytes(), &[9; 16]].concat();
    let strings =
        r#"{"inputs":[{"name":"x","shape":[2],"datatype":"BYTES","parameters":{"binary_data_size":11}}]}"#;
    let text = [strings.as_bytes(), b"\x02\0\0\0ab\x01\0\0\0c"].concat();
    vec![
        (everything(), all.into_bytes(), None),
        (pair(), mixed, Some(json.len())),
        (echo(DataType::Bytes, &["n"]), text, Some(strings.len())),
    ]
}

/// What comes out is right in itself: sizes fit, and errors are JSON.
fn judge(signature: &Signature, outcome: Result<seatrial_protocol::InferCall, Error>) {
    match outcome {
        Ok(call) => {
            assert_eq!(call.inputs.len(), signature.inputs.len());
            for (tensor, spec) in call.inputs.iter().zip(&signature.inputs) {
                assert_eq!(tensor.datatype, spec.datatype);
                if let Some(width) = tensor.datatype.size() {
                    assert_eq!(tensor.data.len(), tensor.elements() * width);
                }
                let fits = |(size, dim): (&usize, &Dim)| !matches!(dim, Dim::Fixed(n) if n != size);
                assert!(tensor.shape.iter().zip(&spec.shape).all(fits));
            }
        }
        Err(error) => {
            assert!(error.message.chars().count() < 600, "{}", error.message);
            let body: serde_json::Value = serde_json::from_slice(&error_body(&error)).unwrap();
            assert_eq!(body["error"], error.message);
        }
    }
}

#[test]
fn the_unharmed_bodies_are_good() {
    for (signature, body, length) in good_bodies() {
        decode_infer(&signature, Bytes::from(body), length).unwrap();
    }
}

#[test]
fn every_cut_and_every_flipped_byte_gets_an_answer() {
    for (signature, body, length) in good_bodies() {
        for at in 0..body.len() {
            let cut = Bytes::copy_from_slice(&body[..at]);
            let outcome = decode_infer(&signature, cut, length.map(|n| n.min(at)).filter(|n| *n > 0));
            assert!(outcome.is_err(), "cut at {at}");
            judge(&signature, outcome);
            for byte in *b"\"\\[]{},:-e.0\x00\xff" {
                let mut harmed = body.clone();
                harmed[at] = byte;
                judge(&signature, decode_infer(&signature, Bytes::from(harmed), length));
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(4000) })]

    #[test]
    fn random_bytes_get_an_answer(body in vec(any::<u8>(), 0..200), length in proptest::option::of(0_usize..250)) {
        for signature in [echo(DataType::Bytes, &["n"]), echo(DataType::F32, &["n", "2"]), pair(), echo(DataType::Bool, &[])] {
            judge(&signature, decode_infer(&signature, Bytes::copy_from_slice(&body), length));
        }
    }

    #[test]
    fn pieces_of_good_bodies_in_any_order_get_an_answer(cuts in vec((any::<Index>(), any::<Index>()), 1..6), which in 0_usize..3) {
        let (signature, body, length) = good_bodies().swap_remove(which);
        let mut harmed = body.clone();
        for (from, to) in cuts {
            let (from, to) = (from.index(body.len()), to.index(harmed.len()));
            let piece = &body[from..(from + 40).min(body.len())];
            harmed.splice(to..(to + 10).min(harmed.len()), piece.iter().copied());
        }
        judge(&signature, decode_infer(&signature, Bytes::from(harmed), length));
    }

    #[test]
    fn structural_noise_gets_an_answer(noise in "[\\[\\]{},:\" 0-9eE.+a-]{0,80}", key in proptest::sample::select(vec!["inputs", "outputs", "parameters", "id", "other"])) {
        let signature = echo(DataType::F32, &["n", "2"]);
        judge(&signature, decode_infer(&signature, Bytes::from(format!("{{\"{key}\":{noise}")), None));
        let inside = format!(r#"{{"inputs":[{{"name":"x","datatype":"FP32","shape":[1,2],"data":{noise}}}]}}"#);
        judge(&signature, decode_infer(&signature, Bytes::from(inside), None));
    }

    #[test]
    fn random_bytes_unpack_or_are_refused(body in vec(any::<u8>(), 0..100), zlib in any::<bool>()) {
        let framed = if zlib { [&[0x78, 0x9c], &body[..]].concat() } else { [&[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3], &body[..]].concat() };
        if let Ok(out) = inflate(if zlib { "deflate" } else { "gzip" }, &framed, 10_000) {
            prop_assert!(out.len() <= 10_000);
        }
    }
}
