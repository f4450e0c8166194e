//! `/openapi.json`: what this server serves, in `OpenAPI` 3.1. The routes that are the same everywhere stand in
//! `openapi.json` beside this file; what each model takes and gives is added from its signature.

use std::collections::BTreeSet;

use bytes::Bytes;
use seatrial_features::{Feature, FieldType, Missing, Spec};
use seatrial_types::{DataType, Dim, Signature, TensorSpec};
use serde_json::{Map, Value, json};

use crate::model::Model;

/// Everything that does not depend on the models.
const FRAME: &str = include_str!("openapi.json");

/// What may go wrong with an inference request, as `openapi.json` names the answers.
const REFUSALS: [(&str, &str); 10] = [
    ("400", "InvalidArgument"),
    ("404", "NotFound"),
    ("408", "RequestTimeout"),
    ("413", "PayloadTooLarge"),
    ("415", "UnsupportedMediaType"),
    ("429", "ResourceExhausted"),
    ("500", "Internal"),
    ("501", "Unimplemented"),
    ("503", "Unavailable"),
    ("504", "DeadlineExceeded"),
];

/// Paths of the frame that only servers have that can load.
const LOADS: [&str; 2] = ["/v2/repository/models/{model}/load", "/v2/repository/models/{model}/unload"];

/// The document. Versions of a name follow each other; the last one is what a path without a version means.
pub(super) fn document<'a>(models: impl Iterator<Item = &'a Model>, takes_loads: bool) -> Bytes {
    let mut document = serde_json::from_str(FRAME).unwrap_or(Value::Null);
    let paths = document.pointer_mut("/paths").and_then(Value::as_object_mut);
    if let (Some(paths), false) = (paths, takes_loads) {
        paths.retain(|path, _| !LOADS.contains(&path.as_str()));
    }
    set(&mut document, "/info/version", json!(env!("CARGO_PKG_VERSION")));
    let mut names = Vec::new();
    for model in models {
        let key = key(&model.id.name, &model.id.version);
        insert(
            &mut document,
            "/components/schemas",
            format!("{key}.request"),
            request(&model.config.signature),
        );
        insert(&mut document, "/components/schemas", format!("{key}.response"), response(model));
        let name = escape(&model.id.name);
        let version = escape(&model.id.version);
        for (path, id) in [
            (format!("/v2/models/{name}/infer"), format!("infer.{}", key_part(&model.id.name))),
            (format!("/v2/models/{name}/versions/{version}/infer"), format!("infer.{key}")),
        ] {
            insert(&mut document, "/paths", path, json!({"post": operation(&id, model, &key)}));
        }
        if let Some(features) = &model.config.features {
            insert(
                &mut document,
                "/components/schemas",
                format!("{key}.instances"),
                instances(&features.spec),
            );
            for (path, id) in [
                (format!("/v1/models/{name}:predict"), format!("predict.{}", key_part(&model.id.name))),
                (format!("/v1/models/{name}/versions/{version}:predict"), format!("predict.{key}")),
            ] {
                insert(&mut document, "/paths", path, json!({"post": prediction(&id, model, &key)}));
            }
        }
        names.push(model.id.name.clone());
    }
    names.dedup();
    set(&mut document, "/components/parameters/model/schema/enum", json!(names));
    Bytes::from(document.to_string())
}

fn set(document: &mut Value, place: &str, value: Value) {
    if let Some((parent, key)) = place.rsplit_once('/') {
        insert(document, parent, key.to_owned(), value);
    }
}

fn insert(document: &mut Value, place: &str, key: String, value: Value) {
    if let Some(object) = document.pointer_mut(place).and_then(Value::as_object_mut) {
        object.insert(key, value);
    }
}

/// A name that component names may have, different for different models.
fn key(name: &str, version: &str) -> String {
    format!("{}-{}", key_part(name), key_part(version))
}

fn key_part(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '.';
    text.chars().map(|c| if plain(c) { c.to_string() } else { format!("_{:x}_", u32::from(c)) }).collect()
}

/// A segment of a path, percent-encoded.
fn escape(text: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-._~".contains(&b);
    text.bytes().map(|b| if plain(b) { char::from(b).to_string() } else { format!("%{b:02X}") }).collect()
}

