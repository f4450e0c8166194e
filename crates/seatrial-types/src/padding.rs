//! How requests of different lengths are made equally long, and their answers short again. What may be padded with
//! which value is found by the package's probe; here it is only applied.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{DataType, Dim, Signature, Tensor, TensorSpec};

/// What was found about padding, by the names of the signature.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Padding {
    /// Every input that has the length as a dimension.
    pub inputs: BTreeMap<String, PadInput>,
    /// The axis of every output that follows the length; it is cut back to what each request came with.
    #[serde(default)]
    pub outputs: BTreeMap<String, usize>,
}

/// How one input is lengthened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PadInput {
    /// The axis of the length; never 0, which counts rows.
    pub axis: usize,
    /// What is appended, such as 0 for a mask.
    pub value: i64,
}

/// A [`Padding`] held against its signature: one entry for each input and output, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PadPlan {
    inputs: Vec<Option<PadInput>>,
    outputs: Vec<Option<usize>>,
    longest: Option<usize>,
}

impl PadPlan {
    /// `Err` says what does not fit the signature.
    pub fn new(padding: &Padding, signature: &Signature) -> Result<Self, String> {
        if padding.inputs.is_empty() {
            return Err("`padding.inputs` is empty: expected at least one input".to_owned());
        }
        let (inputs, outputs) = (&signature.inputs, &signature.outputs);
        known("inputs", padding.inputs.keys(), inputs)?;
        known("outputs", padding.outputs.keys(), outputs)?;
        for (name, pad) in &padding.inputs {
            check_input(name, *pad, inputs)?;
        }
        for (name, axis) in &padding.outputs {
            check_axis("outputs", name, *axis, outputs)?;
        }
        let longest = inputs.iter().filter_map(|spec| {
            let pad = padding.inputs.get(&spec.name)?;
            bound(spec, pad.axis)
        });
        Ok(Self {
            longest: longest.min(),
            inputs: inputs.iter().map(|spec| padding.inputs.get(&spec.name).copied()).collect(),
            outputs: outputs.iter().map(|spec| padding.outputs.get(&spec.name).copied()).collect(),
        })
    }

    /// How each input is lengthened, in signature order.
    pub fn inputs(&self) -> &[Option<PadInput>] {
        &self.inputs
    }

    /// The axis on which each output is cut back, in signature order.
    pub fn outputs(&self) -> &[Option<usize>] {
        &self.outputs
    }

    /// The largest length that the signature allows, where it says one.
    pub const fn longest(&self) -> Option<usize> {
        self.longest
    }

    /// The length that all padded inputs share; `None` when they do not, and then the request must not be padded.
    pub fn length(&self, inputs: &[Tensor]) -> Option<usize> {
        let mut lengths = self.inputs.iter().zip(inputs).filter_map(|(pad, input)| {
            let axis = pad.as_ref()?.axis;
            Some(input.shape.get(axis).copied())
        });
        let first = lengths.next()??;
        lengths.all(|length| length == Some(first)).then_some(first)
    }
}

fn known<'a>(
    side: &str,
    mut names: impl Iterator<Item = &'a String>,
    specs: &[TensorSpec],
) -> Result<(), String> {
    match names.find(|name| !specs.iter().any(|spec| spec.name == **name)) {
        Some(name) => Err(format!("`padding.{side}.{name}`: the signature has no `{name}` among its {side}")),
        None => Ok(()),
    }
}

fn check_axis(side: &str, name: &str, axis: usize, specs: &[TensorSpec]) -> Result<(), String> {
    let dim = specs.iter().find(|spec| spec.name == name).and_then(|spec| spec.shape.get(axis));
    if axis > 0 && matches!(dim, Some(Dim::Free { .. })) {
        return Ok(());
    }
    Err(format!("`padding.{side}.{name}` names axis {axis}: expected a free dimension other than the first"))
}

