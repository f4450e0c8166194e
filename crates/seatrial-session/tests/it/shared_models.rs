//! The servable models of the sample folder, with the values that its oracle file expects.

use std::{fs, path::Path, sync::Arc};

use seatrial_session::{Runtime, SessionError, SessionOptions, SharedSession, run_executor};
use seatrial_types::{
    Code,
    DataType::{self, Bytes, F32, I64},
    Signature, Tensor,
};
use serde_json::Value;

use crate::dock::{self, Given, as_floats, floats, integers, request, spec};

fn sample() -> Option<(Arc<Runtime>, std::path::PathBuf)> {
    Some((dock::runtime()?, dock::shared_models()?))
}

fn open(runtime: &Arc<Runtime>, path: &Path, signature: &Signature) -> seatrial_session::Session {
    runtime.session(path, signature, &SessionOptions::default()).unwrap()
}

/// A tensor of nested JSON lists.
fn tensor(value: &Value, datatype: DataType) -> Tensor {
    let (mut shape, mut inner) = (Vec::new(), value);
    while let Value::Array(items) = inner {
        shape.push(items.len());
        let Some(first) = items.first() else { break };
        inner = first;
    }
    let mut data = Vec::new();
    write(value, datatype, &mut data);
    Tensor { datatype, shape, data: data.into() }
}

fn write(value: &Value, datatype: DataType, data: &mut Vec<u8>) {
    match (value, datatype) {
        (Value::Array(items), _) => items.iter().for_each(|item| write(item, datatype, data)),
        (Value::String(text), DataType::Bytes) => {
            data.extend_from_slice(&(text.len() as u32).to_le_bytes());
            data.extend_from_slice(text.as_bytes());
        }
        (_, DataType::I64) => data.extend_from_slice(&value.as_i64().unwrap().to_le_bytes()),
        (_, DataType::F32) => data.extend_from_slice(&float(value).to_le_bytes()),
        (_, DataType::F64) => data.extend_from_slice(&value.as_f64().unwrap().to_le_bytes()),
        _ => panic!("{value} as {datatype}"),
    }
}

fn float(value: &Value) -> f32 {
    match value.as_str() {
        Some("NaN") => f32::NAN,
        Some("Infinity") => f32::INFINITY,
        Some("-Infinity") => f32::NEG_INFINITY,
        _ => value.as_f64().unwrap() as f32,
    }
}

fn same(got: &Tensor, wanted: &Tensor) -> bool {
    if got.datatype != DataType::F32 {
        return got == wanted;
    }
    let close = |(a, b): (&f32, &f32)| {
        a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan()) || (a - b).abs() <= 1e-6 * b.abs()
    };
    let (a, b) = (as_floats(got), as_floats(wanted));
    got.shape == wanted.shape && a.len() == b.len() && a.iter().zip(&b).all(close)
}

/// Name, type and shape of an input or output.
type Port = (&'static str, DataType, &'static [i64]);

#[test]
fn the_oracles_values_come_out() {
    let Some((runtime, folder)) = sample() else { return };
    let oracles: Value = serde_json::from_slice(&fs::read(folder.join("ORACLES.json")).unwrap()).unwrap();
    let models: [(&str, Port, Port); 12] = [
        ("scalar_in.onnx", ("x", F32, &[]), ("y", F32, &[])),
        ("nonzero_rows.onnx", ("x", F32, &[-1, 2]), ("y", I64, &[2, -1])),
        ("baked_batch.onnx", ("x", F32, &[-1, 4]), ("y", F32, &[1, 2])),
        ("batch_mixing.onnx", ("x", F32, &[-1, 2]), ("y", F32, &[-1, 2])),
        ("nan_inf_out.onnx", ("x", F32, &[-1]), ("y", F32, &[-1])),
        ("int64_add1.onnx", ("x", I64, &[-1]), ("y", I64, &[-1])),
        ("fp16_overflow_fp32.onnx", ("x", F32, &[-1, 2]), ("y", F32, &[-1, 1])),
        ("embed.onnx", ("ids", I64, &[-1, -1]), ("y", F32, &[-1, 2])),
        ("label_encoder.onnx", ("s", Bytes, &[-1]), ("y", I64, &[-1])),
        ("if_true_model.onnx", ("x", F32, &[-1]), ("y", F32, &[-1])),
        ("ext_ok.onnx", ("x", F32, &[-1, 2]), ("y", F32, &[-1, 2])),
        ("tree_threshold.onnx", ("x", F32, &[-1, 1]), ("y", F32, &[-1, 1])),
    ];
    let mut checked = 0;
    for (file, input, output) in models {
        let signature =
            dock::signature(&[spec(input.0, input.1, input.2)], &[spec(output.0, output.1, output.2)]);
        let session = open(&runtime, &folder.join(file), &signature);
        for case in oracles[file]["cases"].as_array().unwrap() {
            let outputs = |x: &Value| session.run(&[tensor(x, input.1)]).unwrap();
            if let Some(y) = case.get("y").or_else(|| case.get("runtime_gives")) {
                let got = outputs(&case[input.0]);
                assert!(same(&got[0], &tensor(y, output.1)), "{file}: {got:?} for {case}");
                checked += 1;
            } else if let Some(shape) = case.get("y_shape") {
                let got = outputs(&case[input.0]);
                assert_eq!(serde_json::to_value(&got[0].shape).unwrap(), *shape, "{file}");
                checked += 1;
            }
        }
    }
    assert_eq!(checked, 16, "cases of the oracle file that say what the runtime gives");
}

