//! An inference request: JSON, and the binary parts behind it, to validated tensors in signature order.

use std::{borrow::Cow, time::Duration};

use bytes::Bytes;
use seatrial_types::{DataType, Result, Signature, Tensor, TensorSpec};

use crate::{
    binary::{HEADER, check_size, decode_raw, share_out},
    call::{InferCall, OutputChoice, all_outputs},
    elements,
    fit::{check_range, check_shape, check_together},
    json::Reader,
    number::Number,
    parameters::{InputParameters, OutputParameters, RequestParameters},
    refusal::{Checked, Names, Refusal, own_names, quote, refuse},
};

/// Decodes an inference request against the signature of its model. `header_length` is the value of the header
/// `Inference-Header-Content-Length`: how much of the body is JSON, and 0 for a body that is one bare tensor.
///
/// Keys come in any order. Keys that the protocol does not have are skipped; those it has may come once.
pub fn decode_infer(
    signature: &Signature,
    mut body: Bytes,
    header_length: Option<usize>,
) -> Result<InferCall> {
    let binary = match header_length {
        Some(0) => return Ok(decode_raw(signature, body)?),
        Some(length) if length > body.len() => {
            let got = body.len();
            return Err(refuse(format!("{HEADER} is {length}, the body has {got} bytes")).into());
        }
        Some(length) => Some(body.split_off(length)),
        None => None,
    };
    Ok(decode(signature, &body, binary)?)
}

fn decode(signature: &Signature, json: &[u8], binary: Option<Bytes>) -> Checked<InferCall> {
    if json.is_empty() {
        return Err(refuse("the body is empty; expected a JSON object with `inputs`"));
    }
    let mut reader = Reader::new(json);
    let mut draft = Draft::new(signature);
    reader.object("a JSON object", |reader, key| draft.key(reader, key))?;
    reader.finish()?;
    draft.finish(binary)
}

/// What has been read of a request so far.
struct Draft<'s> {
    signature: &'s Signature,
    id_seen: bool,
    id: Option<String>,
    inputs_seen: bool,
    tensors: Vec<Option<Tensor>>,
    /// Place in the signature and declared size of the inputs whose bytes follow, in order of appearance.
    binary: Vec<(usize, usize)>,
    unknown: Names,
    asked: Option<Vec<Asked>>,
    parameters: Option<RequestParameters>,
}

/// An entry of `outputs`. Whether it is binary may depend on parameters that come later.
struct Asked {
    index: usize,
    parameters: OutputParameters,
}

impl<'s> Draft<'s> {
    fn new(signature: &'s Signature) -> Self {
        Self {
            signature,
            id_seen: false,
            id: None,
            inputs_seen: false,
            tensors: signature.inputs.iter().map(|_| None).collect(),
            binary: Vec::new(),
            unknown: Names::default(),
            asked: None,
            parameters: None,
        }
    }

    fn key(&mut self, reader: &mut Reader<'_>, key: &str) -> Checked<()> {
        match key {
            "id" if self.id_seen => Err(twice(key)),
            "id" => {
                self.id_seen = true;
                self.id = read_id(reader)?;
                Ok(())
            }
            "inputs" if self.inputs_seen => Err(twice(key)),
            "inputs" => {
                self.inputs_seen = true;
                reader.list("a list of inputs for `inputs`", |reader| self.input(reader))
            }
            "outputs" if reader.literal("null") => set_once(&mut self.asked, key, Vec::new()),
            "outputs" => {
                let asked = read_outputs(reader, self.signature)?;
                set_once(&mut self.asked, key, asked)
            }
            "parameters" => set_once(&mut self.parameters, key, RequestParameters::read(reader)?),
            _ => reader.skip_value(),
        }
    }

    fn input(&mut self, reader: &mut Reader<'_>) -> Checked<()> {
        let mut input = Input { expected: self.expected(), ..Input::new(self.signature) };
        reader.object("an object for each of `inputs`", |reader, key| input.key(reader, key))?;
        let Some(index) = input.index else {
            let name = input.name.as_deref().ok_or_else(|| refuse("an input has no `name`"))?;
            self.unknown.add(name);
            return Ok(());
        };
        let tensor = input.finish(*reader)?;
        let place = self.tensors.get_mut(index).filter(|place| place.is_none());
        let place = place.ok_or_else(|| refuse(format!("input {} is given twice", input.quoted_name())))?;
        *place = Some(tensor);
        if let Some(size) = input.binary_size() {
            self.binary.push((index, size));
        }
        Ok(())
    }

    /// Where an input most likely belongs: clients follow the order of the signature.
    fn expected(&self) -> usize {
        self.tensors.iter().position(Option::is_none).unwrap_or(0)
    }