fn operation(id: &str, model: &Model, key: &str) -> Value {
    let name = &model.id.name;
    let batching = &model.config.batching;
    let mut responses = refusals();
    responses.insert("200".to_owned(), answered(key));
    json!({
        "operationId": id,
        "summary": format!("Inference with `{name}`"),
        "description": format!(
            "The number of values must be the product of `shape`. Tensors may stand as binary parts behind the JSON: the \
             header `Inference-Header-Content-Length` says how many bytes are JSON, and 0 means a body that is one bare \
             tensor. Digest of the package: {}. Batching: {}",
            model.config.digest, batching.why
        ),
        "parameters": [
            {"$ref": "#/components/parameters/timeout"},
        ],
        "requestBody": {"required": true, "content": {
            "application/json": {"schema": {"$ref": format!("#/components/schemas/{key}.request")}},
            "application/octet-stream": {},
        }},
        "responses": responses,
    })
}

fn prediction(id: &str, model: &Model, key: &str) -> Value {
    let mut responses = refusals();
    responses.insert(
        "200".to_owned(),
        json!({
            "description": "One entry for each instance: the value of the one output, or an object by output name.",
            "content": {"application/json": {"schema": {
                "type": "object",
                "required": ["predictions"],
                "properties": {"predictions": {"type": "array"}},
            }}},
        }),
    );
    json!({
        "operationId": id,
        "summary": format!("Inference with `{}` from raw fields", model.id.name),
        "parameters": [{"$ref": "#/components/parameters/timeout"}],
        "requestBody": {"required": true, "content": {
            "application/json": {"schema": {"$ref": format!("#/components/schemas/{key}.instances")}},
        }},
        "responses": responses,
    })
}

/// Raw fields with the types that the package declares; those that may be missing may be `null`.
fn instances(spec: &Spec) -> Value {
    let refused = |feature: &Feature| feature.missing == Missing::Error;
    let named = |feature: &Feature| feature.field.clone();
    let required: BTreeSet<String> =
        spec.features.iter().filter(|feature| refused(feature)).filter_map(named).collect();
    let mut fields = Map::new();
    for feature in &spec.features {
        let (Some(field), Some(kind)) = (&feature.field, feature.kind) else { continue };
        let declared = match (kind, feature.items) {
            (FieldType::List, Some(items)) => json!({"type": "array", "items": {"type": items}}),
            (FieldType::List, None) => json!({"type": "array"}),
            (kind, _) => json!({"type": kind}),
        };
        let schema = if required.contains(field) { declared } else { or_null(&declared) };
        fields.insert(field.clone(), schema);
    }
    json!({
        "type": "object",
        "required": ["instances"],
        "properties": {"instances": {
            "type": "array",
            "items": {"type": "object", "properties": fields, "required": required},
        }},
    })
}

fn refusals() -> Map<String, Value> {
    let refer = |name| json!({"$ref": format!("#/components/responses/{name}")});
    REFUSALS.into_iter().map(|(status, name)| (status.to_owned(), refer(name))).collect()
}

fn answered(key: &str) -> Value {
    json!({
        "description": "The outputs; binary where the request asks for it.",
        "content": {
            "application/json": {"schema": {"$ref": format!("#/components/schemas/{key}.response")}},
            "application/octet-stream": {},
        },
    })
}

fn request(signature: &Signature) -> Value {
    let inputs: Vec<Value> = signature.inputs.iter().map(input).collect();
    let every_name: Vec<Value> =
        signature.inputs.iter().map(|spec| json!({"contains": called(&spec.name)})).collect();
    let once: Vec<Value> = signature.outputs.iter().map(|spec| at_most_once(&spec.name)).collect();
    let outputs: Vec<Value> = signature.outputs.iter().map(requested).collect();
    json!({
        "type": "object",
        "required": ["inputs"],
        "properties": {
            "id": {"type": ["string", "null"]},
            "parameters": or_null(&json!({"$ref": "#/components/schemas/RequestParameters"})),
            "inputs": {
                "type": "array",
                "minItems": inputs.len(),
                "maxItems": inputs.len(),
                "items": {"anyOf": inputs},
                "allOf": every_name,
            },
            "outputs": or_null(&json!({"type": "array", "items": {"anyOf": outputs}, "allOf": once})),
        },
    })
}

fn or_null(schema: &Value) -> Value {
    json!({"anyOf": [schema, {"type": "null"}]})
}

fn called(name: &str) -> Value {
    json!({"type": "object", "required": ["name"], "properties": {"name": {"const": name}}})
}

fn at_most_once(name: &str) -> Value {
    json!({"contains": called(name), "minContains": 0, "maxContains": 1})
}

