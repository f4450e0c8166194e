//! An inference request as a protocol buffer, as gRPC carries it: read straight against the signature of its model.
//! Rules of its own: FP16 and BF16 travel raw only, and an answer is raw when its request was.

mod contents;
mod descriptions;
mod parameters;
mod reply;
mod wire;

use std::time::Duration;

use bytes::Bytes;
use seatrial_types::{DataType, Result, Signature, Tensor, TensorSpec};

pub use self::{
    descriptions::{
        model_config_message, model_metadata_message, model_stats_message, repository_index_message,
    },
    reply::{Envelope, encode_message, stream_error},
};
use self::{
    parameters::{InputParameters, OutputParameters, RequestParameters},
    wire::{Fields, Value, chunk, mistyped, shared, text},
};
use crate::{
    binary::{check_content, check_size},
    call::{InferCall, OutputChoice, all_outputs},
    decode::{check_names, find, unknown_outputs},
    fit::{check_range, check_shape, check_together},
    refusal::{Checked, Names, own_names, quote, refuse},
};

/// The most inputs, outputs, parameters or raw contents of one message: far beyond any model, and a bound for what a
/// message of nothing but empty parts costs.
const MOST_PARTS: usize = 10_000;

/// A `ModelInferRequest` whose outermost fields are known: enough to find the model that it is for.
#[derive(Clone, Debug, Default)]
pub struct InferMessage {
    whole: Bytes,
    model_name: String,
    model_version: String,
    id: String,
    parameters: Vec<Bytes>,
    inputs: Vec<Bytes>,
    outputs: Vec<Bytes>,
    raw: Vec<Bytes>,
}

impl InferMessage {
    /// Looks at the outermost fields only.
    pub fn read(message: Bytes) -> Result<Self> {
        let found = Self::scan(&message)?;
        Ok(Self { whole: message, ..found })
    }

    /// The model that is asked.
    pub fn model_name(&self) -> &str {
        &self.model_name
    }

    /// The version that is asked; `None` leaves the choice to the server.
    pub fn model_version(&self) -> Option<&str> {
        Some(self.model_version.as_str()).filter(|version| !version.is_empty())
    }

    /// The client's own name for the request; may be empty.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Bytes of the whole message.
    pub fn size(&self) -> usize {
        self.whole.len()
    }

    /// Decodes and validates against the signature of the model.
    pub fn decode(&self, signature: &Signature) -> Result<InferCall> {
        Ok(self.checked(signature)?)
    }

    fn scan(message: &Bytes) -> Checked<Self> {
        let mut found = Self::default();
        let mut fields = Fields::new(message);
        while let Some((number, value)) = fields.next()? {
            match number {
                1 => text("model_name", value)?.clone_into(&mut found.model_name),
                2 => text("model_version", value)?.clone_into(&mut found.model_version),
                3 => text("id", value)?.clone_into(&mut found.id),
                4 => add(&mut found.parameters, message, "parameters", value)?,
                5 => add(&mut found.inputs, message, "inputs", value)?,
                6 => add(&mut found.outputs, message, "outputs", value)?,
                7 => add(&mut found.raw, message, "raw_input_contents", value)?,
                _ => {}
            }
        }
        Ok(found)
    }

    fn checked(&self, signature: &Signature) -> Checked<InferCall> {
        let parameters = RequestParameters::read(&self.parameters)?;
        let inputs = self.tensors(signature)?;
        let rows = check_together(signature, &inputs)?;
        // A model without inputs is asked by raw means, as by every client that knows it.
        let raw = !self.raw.is_empty() || self.inputs.is_empty();
        let outputs = self.choices(signature, raw)?;
        let timeout = Some(parameters.timeout_us).filter(|us| *us > 0).map(Duration::from_micros);
        let id = Some(self.id.clone()).filter(|id| !id.is_empty());
        Ok(InferCall { id, inputs, rows, outputs, timeout, priority: parameters.priority })
    }

    fn tensors(&self, signature: &Signature) -> Checked<Vec<Tensor>> {
        if !self.raw.is_empty() && self.raw.len() != self.inputs.len() {
            return Err(refuse(format!(
                "raw_input_contents has {} entries for {} inputs; expected one for each, or typed contents for all",
                self.raw.len(),
                self.inputs.len()
            )));
        }
        let specs = &signature.inputs;
        let mut tensors: Vec<Option<Tensor>> = specs.iter().map(|_| None).collect();
        let mut unknown = Names::default();
        for (n, input) in self.inputs.iter().enumerate() {
            let input = Input::read(input)?;
            let Some(index) = find(specs, input.name, n) else {
                unknown.add(input.name);
                continue;
            };
            let (Some(spec), Some(place)) = (specs.get(index), tensors.get_mut(index)) else { continue };
            if place.is_some() {
                return Err(refuse(format!("input {} is given twice", quote(input.name))));
            }
            *place = Some(input.tensor(spec, self.raw.get(n))?);
        }
        check_names(specs, &tensors, &unknown, !self.inputs.is_empty())?;
        Ok(tensors.into_iter().flatten().collect())
    }