    fn finish(mut self, binary: Option<Bytes>) -> Checked<InferCall> {
        check_names(&self.signature.inputs, &self.tensors, &self.unknown, self.inputs_seen)?;
        if let (None, Some((index, size))) = (&binary, self.binary.first()) {
            let name = self.signature.inputs.get(*index).map_or("", |spec| &spec.name);
            return Err(refuse(format!(
                "input `{name}` has binary_data_size {size}, but there is no header {HEADER}"
            )));
        }
        share_out(self.signature, &self.binary, &mut self.tensors, binary.unwrap_or_default())?;
        let inputs: Vec<Tensor> = self.tensors.into_iter().flatten().collect();
        let rows = check_together(self.signature, &inputs)?;
        let parameters = self.parameters.unwrap_or_default();
        let outputs = match self.asked.filter(|asked| !asked.is_empty()) {
            None => all_outputs(self.signature, parameters.binary_output),
            Some(asked) => asked.iter().map(|asked| asked.choice(parameters.binary_output)).collect(),
        };
        let timeout = Some(parameters.timeout_us).filter(|us| *us > 0).map(Duration::from_micros);
        Ok(InferCall { id: self.id, inputs, rows, outputs, timeout, priority: parameters.priority })
    }
}

impl Asked {
    fn choice(&self, binary_output: bool) -> OutputChoice {
        OutputChoice {
            index: self.index,
            binary: self.parameters.binary.unwrap_or(binary_output),
            classification: self.parameters.classification,
        }
    }
}

/// What has been read of one input so far. Data that comes before the shape is passed over and read afterwards.
struct Input<'s, 'a> {
    signature: &'s Signature,
    expected: usize,
    index: Option<usize>,
    name: Option<Cow<'a, str>>,
    datatype: Option<DataType>,
    shape: Option<Vec<usize>>,
    data_at: Option<usize>,
    data: Option<Bytes>,
    parameters: Option<InputParameters>,
}

impl<'s, 'a> Input<'s, 'a> {
    fn new(signature: &'s Signature) -> Self {
        Self {
            signature,
            expected: 0,
            index: None,
            name: None,
            datatype: None,
            shape: None,
            data_at: None,
            data: None,
            parameters: None,
        }
    }

    fn key(&mut self, reader: &mut Reader<'a>, key: &str) -> Checked<()> {
        match key {
            "name" => {
                let name = reader.string()?;
                self.index = find(&self.signature.inputs, &name, self.expected);
                set_once(&mut self.name, key, name)
            }
            "datatype" => set_once(&mut self.datatype, key, read_datatype(reader)?),
            "shape" => set_once(&mut self.shape, key, read_shape(reader)?),
            "data" => {
                reader.skip_space();
                set_once(&mut self.data_at, key, reader.at())?;
                match (self.index, &self.shape) {
                    (Some(index), Some(shape)) if self.datatype.is_some() => {
                        self.data = Some(self.read_data(reader, index, shape)?);
                        Ok(())
                    }
                    _ => reader.skip_value(),
                }
            }
            "parameters" => set_once(&mut self.parameters, key, InputParameters::read(reader)?),
            _ => reader.skip_value(),
        }
    }

    fn spec(&self, index: usize) -> Checked<&'s TensorSpec> {
        self.signature.inputs.get(index).ok_or_else(|| refuse("no such input"))
    }

    fn read_data(&self, reader: &mut Reader<'a>, index: usize, shape: &[usize]) -> Checked<Bytes> {
        let spec = self.spec(index)?;
        self.check(spec, shape)?;
        elements::read(reader, spec, shape)
    }

    fn check(&self, spec: &TensorSpec, shape: &[usize]) -> Checked<()> {
        match self.datatype {
            Some(datatype) if datatype == spec.datatype => check_shape(spec, shape),
            Some(datatype) => Err(refuse(format!(
                "input `{}`: datatype is {datatype}, expected {}",
                spec.name, spec.datatype
            ))),
            None => Err(refuse(format!("input `{}` has no `datatype`", spec.name))),
        }
    }

    /// The tensor, still without its bytes if they follow the JSON. `reader` may stand anywhere in the same text.
    fn finish(&mut self, mut reader: Reader<'a>) -> Checked<Tensor> {
        let index = self.index.unwrap_or_default();
        let spec = self.spec(index)?;
        let shape =
            self.shape.take().ok_or_else(|| refuse(format!("input `{}` has no `shape`", spec.name)))?;
        self.check(spec, &shape)?;
        let data = match (self.data.take(), self.data_at, self.binary_size()) {
            (_, Some(_), Some(_)) => {
                return Err(refuse(format!("input `{}` has both `data` and binary_data_size", spec.name)));
            }
            (Some(data), ..) => data,
            (None, Some(at), None) => {
                reader.go_to(at);
                elements::read(&mut reader, spec, &shape)?
            }
            (None, None, Some(size)) => {
                check_size(spec, &shape, size, "binary_data_size")?;
                return Ok(Tensor { datatype: spec.datatype, shape, data: Bytes::new() });
            }
            (None, None, None) => {
                return Err(refuse(format!("input `{}` has neither `data` nor binary_data_size", spec.name)));
            }
        };
        let tensor = Tensor { datatype: spec.datatype, shape, data };
        check_range(spec, &tensor)?;
        Ok(tensor)
    }

    fn binary_size(&self) -> Option<usize> {
        self.parameters.as_ref().and_then(|parameters| parameters.binary_size)
    }

    fn quoted_name(&self) -> String {
        quote(self.name.as_deref().unwrap_or_default())
    }
}