fn input(spec: &TensorSpec) -> Value {
    json!({
        "type": "object",
        "required": ["name", "datatype", "shape", "data"],
        "properties": {
            "name": {"const": spec.name},
            "datatype": {"const": spec.datatype},
            "shape": shape(&spec.shape),
            "data": data(spec),
            "parameters": or_null(&json!({"$ref": "#/components/schemas/InputParameters"})),
        },
    })
}

fn requested(spec: &TensorSpec) -> Value {
    json!({
        "type": "object",
        "required": ["name"],
        "properties": {
            "name": {"const": spec.name},
            "parameters": or_null(&json!({"$ref": "#/components/schemas/OutputParameters"})),
        },
    })
}

fn shape(dims: &[Dim]) -> Value {
    let sizes: Vec<Value> = dims.iter().map(size).collect();
    let items = if sizes.is_empty() { json!({}) } else { json!({"prefixItems": sizes}) };
    let mut shape = json!({"type": "array", "minItems": sizes.len(), "maxItems": sizes.len()});
    if let (Some(shape), Value::Object(items)) = (shape.as_object_mut(), items) {
        shape.extend(items);
    }
    shape
}

fn size(dim: &Dim) -> Value {
    match dim {
        Dim::Fixed(size) => json!({"const": size}),
        Dim::Free { name, max: None } => json!({"type": "integer", "minimum": 0, "title": name}),
        Dim::Free { name, max: Some(max) } => {
            json!({"type": "integer", "minimum": 0, "maximum": max, "title": name})
        }
    }
}

/// Values in one list, or in lists nested as the shape is.
fn data(spec: &TensorSpec) -> Value {
    let flat = list(element(spec), fixed_count(&spec.shape));
    if spec.shape.len() < 2 {
        return flat;
    }
    let nested = spec.shape.iter().rev().fold(element(spec), |inner, dim| {
        list(inner, if let Dim::Fixed(size) = dim { Some(*size) } else { None })
    });
    json!({"anyOf": [flat, nested]})
}

/// How many values a tensor has, where its shape leaves no choice.
fn fixed_count(shape: &[Dim]) -> Option<usize> {
    shape.iter().try_fold(1_usize, |product, dim| match dim {
        Dim::Fixed(size) => product.checked_mul(*size),
        Dim::Free { .. } => None,
    })
}

fn list(items: Value, length: Option<usize>) -> Value {
    let mut list = Map::from_iter([("type".to_owned(), json!("array")), ("items".to_owned(), items)]);
    if let Some(length) = length {
        list.insert("minItems".to_owned(), json!(length));
        list.insert("maxItems".to_owned(), json!(length));
    }
    Value::Object(list)
}

/// One value. What JSON has no number for is a string.
fn element(spec: &TensorSpec) -> Value {
    match spec.datatype {
        DataType::Bool => json!({"type": "boolean"}),
        DataType::Bytes => json!({"type": "string"}),
        DataType::F16 => float(spec, 65_504.0),
        DataType::BF16 => float(spec, 3.389_531_389_251_535_5e38),
        DataType::F32 => float(spec, f64::from(f32::MAX)),
        DataType::F64 => float(spec, f64::MAX),
        DataType::U8 => whole(spec, 0, u8::MAX.into()),
        DataType::U16 => whole(spec, 0, u16::MAX.into()),
        DataType::U32 => whole(spec, 0, u32::MAX.into()),
        DataType::U64 => whole(spec, 0, u64::MAX.into()),
        DataType::I8 => whole(spec, i8::MIN.into(), i8::MAX.into()),
        DataType::I16 => whole(spec, i16::MIN.into(), i16::MAX.into()),
        DataType::I32 => whole(spec, i32::MIN.into(), i32::MAX.into()),
        DataType::I64 => whole(spec, i64::MIN.into(), i64::MAX.into()),
    }
}

fn whole(spec: &TensorSpec, least: i128, most: i128) -> Value {
    // Saturating casts: a bound beyond 128 bits is no bound.
    let (low, high) =
        spec.range.map_or((least, most), |(low, high)| (low.ceil() as i128, high.floor() as i128));
    json!({"type": "integer", "minimum": number(low.max(least)), "maximum": number(high.min(most))})
}

/// Bounds of 64-bit types fit one of the two integers of JSON.
fn number(bound: i128) -> Value {
    u64::try_from(bound)
        .map_or_else(|_| json!(i64::try_from(bound).unwrap_or(i64::MIN)), |bound| json!(bound))
}