fn check_input(name: &str, pad: PadInput, specs: &[TensorSpec]) -> Result<(), String> {
    check_axis("inputs", name, pad.axis, specs)?;
    let Some(spec) = specs.iter().find(|spec| spec.name == name) else { return Ok(()) };
    let Some((low, high)) = legal(spec.datatype) else {
        return Err(format!("`padding.inputs.{name}` is of texts: expected a numeric input"));
    };
    if (low..=high).contains(&pad.value) {
        return Ok(());
    }
    let (value, datatype) = (pad.value, spec.datatype.name());
    Err(format!("`padding.inputs.{name}.value` is {value}: expected {low} to {high} for {datatype}"))
}

/// Whole numbers that every reader of a type takes for the same; of half floats that is zero.
const fn legal(datatype: DataType) -> Option<(i64, i64)> {
    Some(match datatype {
        DataType::Bool => (0, 1),
        DataType::U8 => (0, u8::MAX as i64),
        DataType::I8 => (i8::MIN as i64, i8::MAX as i64),
        DataType::U16 => (0, u16::MAX as i64),
        DataType::I16 => (i16::MIN as i64, i16::MAX as i64),
        DataType::U32 => (0, u32::MAX as i64),
        DataType::I32 => (i32::MIN as i64, i32::MAX as i64),
        DataType::U64 => (0, i64::MAX),
        DataType::I64 => (i64::MIN, i64::MAX),
        DataType::F32 | DataType::F64 => (-(1 << 24), 1 << 24),
        DataType::F16 | DataType::BF16 => (0, 0),
        DataType::Bytes => return None,
    })
}

fn bound(spec: &TensorSpec, axis: usize) -> Option<usize> {
    match spec.shape.get(axis) {
        Some(Dim::Free { max, .. }) => *max,
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn spec(name: &str, datatype: DataType, inner: Dim) -> TensorSpec {
        let shape = vec![Dim::Free { name: "batch".to_owned(), max: None }, inner];
        TensorSpec { name: name.to_owned(), datatype, shape, range: None, labels: None }
    }

    fn tokens(max: Option<usize>) -> Dim {
        Dim::Free { name: "tokens".to_owned(), max }
    }

    fn signature() -> Signature {
        Signature {
            inputs: vec![
                spec("ids", DataType::I64, tokens(Some(256))),
                spec("user", DataType::F32, Dim::Fixed(3)),
                spec("mask", DataType::I8, tokens(None)),
                spec("words", DataType::Bytes, tokens(None)),
            ],
            outputs: vec![
                spec("pooled", DataType::F32, Dim::Fixed(3)),
                spec("each", DataType::F32, tokens(None)),
            ],
        }
    }

    fn plan(text: &str) -> Result<PadPlan, String> {
        let pad = |part: &str| {
            let (name, rest) = part.split_once(':').unwrap();
            let (axis, value) = rest.split_once('=').unwrap();
            (name.to_owned(), PadInput { axis: axis.parse().unwrap(), value: value.parse().unwrap() })
        };
        let inputs = text.split_whitespace().map(pad).collect();
        PadPlan::new(&Padding { inputs, outputs: [("each".to_owned(), 1)].into() }, &signature())
    }

    #[test]
    fn the_length_is_what_the_padded_inputs_share() {
        let plan = plan("ids:1=5 mask:1=0").unwrap();
        let of = |ids: usize, mask: usize| {
            let tensor = |n| Tensor { datatype: DataType::I64, shape: vec![1, n], data: Bytes::new() };
            plan.length(&[tensor(ids), tensor(3), tensor(mask)])
        };
        assert_eq!((of(7, 7), of(7, 8), of(0, 0)), (Some(7), None, Some(0)));
        assert_eq!(plan.longest(), Some(256));
        assert_eq!(plan.outputs(), [None, Some(1)]);
        assert_eq!(plan.inputs()[1], None);
    }

    #[test]
    fn what_does_not_fit_the_signature_is_named() {
        for (text, expected) in [
            ("", "`padding.inputs` is empty"),
            ("idz:1=0", "no `idz` among its inputs"),
            ("ids:0=0", "`padding.inputs.ids` names axis 0"),
            ("user:1=0", "`padding.inputs.user` names axis 1"),
            ("words:1=0", "`padding.inputs.words` is of texts"),
            ("mask:1=300", "is 300: expected -128 to 127 for INT8"),
        ] {
            let error = plan(text).unwrap_err();
            assert!(error.contains(expected), "`{text}` gave: {error}");
        }
    }
}