/// Every type of the protocol, bit for bit, from aligned and unaligned buffers, with many and no rows.
#[test]
fn all_types_are_echoed_bit_for_bit() {
    let Some((runtime, folder)) = sample() else { return };
    for datatype in DataType::ALL {
        let file = match datatype {
            DataType::Bool => "bool",
            DataType::U8 => "uint8",
            DataType::U16 => "uint16",
            DataType::U32 => "uint32",
            DataType::U64 => "uint64",
            DataType::I8 => "int8",
            DataType::I16 => "int16",
            DataType::I32 => "int32",
            DataType::I64 => "int64",
            DataType::F16 => "float16",
            DataType::BF16 => "bfloat16",
            DataType::F32 => "float",
            DataType::F64 => "double",
            DataType::Bytes => "string",
        };
        let signature = dock::signature(&[spec("x", datatype, &[-1, 2])], &[spec("y", datatype, &[-1, 2])]);
        let session = open(&runtime, &folder.join(format!("echo_{file}.onnx")), &signature);
        for rows in [0, 1, 33] {
            let input = any_bits(datatype, &[rows, 2]);
            for data in [input.data.clone(), dock::unaligned(&input.data)] {
                let outputs = session.run(&[Tensor { data, ..input.clone() }]).unwrap();
                assert_eq!(outputs, std::slice::from_ref(&input), "{datatype} with {rows} rows");
            }
        }
    }
}

/// Bytes of every value, so that floats hold NaNs of all sorts; 0 and 1 for booleans.
fn any_bits(datatype: DataType, shape: &[usize]) -> Tensor {
    let elements: usize = shape.iter().product();
    let data: Vec<u8> = match datatype.size() {
        Some(size) => (0..elements * size).map(|i| (i * 37 + 11) as u8).collect(),
        None => {
            (0..elements).flat_map(|i| dock::strings(&[1], &[&vec![i as u8; i % 5]]).data.to_vec()).collect()
        }
    };
    let bit = |byte: u8| if datatype == DataType::Bool { byte & 1 } else { byte };
    let data = data.into_iter().map(bit).collect::<Vec<u8>>();
    Tensor { datatype, shape: shape.to_vec(), data: data.into() }
}

#[test]
fn a_bad_boolean_never_reaches_the_runtime() {
    let Some((runtime, folder)) = sample() else { return };
    let signature =
        dock::signature(&[spec("x", DataType::Bool, &[-1, 2])], &[spec("y", DataType::Bool, &[-1, 2])]);
    let session = open(&runtime, &folder.join("echo_bool.onnx"), &signature);
    let bad = Tensor { datatype: DataType::Bool, shape: vec![1, 2], data: vec![1, 2].into() };
    assert_eq!(session.run(&[bad]).unwrap_err().code, Code::InvalidArgument);
}