fn float(spec: &TensorSpec, most: f64) -> Value {
    match spec.range {
        Some((low, high)) => {
            json!({"type": "number", "minimum": low.max(-most), "maximum": high.min(most)})
        }
        None => json!({"anyOf": [
            {"type": "number", "minimum": -most, "maximum": most},
            {"enum": ["NaN", "Infinity", "-Infinity"]},
        ]}),
    }
}

fn response(model: &Model) -> Value {
    let outputs: Vec<Value> = model.config.signature.outputs.iter().map(output).collect();
    json!({
        "type": "object",
        "required": ["model_name", "model_version", "outputs"],
        "properties": {
            "model_name": {"const": model.id.name},
            "model_version": {"const": model.id.version},
            "id": {"type": "string"},
            "outputs": {"type": "array", "items": {"anyOf": outputs}},
        },
    })
}

/// An output as it is, or as its classes.
fn output(spec: &TensorSpec) -> Value {
    let of = |datatype: Value, element: Value| {
        json!({
            "type": "object",
            "required": ["name", "datatype", "shape"],
            "properties": {
                "name": {"const": spec.name},
                "datatype": {"const": datatype},
                "shape": {"type": "array", "items": {"type": "integer", "minimum": 0}},
                "data": {"type": "array", "items": element},
                "parameters": {"type": "object"},
            },
        })
    };
    let itself = of(json!(spec.datatype), given(spec));
    json!({"anyOf": [itself, of(json!("BYTES"), json!({"type": "string"}))]})
}

/// A value that the model gives: nothing bounds it but its datatype.
fn given(spec: &TensorSpec) -> Value {
    element(&TensorSpec { range: None, ..spec.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_frame_is_json_with_a_place_for_everything() {
        let frame: Value = serde_json::from_str(FRAME).unwrap();
        for place in ["/info/version", "/paths", "/components/schemas", "/components/parameters/model/schema"]
        {
            assert!(frame.pointer(place).is_some(), "{place}");
        }
        for (_, name) in REFUSALS {
            assert!(frame["components"]["responses"].get(name).is_some(), "{name}");
        }
    }

    #[test]
    fn names_become_keys_and_segments_that_differ() {
        assert_eq!(key("movie-ctr", "1.0.0"), "movie_2d_ctr-1.0.0");
        assert_ne!(key("a-b", "c"), key("a", "b-c"));
        assert_eq!(escape("a b/ü{x}"), "a%20b%2F%C3%BC%7Bx%7D");
    }

    #[test]
    fn bounds_are_those_of_the_datatype_and_the_range() {
        let spec = |datatype, range| TensorSpec {
            name: "x".into(),
            datatype,
            shape: Vec::new(),
            range,
            labels: None,
        };
        let wide = element(&spec(DataType::U64, None));
        assert_eq!(wide, json!({"type": "integer", "minimum": 0, "maximum": u64::MAX}));
        let deep = element(&spec(DataType::I64, None));
        assert_eq!(deep, json!({"type": "integer", "minimum": i64::MIN, "maximum": i64::MAX}));
        let ids = element(&spec(DataType::I64, Some((0.0, 9.5))));
        assert_eq!(ids, json!({"type": "integer", "minimum": 0, "maximum": 9}));
        let share = element(&spec(DataType::F32, Some((0.0, 1.0))));
        assert_eq!(share, json!({"type": "number", "minimum": 0.0, "maximum": 1.0}));
        assert_eq!(element(&spec(DataType::F32, None))["anyOf"][1]["enum"][0], json!("NaN"));
    }

    #[test]
    fn data_is_flat_or_nested_as_the_shape_is() {
        let of = |shape| {
            let spec =
                TensorSpec { name: "x".into(), datatype: DataType::Bool, shape, range: None, labels: None };
            data(&spec)
        };
        let free = || Dim::Free { name: "n".into(), max: None };
        let flag = json!({"type": "boolean"});
        let pair = json!({"type": "array", "items": flag, "minItems": 2, "maxItems": 2});
        assert_eq!(of(vec![]), json!({"type": "array", "items": flag, "minItems": 1, "maxItems": 1}));
        assert_eq!(of(vec![free()]), json!({"type": "array", "items": flag}));
        let any = json!({"type": "array", "items": flag});
        assert_eq!(
            of(vec![free(), Dim::Fixed(2)]),
            json!({"anyOf": [any, {"type": "array", "items": pair}]})
        );
        assert_eq!(of(vec![Dim::Fixed(3), Dim::Fixed(2)])["anyOf"][0]["minItems"], 6);
    }
}
