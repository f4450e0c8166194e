//! Golden rows: requests whose answers are known. A version that answers otherwise is not served.

use bytes::Bytes;
use seatrial_protocol::{decode_infer, float_values};
use seatrial_types::{Runner, Signature, Tensor};
use serde_json::{Value, json};

use crate::config::{self, Tolerance};

/// One request with what it must give.
pub(crate) struct Row {
    pub(crate) inputs: Vec<Tensor>,
    pub(crate) rows: usize,
    /// Place in the signature and value of each golden output.
    outputs: Vec<(usize, Tensor)>,
    tolerance: Tolerance,
}

/// The golden rows of a model, or what is wrong with them.
pub(crate) fn read(model: &config::Model) -> Result<Vec<Row>, String> {
    let read_one =
        |(n, golden)| read_row(golden, &model.signature).map_err(|e| format!("golden row {n}: {e}"));
    (1..).zip(&model.golden).map(read_one).collect()
}

fn read_row(golden: &config::Golden, signature: &Signature) -> Result<Row, String> {
    let decode = |signature: &Signature, body: &Value| {
        decode_infer(signature, Bytes::from(body.to_string()), None).map_err(|e| e.message)
    };
    let call = decode(signature, &golden.request)?;
    let named = |value: &Value| {
        let name = value.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
        let place = signature.outputs.iter().position(|spec| spec.name == name);
        place.ok_or_else(|| format!("the model has no output `{name}`"))
    };
    let places = golden.outputs.iter().map(named).collect::<Result<Vec<_>, _>>()?;
    // Outputs have the form of inputs, so that they are read as the inputs of a model that takes them.
    let takes_them = Signature {
        inputs: places.iter().filter_map(|place| signature.outputs.get(*place).cloned()).collect(),
        outputs: Vec::new(),
    };
    let outputs = decode(&takes_them, &json!({"inputs": golden.outputs}))?.inputs;
    let outputs = places.into_iter().zip(outputs).collect();
    Ok(Row { inputs: call.inputs, rows: call.rows, outputs, tolerance: golden.tolerance })
}

/// Runs every golden row and compares the answers.
pub(crate) fn prove(rows: &[Row], signature: &Signature, runner: &mut dyn Runner) -> Result<(), String> {
    for (n, row) in (1..).zip(rows) {
        let outputs = runner.run(&row.inputs).map_err(|e| format!("golden row {n} fails: {}", e.message))?;
        row.compare(&outputs, signature).map_err(|e| format!("golden row {n} gives another answer: {e}"))?;
    }
    Ok(())
}

impl Row {
    fn compare(&self, outputs: &[Tensor], signature: &Signature) -> Result<(), String> {
        for (place, golden) in &self.outputs {
            let name = signature.outputs.get(*place).map_or("?", |spec| spec.name.as_str());
            let found = outputs.get(*place).ok_or_else(|| format!("output `{name}` did not come"))?;
            if found.shape != golden.shape {
                return Err(format!(
                    "output `{name}` has the shape {:?}, the golden one {:?}",
                    found.shape, golden.shape
                ));
            }
            differ(found, golden, self.tolerance)
                .map_or(Ok(()), |how| Err(format!("output `{name}` {how}")))?;
        }
        Ok(())
    }
}

/// How two tensors of one shape differ, if they do.
fn differ(found: &Tensor, golden: &Tensor, tolerance: Tolerance) -> Option<String> {
    let (Some(values), Some(expected)) = (float_values(found), float_values(golden)) else {
        return (found.data != golden.data).then(|| "differs from the golden one".to_owned());
    };
    let far = |(value, expected): (&f64, &f64)| {
        let same = value.total_cmp(expected).is_eq() || (value.is_nan() && expected.is_nan());
        let near = expected.is_finite()
            && (value - expected).abs() <= tolerance.abs + tolerance.rel * expected.abs();
        !(same || near)
    };
    let at = values.iter().zip(&expected).position(far)?;
    let (value, expected) = (values.get(at)?, expected.get(at)?);
    Some(format!("is {value} at element {at}, the golden one {expected}"))
}

#[cfg(test)]
mod tests {
    use seatrial_types::{DataType, Result};

    use super::*;

    fn floats(values: &[f32]) -> Tensor {
        let data = values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>();
        Tensor { datatype: DataType::F32, shape: vec![values.len()], data: data.into() }
    }

    #[test]
    fn floats_may_differ_by_the_tolerance_and_nan_equals_nan() {
        let tolerance = Tolerance { abs: 0.1, rel: 0.01 };
        let how = |a: &[f32], b: &[f32]| differ(&floats(a), &floats(b), tolerance);
        assert_eq!(how(&[1.0, f32::NAN, f32::INFINITY], &[1.05, f32::NAN, f32::INFINITY]), None);
        assert_eq!(how(&[100.9], &[100.0]), None);
        assert_eq!(how(&[0.0, 102.0], &[0.0, 100.0]).unwrap(), "is 102 at element 1, the golden one 100");
        assert!(how(&[f32::NAN], &[0.0]).is_some() && how(&[0.0], &[f32::INFINITY]).is_some());
    }

    struct Doubling;

    impl Runner for Doubling {
        fn run(&mut self, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
            let doubled: Vec<f32> =
                float_values(&inputs[0]).unwrap().iter().map(|v| (v * 2.0) as f32).collect();
            Ok(vec![Tensor { shape: inputs[0].shape.clone(), ..floats(&doubled) }])
        }
    }

    #[test]
    fn a_row_is_read_run_and_compared() {
        let tensor =
            |name: &str, value: f32| json!({"name": name, "datatype": "FP32", "shape": [1], "data": [value]});
        let spec = |name: &str| json!({"name": name, "datatype": "FP32", "shape": [{"name": "n"}]});
        let signature: Signature =
            serde_json::from_value(json!({"inputs": [spec("x")], "outputs": [spec("y")]})).unwrap();
        let prove_one = |output: Value| {
            let golden = config::Golden {
                request: json!({"inputs": [tensor("x", 2.0)]}),
                outputs: vec![output],
                tolerance: Tolerance { abs: 0.0, rel: 0.0 },
            };
            prove(&[read_row(&golden, &signature)?], &signature, &mut Doubling)
        };
        assert_eq!(prove_one(tensor("y", 4.0)), Ok(()));
        let wrong = prove_one(tensor("y", 5.0)).unwrap_err();
        assert!(wrong.contains("output `y` is 4 at element 0, the golden one 5"), "{wrong}");
        assert_eq!(prove_one(tensor("z", 4.0)), Err("the model has no output `z`".to_owned()));
    }
}