#[test]
fn one_bad_id_among_eight_joined_requests_fails_alone() {
    let Some((runtime, folder)) = sample() else { return };
    let signature =
        dock::signature(&[spec("ids", DataType::I64, &[-1, -1])], &[spec("y", DataType::F32, &[-1, 2])]);
    let session = Arc::new(open(&runtime, &folder.join("embed.onnx"), &signature));
    let alone = |ids: &[i64]| session.run(&[integers(&[1, 2], ids)]);
    let ids: Vec<[i64; 2]> = (0..8).map(|i| if i == 5 { [0, 8] } else { [i, (i + 1) % 8] }).collect();
    let (requests, mut answers): (Vec<_>, Vec<_>) =
        ids.iter().map(|ids| request(vec![integers(&[1, 2], ids)], 1)).unzip();
    let metrics =
        seatrial_session::ExecutorMetrics::register(&seatrial_metrics::Registry::new(), &[]).unwrap();
    let runner = Box::new(SharedSession(Arc::clone(&session)));
    run_executor(Given::new(vec![requests]), (runner, None), metrics, Box::new(|_| ()));
    for (i, (ids, answer)) in ids.iter().zip(&mut answers).enumerate() {
        let outcome = answer.try_recv().unwrap().outcome;
        if i == 5 {
            assert_eq!(outcome.unwrap_err().code, Code::InvalidArgument);
        } else {
            assert_eq!(outcome.unwrap(), alone(ids).unwrap(), "request {i}");
        }
    }
}

/// Joined and alone give the same rows, whatever the mix of sizes.
#[test]
fn mixed_row_counts_are_scattered_right() {
    let Some((runtime, folder)) = sample() else { return };
    let signature =
        dock::signature(&[spec("x", DataType::F32, &[-1, 2])], &[spec("y", DataType::F32, &[-1, 2])]);
    let session = Arc::new(open(&runtime, &folder.join("ext_ok.onnx"), &signature));
    let rows = [3, 1, 7, 2, 2, 9, 1];
    let input = |i: usize, rows: usize| {
        let values: Vec<f32> = (0..rows * 2).map(|j| (i * 100 + j) as f32).collect();
        floats(&[rows, 2], &values)
    };
    let (requests, mut answers): (Vec<_>, Vec<_>) =
        rows.iter().enumerate().map(|(i, rows)| request(vec![input(i, *rows)], *rows)).unzip();
    let metrics =
        seatrial_session::ExecutorMetrics::register(&seatrial_metrics::Registry::new(), &[]).unwrap();
    let runner = Box::new(SharedSession(Arc::clone(&session)));
    let complain = Box::new(|text: &str| panic!("{text}"));
    run_executor(Given::new(vec![requests]), (runner, None), metrics.clone(), complain);
    assert_eq!(metrics.runs_ok.get(), 1, "all in one run");
    for (i, (rows, answer)) in rows.iter().zip(&mut answers).enumerate() {
        assert_eq!(answer.try_recv().unwrap().outcome.unwrap(), session.run(&[input(i, *rows)]).unwrap());
    }
}

#[test]
fn models_that_cannot_be_served_are_refused_in_plain_words() {
    let Some((runtime, folder)) = sample() else { return };
    let any = dock::signature(&[spec("x", DataType::F32, &[-1, 2])], &[spec("y", DataType::F32, &[-1, 2])]);
    for (file, words) in [
        ("seq_out.onnx", "the output `s` is a sequence, only tensors can be served"),
        ("ir_too_new.onnx", "Unsupported model IR version: 99"),
        ("opset_too_new.onnx", "Opset 99 is under development"),
        ("custom_op.onnx", "com.example:FancyPool"),
        ("ext_missing.onnx", "not_there.bin"),
    ] {
        let opened = runtime.session(&folder.join(file), &any, &SessionOptions::default());
        let error = opened.map(|_| ()).expect_err(file);
        let text = error.to_string();
        assert!(text.contains(words) && !text.contains('\n') && !text.contains("/onnxruntime_src"), "{text}");
        assert!(matches!(error, SessionError::Model { .. } | SessionError::Unsupported(_)), "{error:?}");
    }
    let zipmap =
        dock::signature(&[spec("x", DataType::F32, &[-1, 3])], &[spec("probs", DataType::F32, &[-1, 3])]);
    for file in ["zipmap_int64.onnx", "zipmap_string.onnx"] {
        let opened = runtime.session(&folder.join(file), &zipmap, &SessionOptions::default());
        let error = opened.map(|_| ()).expect_err(file);
        assert_eq!(error.to_string(), "the output `probs` is a sequence, only tensors can be served");
        assert!(error.hint().contains("zipmap=False"));
    }
}
