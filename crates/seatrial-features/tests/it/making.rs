//! Specs written short, and tensors read back as numbers.

use std::path::{Path, PathBuf};

use seatrial_features::{Plan, Prepared, Spec};
use seatrial_types::{DataType, Tensor};
use serde_json::{Value, json};

/// A plan of these features for tensors `name -> (datatype, inner shape)`.
pub(crate) fn plan(tensors: Value, features: Value) -> Plan {
    try_plan(tensors, features).unwrap()
}

pub(crate) fn try_plan(tensors: Value, features: Value) -> Result<Plan, String> {
    plan_in(tensors, features, Path::new("/nowhere"))
}

pub(crate) fn plan_in(tensors: Value, features: Value, folder: &Path) -> Result<Plan, String> {
    let tensors: Vec<Value> = tensors
        .as_object()
        .unwrap()
        .iter()
        .map(|(name, target)| json!({"name": name, "datatype": target[0], "inner": target[1], "range": target[2]}))
        .collect();
    let spec: Spec =
        serde_json::from_value(json!({"tensors": tensors, "missing_texts": [""], "features": features}))
            .map_err(|e| e.to_string())?;
    Plan::compile(&spec, folder).map_err(|e| e.to_string())
}

/// A plan of one feature that fills an INT64 or FP32 column `t`.
pub(crate) fn one(datatype: &str, feature: Value) -> Plan {
    try_one(datatype, feature).unwrap()
}

pub(crate) fn try_one(datatype: &str, mut feature: Value) -> Result<Plan, String> {
    feature["tensor"] = json!("t");
    feature["field"] = json!("f");
    try_plan(json!({"t": [datatype, [1]]}), json!([feature]))
}

/// What a plan makes of one value of its field `f`, or the refusal.
pub(crate) fn of(plan: &Plan, value: &Value) -> Result<Vec<f64>, String> {
    let body = json!({"instances": [{"f": value}]}).to_string();
    let prepared = plan.instances(body.as_bytes(), None).map_err(|e| e.message)?;
    Ok(numbers(&tensors(prepared)[0].1))
}

pub(crate) fn tensors(prepared: Prepared) -> Vec<(String, Tensor)> {
    prepared.padded()
}

pub(crate) fn numbers(tensor: &Tensor) -> Vec<f64> {
    let data = &tensor.data;
    match tensor.datatype {
        DataType::F32 => data.as_chunks::<4>().0.iter().map(|b| f32::from_le_bytes(*b).into()).collect(),
        DataType::F64 => data.as_chunks::<8>().0.iter().map(|b| f64::from_le_bytes(*b)).collect(),
        DataType::I64 => data.as_chunks::<8>().0.iter().map(|b| i64::from_le_bytes(*b) as f64).collect(),
        DataType::I32 => data.as_chunks::<4>().0.iter().map(|b| i32::from_le_bytes(*b).into()).collect(),
        DataType::I8 => data.iter().map(|b| b.cast_signed().into()).collect(),
        DataType::U8 | DataType::Bool => data.iter().map(|b| (*b).into()).collect(),
        other => panic!("no test reads {other}"),
    }
}

/// A file of the sample folder beside the repository, or nothing and a line that says so.
pub(crate) fn shared(file: &str) -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared").join(file);
    if !path.exists() {
        eprintln!("SKIPPED: {file} of the sample folder is not beside the repository");
        return None;
    }
    Some(path)
}