    fn choices(&self, signature: &Signature, raw: bool) -> Checked<Vec<OutputChoice>> {
        if self.outputs.is_empty() {
            return Ok(all_outputs(signature, raw));
        }
        let specs = &signature.outputs;
        let (mut choices, mut unknown) = (Vec::<OutputChoice>::new(), Names::default());
        for output in &self.outputs {
            let (name, parameters) = asked(output)?;
            match find(specs, name, choices.len()) {
                None => unknown.add(name),
                Some(index) if choices.iter().any(|other| other.index == index) => {
                    return Err(refuse(format!("output {} is asked for twice", quote(name))));
                }
                Some(index) => {
                    let classification = parameters.classification;
                    choices.push(OutputChoice { index, binary: raw, classification });
                }
            }
        }
        unknown_outputs(specs, &unknown)?;
        Ok(choices)
    }
}

fn add(list: &mut Vec<Bytes>, whole: &Bytes, what: &str, value: Value<'_>) -> Checked<()> {
    if list.len() == MOST_PARTS {
        return Err(refuse(format!("`{what}` has more than {MOST_PARTS} entries")));
    }
    list.push(shared(whole, chunk(what, value)?));
    Ok(())
}

/// Name and parameters of a requested output.
fn asked(message: &[u8]) -> Checked<(&str, OutputParameters)> {
    let (mut name, mut parameters) = ("", OutputParameters::default());
    let mut fields = Fields::new(message);
    while let Some((number, value)) = fields.next()? {
        match number {
            1 => name = text("outputs.name", value)?,
            2 => parameters.take(chunk("outputs.parameters", value)?)?,
            _ => {}
        }
    }
    if name.is_empty() { Err(refuse("an output has no `name`")) } else { Ok((name, parameters)) }
}

/// One `InferInputTensor`, its values not yet read.
#[derive(Default)]
struct Input<'a> {
    name: &'a str,
    datatype: &'a str,
    shape: Vec<usize>,
    contents: Option<&'a [u8]>,
}

impl<'a> Input<'a> {
    fn read(message: &'a [u8]) -> Checked<Self> {
        let mut input = Self::default();
        let mut fields = Fields::new(message);
        while let Some((number, value)) = fields.next()? {
            match number {
                1 => input.name = text("inputs.name", value)?,
                2 => input.datatype = text("inputs.datatype", value)?,
                3 => input.sizes(value)?,
                4 => InputParameters::check(chunk("inputs.parameters", value)?)?,
                5 if input.contents.is_some() => {
                    return Err(refuse(format!("input {} has contents twice", quote(input.name))));
                }
                5 => input.contents = Some(chunk("inputs.contents", value)?),
                _ => {}
            }
        }
        if input.name.is_empty() { Err(refuse("an input has no `name`")) } else { Ok(input) }
    }

    /// A packed list, or a single size.
    fn sizes(&mut self, value: Value<'_>) -> Checked<()> {
        match value {
            Value::Varint(size) => self.size(size),
            Value::Chunk(list) => {
                let mut fields = Fields::new(list);
                while let Some(size) = fields.packed_varint()? {
                    self.size(size)?;
                }
                Ok(())
            }
            _ => Err(mistyped("inputs.shape")),
        }
    }

    fn size(&mut self, size: u64) -> Checked<()> {
        let known = i64::try_from(size).ok().and_then(|size| usize::try_from(size).ok());
        let size = known.ok_or_else(|| {
            refuse(format!(
                "`{}` in `shape` is not a size; expected whole numbers from 0",
                size.cast_signed()
            ))
        })?;
        if self.shape.len() == MOST_PARTS {
            return Err(refuse(format!("`shape` has more than {MOST_PARTS} sizes")));
        }
        self.shape.push(size);
        Ok(())
    }

    fn tensor(self, spec: &TensorSpec, raw: Option<&Bytes>) -> Checked<Tensor> {
        let Self { datatype, shape, contents, .. } = self;
        let name = &spec.name;
        match DataType::from_name(datatype) {
            Some(datatype) if datatype == spec.datatype => {}
            Some(datatype) => {
                let expected = spec.datatype;
                return Err(refuse(format!("input `{name}`: datatype is {datatype}, expected {expected}")));
            }
            None if datatype.is_empty() => return Err(refuse(format!("input `{name}` has no `datatype`"))),
            None => {
                let known = own_names(DataType::ALL.into_iter().map(DataType::name));
                let came = quote(datatype);
                return Err(refuse(format!("datatype {came} does not exist; expected one of {known}")));
            }
        }
        check_shape(spec, &shape)?;
        let data = match (raw, contents.filter(|contents| !contents.is_empty())) {
            (Some(_), Some(_)) => {
                return Err(refuse(format!("input `{name}` has both contents and raw_input_contents")));
            }
            (Some(raw), None) => {
                check_size(spec, &shape, raw.len(), "raw_input_contents")?;
                raw.clone()
            }
            (None, contents) => contents::read(spec, &shape, contents.unwrap_or_default())?,
        };
        let tensor = Tensor { datatype: spec.datatype, shape, data };
        check_content(spec, &tensor)?;
        check_range(spec, &tensor)?;
        Ok(tensor)
    }
}
