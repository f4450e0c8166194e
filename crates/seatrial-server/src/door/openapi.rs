//! `/openapi.json`: what this server serves, in `OpenAPI` 3.1. The routes that are the same everywhere stand in
//! `openapi.json` beside this file; what each model takes and gives is added from its signature.

use bytes::Bytes;
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

/// The document. Versions of a name follow each other; the last one is what a path without a version means.
pub(super) fn document<'a>(models: impl Iterator<Item = &'a Model>) -> Bytes {
    let mut document = serde_json::from_str(FRAME).unwrap_or(Value::Null);
    set(&mut document, "/info/version", json!(env!("CARGO_PKG_VERSION")));
    let mut names = Vec::new();
    for model in models {
        let key = key(&model.id.name, &model.id.version);
        let signature = &model.config.signature;
        insert(&mut document, "/components/schemas", format!("{key}.request"), request(&key, signature));
        insert(&mut document, "/components/schemas", format!("{key}.response"), response(model));
        let name = escape(&model.id.name);
        let version = escape(&model.id.version);
        for (path, id) in [
            (format!("/v2/models/{name}/infer"), format!("infer.{}", key_part(&model.id.name))),
            (format!("/v2/models/{name}/versions/{version}/infer"), format!("infer.{key}")),
        ] {
            insert(&mut document, "/paths", path, json!({"post": operation(&id, model, &key)}));
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
    let mut responses = Map::new();
    responses.insert("200".to_owned(), answered(key));
    for (status, name) in REFUSALS {
        responses.insert(status.to_owned(), json!({"$ref": format!("#/components/responses/{name}")}));
    }
    json!({
        "operationId": id,
        "summary": format!("Inference with `{name}`"),
        "description": format!(
            "Tensors as JSON, or as binary parts behind the JSON. The number of values must be the product of `shape`. \
             Digest of the package: {}. Batching: {}",
            model.config.digest, batching.why
        ),
        "parameters": [
            {"$ref": "#/components/parameters/header_length"},
            {"$ref": "#/components/parameters/timeout"},
        ],
        "requestBody": {"required": true, "content": {
            "application/json": {"schema": {"$ref": format!("#/components/schemas/{key}.request")}},
            "application/octet-stream": {},
        }},
        "responses": responses,
    })
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

fn request(key: &str, signature: &Signature) -> Value {
    let place = |n: usize| format!("#/components/schemas/{key}.request/$defs/data{n}");
    let inputs: Vec<Value> =
        signature.inputs.iter().enumerate().map(|(n, spec)| input(spec, &place(n))).collect();
    let data = signature.inputs.iter().enumerate();
    let data: Map<String, Value> =
        data.map(|(n, spec)| (format!("data{n}"), nested(spec, &place(n)))).collect();
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
        "$defs": data,
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

fn input(spec: &TensorSpec, data: &str) -> Value {
    json!({
        "type": "object",
        "required": ["name", "datatype", "shape", "data"],
        "properties": {
            "name": {"const": spec.name},
            "datatype": {"const": spec.datatype},
            "shape": shape(&spec.shape),
            "data": {"$ref": data},
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

/// Values in one list, or in lists of lists.
fn nested(spec: &TensorSpec, itself: &str) -> Value {
    json!({"type": "array", "items": {"anyOf": [element(spec), {"$ref": itself}]}})
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
}
