//! What decoding and encoding cost beside `serde_json`, in one interleaved run: `cargo run --release -p
//! seatrial-protocol --example decode_cost`. Bodies are those of a click-through model: 26 ids and 200 floats.

use std::{
    hint::black_box,
    time::{Duration, Instant},
};

use bytes::Bytes;
use seatrial_protocol::{ModelId, decode_infer, encode_infer};
use seatrial_types::{DataType, Dim, Result, Signature, Tensor, TensorSpec};
use serde::{Deserialize, Serialize};

const ROUNDS: usize = 15;
const CALLS: u32 = 4000;

fn main() -> Result<()> {
    let signature = signature();
    let body = Bytes::from(json_body());
    let (binary, json_length) = binary_body(&signature, &body)?;
    let call = decode_infer(&signature, body.clone(), None)?;
    let (outputs, shape) = call.into_parts();
    let model = ModelId { name: "movie-ctr".into(), version: "1.0.0".into() };
    println!(
        "{} bytes of JSON with 226 numbers; {} with binary parts; best of {ROUNDS} rounds",
        body.len(),
        binary.len()
    );

    let mut tasks: Vec<Task<'_>> = vec![
        Task::new("decode JSON", || decode_infer(&signature, black_box(body.clone()), None)),
        Task::new("decode binary", || decode_infer(&signature, black_box(binary.clone()), Some(json_length))),
        Task::new("serde_json to Value", || serde_json::from_slice::<serde_json::Value>(black_box(&body))),
        Task::new("serde_json to struct", || serde_json::from_slice::<Request<'_>>(black_box(&body))),
        Task::new("encode JSON", || encode_infer(&model, &signature, &shape, black_box(&outputs))),
        Task::new("serde_json from struct", || serde_json::to_vec(&as_answer(black_box(&outputs)))),
    ];
    for _ in 0..ROUNDS {
        for task in &mut tasks {
            task.measure();
        }
    }
    let decode = tasks.first().map_or(1.0, Task::ns);
    for task in &tasks {
        println!("{:24}{:9.0} ns{:7.2} x decode JSON", task.name, task.ns(), task.ns() / decode);
    }
    Ok(())
}

/// Something to repeat, and its fastest round so far.
struct Task<'a> {
    name: &'static str,
    run: Box<dyn Fn() + 'a>,
    best: Duration,
}

impl<'a> Task<'a> {
    fn new<T>(name: &'static str, run: impl Fn() -> T + 'a) -> Self {
        Self { name, run: Box::new(move || drop(black_box(run()))), best: Duration::MAX }
    }

    fn measure(&mut self) {
        let start = Instant::now();
        for _ in 0..CALLS {
            (self.run)();
        }
        self.best = self.best.min(start.elapsed() / CALLS);
    }

    fn ns(&self) -> f64 {
        self.best.as_secs_f64() * 1e9
    }
}

fn signature() -> Signature {
    let spec = |name: &str, datatype, width| TensorSpec {
        name: name.into(),
        datatype,
        shape: vec![Dim::Free { name: "batch".into(), max: None }, Dim::Fixed(width)],
        range: None,
        labels: None,
    };
    let inputs = vec![spec("ids", DataType::I64, 26), spec("dense", DataType::F32, 200)];
    Signature { outputs: inputs.clone(), inputs }
}

/// Ids up to a million and floats of six digits, from a fixed seed.
fn json_body() -> String {
    let mut state = 3_u64;
    let mut random = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as f64 / f64::from(1_u32 << 31)
    };
    let ids: Vec<String> = (0..26).map(|_| format!("{:.0}", random() * 1e6)).collect();
    let dense: Vec<String> = (0..200).map(|_| format!("{:.6}", random() * 4.0 - 2.0)).collect();
    format!(
        r#"{{"inputs":[{{"name":"ids","shape":[1,26],"datatype":"INT64","data":[{}]}},{{"name":"dense","shape":[1,200],"datatype":"FP32","data":[{}]}}]}}"#,
        ids.join(","),
        dense.join(",")
    )
}

fn binary_body(signature: &Signature, json: &Bytes) -> Result<(Bytes, usize)> {
    let tensors = decode_infer(signature, json.clone(), None)?.inputs;
    let head = r#"{"inputs":[{"name":"ids","shape":[1,26],"datatype":"INT64","parameters":{"binary_data_size":208}},{"name":"dense","shape":[1,200],"datatype":"FP32","parameters":{"binary_data_size":800}}],"outputs":[{"name":"dense","parameters":{"binary_data":true}}]}"#;
    let mut body = head.as_bytes().to_vec();
    for tensor in &tensors {
        body.extend_from_slice(&tensor.data);
    }
    Ok((Bytes::from(body), head.len()))
}

/// What a server with derived decoders would read.
#[derive(Deserialize)]
#[allow(dead_code, reason = "read for its cost only")]
struct Request<'a> {
    #[serde(borrow)]
    inputs: (Input<'a, i64>, Input<'a, f32>),
}

#[derive(Deserialize, Serialize)]
struct Input<'a, T> {
    name: &'a str,
    shape: Vec<usize>,
    datatype: &'a str,
    data: Vec<T>,
}

#[derive(Serialize)]
struct Answer {
    model_name: &'static str,
    model_version: &'static str,
    outputs: (Input<'static, i64>, Input<'static, f32>),
}

/// The same answer through derived encoders, typed lists included, since a tensor holds bytes.
fn as_answer(tensors: &[Tensor]) -> Option<Answer> {
    let [ids, dense] = tensors else { return None };
    let ids_data = ids.data.as_chunks().0.iter().map(|b| i64::from_le_bytes(*b)).collect();
    let dense_data = dense.data.as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)).collect();
    Some(Answer {
        model_name: "movie-ctr",
        model_version: "1.0.0",
        outputs: (
            Input { name: "ids", shape: ids.shape.clone(), datatype: "INT64", data: ids_data },
            Input { name: "dense", shape: dense.shape.clone(), datatype: "FP32", data: dense_data },
        ),
    })
}