/// Every input is there and no other. `seen` tells whether the request had inputs at all.
pub(crate) fn check_names(
    all: &[TensorSpec],
    tensors: &[Option<Tensor>],
    unknown: &Names,
    seen: bool,
) -> Checked<()> {
    let missing: Vec<&str> =
        tensors.iter().zip(all).filter(|(tensor, _)| tensor.is_none()).map(|(_, spec)| &*spec.name).collect();
    if missing.is_empty() && unknown.is_empty() {
        return Ok(());
    }
    let mut parts = Vec::new();
    if !seen {
        parts.push("no `inputs`".to_owned());
    }
    if !missing.is_empty() {
        let count = missing.len();
        let quoted: Vec<String> = missing.iter().map(|name| format!("`{name}`")).collect();
        parts.push(format!("missing input{} {}", s(count), own_names(quoted.iter().map(String::as_str))));
    }
    if !unknown.is_empty() {
        parts.push(format!("unknown input{} {unknown}", s(unknown.count())));
    }
    let takes = own_names(all.iter().map(|spec| spec.name.as_str()));
    Err(refuse(format!("{}; the model takes {takes}", parts.join("; "))))
}

/// The place of a name, tried first where it most likely is.
pub(crate) fn find(specs: &[TensorSpec], name: &str, expected: usize) -> Option<usize> {
    if specs.get(expected).is_some_and(|spec| spec.name == name) {
        return Some(expected);
    }
    specs.iter().position(|spec| spec.name == name)
}

fn read_id(reader: &mut Reader<'_>) -> Checked<Option<String>> {
    if reader.literal("null") {
        return Ok(None);
    }
    if reader.peek() != Some(b'"') {
        return Err(refuse(format!("`id` must be a string, got {}", reader.token())));
    }
    reader.string().map(|id| Some(id.into_owned()))
}

fn read_datatype(reader: &mut Reader<'_>) -> Checked<DataType> {
    let name = reader.string()?;
    DataType::from_name(&name).ok_or_else(|| {
        let known = own_names(DataType::ALL.into_iter().map(DataType::name));
        refuse(format!("datatype {} does not exist; expected one of {known}", quote(&*name)))
    })
}

fn read_shape(reader: &mut Reader<'_>) -> Checked<Vec<usize>> {
    let mut shape = Vec::new();
    reader.list("a list of sizes for `shape`", |reader| {
        reader.skip_space();
        let before = *reader;
        let size = reader.number().and_then(Number::to_u64).and_then(|n| usize::try_from(n).ok());
        shape.push(size.ok_or_else(|| {
            before.clone().scalar().err().unwrap_or_else(|| {
                refuse(format!("{} in `shape` is not a size; expected whole numbers from 0", before.token()))
            })
        })?);
        Ok(())
    })?;
    Ok(shape)
}

fn read_outputs(reader: &mut Reader<'_>, signature: &Signature) -> Checked<Vec<Asked>> {
    let specs = &signature.outputs;
    let (mut asked, mut unknown) = (Vec::<Asked>::new(), Names::default());
    reader.list("a list of outputs for `outputs`", |reader| {
        let (mut name, mut parameters) = (None, None);
        reader.object("an object for each of `outputs`", |reader, key| match key {
            "name" => set_once(&mut name, key, reader.string()?.into_owned()),
            "parameters" => set_once(&mut parameters, key, OutputParameters::read(reader)?),
            _ => reader.skip_value(),
        })?;
        let name = name.ok_or_else(|| refuse("an output has no `name`"))?;
        match find(specs, &name, asked.len()) {
            None => unknown.add(&name),
            Some(index) if asked.iter().any(|other| other.index == index) => {
                return Err(refuse(format!("output {} is asked for twice", quote(name))));
            }
            Some(index) => asked.push(Asked { index, parameters: parameters.unwrap_or_default() }),
        }
        Ok(())
    })?;
    unknown_outputs(specs, &unknown)?;
    Ok(asked)
}

/// Refuses outputs that nobody knows.
pub(crate) fn unknown_outputs(specs: &[TensorSpec], unknown: &Names) -> Checked<()> {
    if unknown.is_empty() {
        return Ok(());
    }
    let gives = own_names(specs.iter().map(|spec| spec.name.as_str()));
    Err(refuse(format!("unknown output{} {unknown}; the model gives {gives}", s(unknown.count()))))
}

pub(crate) fn set_once<T>(slot: &mut Option<T>, key: &str, value: T) -> Checked<()> {
    if slot.is_some() {
        return Err(twice(key));
    }
    *slot = Some(value);
    Ok(())
}

#[cold]
fn twice(key: &str) -> Refusal {
    refuse(format!("the key {} stands twice in one object", quote(key)))
}

fn s(count: usize) -> &'static str {
    if count == 1 { "" } else { "s" }
}
