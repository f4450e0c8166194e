//! What the graph takes and gives, read from an open session and compared with the signature.

use ort_sys::{ONNXTensorElementDataType, ONNXType, OrtSession, OrtTensorTypeAndShapeInfo, OrtTypeInfo};
use seatrial_types::{DataType, Dim, Signature, TensorSpec};

use crate::{
    SessionError,
    api::{Api, Fault, Owned, call, text},
};

/// `ONNX_TYPE_TENSOR`.
const KIND_TENSOR: i32 = 1;

/// One input or output of the graph.
#[derive(Debug)]
struct Port {
    name: String,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    /// A tensor: its type where the protocol has it, and its dimensions where the graph gives them. A free dimension
    /// is `None`.
    Tensor { datatype: Result<DataType, i32>, shape: Option<Vec<Option<usize>>> },
    /// Anything else: a sequence, a map, an optional.
    Other(i32),
}

/// Refuses a session whose graph is not what the signature says.
pub(crate) fn check(api: Api, session: *const OrtSession, signature: &Signature) -> Result<(), SessionError> {
    // SAFETY: the caller's session is live and `api` is the table that it came from.
    let (inputs, outputs) =
        unsafe { read(api, session) }.map_err(|fault| SessionError::Runtime(fault.to_string()))?;
    compare("input", &inputs, &signature.inputs)?;
    compare("output", &outputs, &signature.outputs)?;
    inputs.iter().try_for_each(|port| sizes(port, &signature.inputs))
}

fn compare(what: &str, ports: &[Port], specs: &[TensorSpec]) -> Result<(), SessionError> {
    for port in ports {
        let Kind::Tensor { datatype, shape } = &port.kind else { return Err(no_tensor(what, port)) };
        let spec = specs.iter().find(|spec| spec.name == port.name);
        let spec =
            spec.ok_or_else(|| differs(format!("the {what} `{}` is not in the signature", port.name)))?;
        let datatype = datatype.map_err(|code| no_type(what, port, code))?;
        if datatype != spec.datatype {
            return Err(differs(format!(
                "the {what} `{}` is {datatype} in the graph and {} in the signature",
                port.name, spec.datatype
            )));
        }
        if let Some(shape) = shape
            && shape.len() != spec.shape.len()
        {
            return Err(differs(format!(
                "the {what} `{}` has {} dimensions in the graph and {} in the signature",
                port.name,
                shape.len(),
                spec.shape.len()
            )));
        }
    }
    match specs.iter().find(|spec| !ports.iter().any(|port| port.name == spec.name)) {
        Some(spec) => Err(differs(format!("the graph has no {what} `{}`", spec.name))),
        None => Ok(()),
    }
}

/// A size that the graph fixes for an input must be fixed in the signature too, or every request of another size
/// fails. Outputs are left out: what exporters write there is often wrong and nothing depends on it.
fn sizes(port: &Port, specs: &[TensorSpec]) -> Result<(), SessionError> {
    let (Kind::Tensor { shape: Some(shape), .. }, Some(spec)) =
        (&port.kind, specs.iter().find(|spec| spec.name == port.name))
    else {
        return Ok(());
    };
    for (at, (size, dim)) in shape.iter().zip(&spec.shape).enumerate() {
        let Some(size) = size else { continue };
        let promised = match dim {
            Dim::Fixed(promised) if promised == size => continue,
            Dim::Fixed(promised) => promised.to_string(),
            Dim::Free { name, .. } => format!("free (`{name}`)"),
        };
        return Err(differs(format!(
            "dimension {at} of the input `{}` is {size} in the graph and {promised} in the signature",
            port.name
        )));
    }
    Ok(())
}

fn differs(text: String) -> SessionError {
    SessionError::Signature(text)
}

fn no_tensor(what: &str, port: &Port) -> SessionError {
    let kind = match port.kind {
        Kind::Other(2) => "a sequence",
        Kind::Other(3) => "a map",
        Kind::Other(5) => "a sparse tensor",
        Kind::Other(6) => "an optional value",
        _ => "no tensor",
    };
    SessionError::Unsupported(format!("the {what} `{}` is {kind}, only tensors can be served", port.name))
}

fn no_type(what: &str, port: &Port, code: i32) -> SessionError {
    SessionError::Unsupported(format!(
        "the {what} `{}` has the ONNX element type {code}, which the protocol does not have",
        port.name
    ))
}

/// # Safety
/// `session` is live and came from `api`.
unsafe fn read(api: Api, session: *const OrtSession) -> Result<(Vec<Port>, Vec<Port>), Fault> {
    let (mut n_inputs, mut n_outputs) = (0, 0);
    // SAFETY: the session is live; the counts are ours.
    unsafe {
        call!(api, SessionGetInputCount(session, &raw mut n_inputs))?;
        call!(api, SessionGetOutputCount(session, &raw mut n_outputs))?;
    }
    // SAFETY: each index is below the count, the out pointers come from `port`, and the functions are a pair.
    let input = |index| unsafe {
        port(
            api,
            |allocator, out| call!(api, SessionGetInputName(session, index, allocator, out)),
            |out| call!(api, SessionGetInputTypeInfo(session, index, out)),
        )
    };
    // SAFETY: as above.
    let output = |index| unsafe {
        port(
            api,
            |allocator, out| call!(api, SessionGetOutputName(session, index, allocator, out)),
            |out| call!(api, SessionGetOutputTypeInfo(session, index, out)),
        )
    };
    Ok((
        (0..n_inputs).map(input).collect::<Result<_, _>>()?,
        (0..n_outputs).map(output).collect::<Result<_, _>>()?,
    ))
}

