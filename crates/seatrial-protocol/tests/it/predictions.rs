//! Predictions of raw fields: row by row, in the order of the instances, nested as the output is.

use seatrial_protocol::{Predicted, encode_predictions};
use seatrial_types::{DataType, Signature, Tensor, TensorSpec};

fn signature(names: &[&str]) -> Signature {
    let spec = |name: &&str| TensorSpec {
        name: (*name).to_owned(),
        datatype: DataType::F32,
        shape: Vec::new(),
        range: None,
        labels: None,
    };
    Signature { inputs: Vec::new(), outputs: names.iter().map(spec).collect() }
}

fn floats(shape: &[usize], values: &[f32]) -> Tensor {
    let data: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    Tensor { datatype: DataType::F32, shape: shape.to_vec(), data: data.into() }
}

fn texts(shape: &[usize], values: &[&str]) -> Tensor {
    let each = |text: &&str| [&(text.len() as u32).to_le_bytes()[..], text.as_bytes()].concat();
    let data: Vec<u8> = values.iter().flat_map(each).collect();
    Tensor { datatype: DataType::Bytes, shape: shape.to_vec(), data: data.into() }
}

fn encode(names: &[&str], instances: usize, parts: &[Predicted]) -> Result<String, String> {
    let body = encode_predictions(&signature(names), instances, parts).map_err(|e| e.message)?;
    Ok(String::from_utf8(body.to_vec()).unwrap())
}

fn part(rows: &[usize], outputs: Vec<Tensor>) -> Predicted {
    Predicted { rows: rows.to_vec(), outputs }
}

#[test]
fn one_output_gives_its_values_and_several_give_objects() {
    let of = |tensor| encode(&["y"], 2, &[part(&[0, 1], vec![tensor])]).unwrap();
    assert_eq!(of(floats(&[2], &[0.3, 1.0])), r#"{"predictions":[0.3,1.0]}"#);
    assert_eq!(of(floats(&[2, 1], &[0.3, f32::NAN])), r#"{"predictions":[[0.3],["NaN"]]}"#);
    assert_eq!(
        of(floats(&[2, 2, 2], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0])),
        r#"{"predictions":[[[1.0,2.0],[3.0,4.0]],[[5.0,6.0],[7.0,8.0]]]}"#
    );
    assert_eq!(of(texts(&[2, 2], &["a", "", "ü\"", "d"])), r#"{"predictions":[["a",""],["ü\"","d"]]}"#);
    assert_eq!(of(texts(&[2], &["a", "b"])), r#"{"predictions":["a","b"]}"#);
    assert_eq!(of(floats(&[2, 0], &[])), r#"{"predictions":[[],[]]}"#);
    let two = part(&[0], vec![floats(&[1, 1], &[0.5]), texts(&[1], &["x"])]);
    assert_eq!(encode(&["y", "na\"me"], 1, &[two]).unwrap(), r#"{"predictions":[{"y":[0.5],"na\"me":"x"}]}"#);
    assert_eq!(encode(&["y"], 0, &[]).unwrap(), r#"{"predictions":[]}"#);
}

#[test]
fn parts_come_back_in_the_order_of_the_instances() {
    let parts = [
        part(&[1, 3], vec![floats(&[2, 1], &[1.0, 3.0])]),
        part(&[0, 2], vec![floats(&[2, 1], &[0.0, 2.0])]),
    ];
    assert_eq!(encode(&["y"], 4, &parts).unwrap(), r#"{"predictions":[[0.0],[1.0],[2.0],[3.0]]}"#);
}

#[test]
fn an_output_without_a_row_an_instance_is_a_fault_of_the_model() {
    let error = encode(&["y"], 2, &[part(&[0, 1], vec![floats(&[3], &[1.0, 2.0, 3.0])])]).unwrap_err();
    assert!(error.contains("output `y` has the shape [3] for 2 instances"), "{error}");
    let error = encode(&["y"], 2, &[part(&[1], vec![floats(&[1], &[1.0])])]).unwrap_err();
    assert!(error.contains("instance 0 has no prediction"), "{error}");
}