/// # Safety
/// `name` stores a string made by the allocator that it is given; `info` stores a fresh type description.
unsafe fn port(
    api: Api,
    name: impl FnOnce(*mut ort_sys::OrtAllocator, *mut *mut std::ffi::c_char) -> Result<(), Fault>,
    info: impl FnOnce(*mut *mut OrtTypeInfo) -> Result<(), Fault>,
) -> Result<Port, Fault> {
    let (mut allocator, mut raw) = (std::ptr::null_mut(), std::ptr::null_mut());
    // SAFETY: the default allocator lives as long as the library; the name is copied and then given back to it.
    let name = unsafe {
        call!(api, GetAllocatorWithDefaultOptions(&raw mut allocator))?;
        name(allocator, &raw mut raw)?;
        let copy = text(raw);
        call!(api, AllocatorFree(allocator, raw.cast()))?;
        copy
    };
    // SAFETY: `info` makes a type description, which this function frees.
    let info = unsafe { Owned::create((*api.table()).ReleaseTypeInfo, info) }?;
    // SAFETY: the description is live.
    let kind = unsafe { kind(api, info.as_ptr()) }?;
    Ok(Port { name, kind })
}

/// # Safety
/// `info` is a live type description that came from `api`.
unsafe fn kind(api: Api, info: *const OrtTypeInfo) -> Result<Kind, Fault> {
    // Enums are read as the integers that they are in C: a newer runtime may know values that the binding does not.
    let mut kind = 0i32;
    let mut tensor = std::ptr::null();
    // SAFETY: the description is live; `kind` has the size and alignment of the C enum; the cast gives a view that
    // lives as long as the description and is null for anything but a tensor.
    unsafe {
        call!(api, GetOnnxTypeFromTypeInfo(info, (&raw mut kind).cast::<ONNXType>()))?;
        if kind != KIND_TENSOR {
            return Ok(Kind::Other(kind));
        }
        call!(api, CastTypeInfoToTensorInfo(info, &raw mut tensor))?;
        let (datatype, shape) = type_and_shape(api, tensor)?;
        let has_shape = ((*api.table()).TensorTypeAndShape_HasShape)(tensor);
        let shape = has_shape.then(|| shape.iter().map(|size| usize::try_from(*size).ok()).collect());
        Ok(Kind::Tensor { datatype, shape })
    }
}

/// The element type, as the protocol's where there is one and as ONNX's number where not, and the sizes with -1 for
/// free ones.
///
/// # Safety
/// `info` is a live description of a tensor that came from `api`.
pub(crate) unsafe fn type_and_shape(
    api: Api,
    info: *const OrtTensorTypeAndShapeInfo,
) -> Result<(Result<DataType, i32>, Vec<i64>), Fault> {
    let (mut element, mut rank) = (0i32, 0);
    // SAFETY: the description is live; `element` has the size of the C enum; the buffer holds `rank` sizes.
    unsafe {
        call!(api, GetTensorElementType(info, (&raw mut element).cast::<ONNXTensorElementDataType>()))?;
        call!(api, GetDimensionsCount(info, &raw mut rank))?;
        let mut shape = vec![0i64; rank];
        call!(api, GetDimensions(info, shape.as_mut_ptr(), rank))?;
        Ok((from_onnx(element), shape))
    }
}

fn from_onnx(element: i32) -> Result<DataType, i32> {
    DataType::ALL.into_iter().find(|datatype| to_onnx(*datatype) as i32 == element).ok_or(element)
}

/// ONNX's name for a type of the protocol.
pub(crate) const fn to_onnx(datatype: DataType) -> ONNXTensorElementDataType {
    use ONNXTensorElementDataType as Onnx;
    match datatype {
        DataType::Bool => Onnx::ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL,
        DataType::U8 => Onnx::ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8,
        DataType::U16 => Onnx::ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT16,
        DataType::U32 => Onnx::ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT32,
        DataType::U64 => Onnx::ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT64,
        DataType::I8 => Onnx::ONNX_TENSOR_ELEMENT_DATA_TYPE_INT8,
        DataType::I16 => Onnx::ONNX_TENSOR_ELEMENT_DATA_TYPE_INT16,
        DataType::I32 => Onnx::ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32,
        DataType::I64 => Onnx::ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64,
        DataType::F16 => Onnx::ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16,
        DataType::BF16 => Onnx::ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16,
        DataType::F32 => Onnx::ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT,
        DataType::F64 => Onnx::ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE,
        DataType::Bytes => Onnx::ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING,
    }
}
