//! Tensors across the border: in place where alignment allows it, strings element by element, one copy on the way out.

use std::{ffi::c_char, ptr};

use bytes::Bytes;
use ort_sys::OrtValue;
use seatrial_types::{DataType, Error, Result, Tensor, byte_strings};

use crate::{
    Runtime,
    api::{Api, Fault, Owned, call},
    signature::{to_onnx, type_and_shape},
};

/// Room for a copied buffer at the strictest alignment of any element type.
type AlignedWord = u64;

/// An input value and the memory behind it.
pub(crate) struct Input<'a> {
    value: Owned<OrtValue>,
    /// Read by the runtime through `value`: either the tensor's own buffer or an aligned copy.
    _memory: Memory<'a>,
}

enum Memory<'a> {
    Borrowed(#[allow(dead_code, reason = "kept for its life")] &'a Bytes),
    Copied(#[allow(dead_code, reason = "kept for its life")] Vec<AlignedWord>),
    /// Strings live inside the value.
    Inside,
}

impl<'a> Input<'a> {
    /// Makes a value of `tensor`.
    pub(crate) fn new(runtime: &Runtime, tensor: &'a Tensor) -> Result<Self> {
        let shape =
            tensor.shape.iter().map(|size| i64::try_from(*size)).collect::<std::result::Result<Vec<_>, _>>();
        let shape = shape.map_err(|_| Error::invalid("a dimension is larger than any tensor"))?;
        if tensor.datatype == DataType::Bool && tensor.data.iter().any(|byte| *byte > 1) {
            // Anything else is an undefined `bool` for the C++ that reads it.
            return Err(Error::invalid("a BOOL element is neither 0 nor 1"));
        }
        let made = match tensor.datatype.size() {
            Some(size) => Self::numbers(runtime, tensor, &shape, size),
            None => Self::strings(runtime.api(), tensor, &shape),
        };
        made.map_err(|fault| {
            Error::internal(format!("the input could not be handed to the runtime: {fault}"))
        })
    }

    pub(crate) const fn as_ptr(&self) -> *const OrtValue {
        self.value.as_ptr()
    }

    fn numbers(
        runtime: &Runtime,
        tensor: &'a Tensor,
        shape: &[i64],
        size: usize,
    ) -> std::result::Result<Self, Fault> {
        check_length(tensor, size)?;
        let api = runtime.api();
        let (memory, data) = place(&tensor.data, size);
        // SAFETY: `data` points to `tensor.data.len()` readable bytes, aligned for the type, that live in `memory`,
        // and the returned `Input` keeps both together. The runtime only reads inputs; its `mut` is for outputs.
        let value = unsafe {
            Owned::create((*api.table()).ReleaseValue, |out| {
                let (sizes, rank) = (shape.as_ptr(), shape.len());
                let element = to_onnx(tensor.datatype);
                let length = tensor.data.len();
                call!(
                    api,
                    CreateTensorWithDataAsOrtValue(
                        runtime.cpu(),
                        data.cast_mut().cast(),
                        length,
                        sizes,
                        rank,
                        element,
                        out
                    )
                )
            })?
        };
        Ok(Self { value, _memory: memory })
    }

    fn strings(api: Api, tensor: &Tensor, shape: &[i64]) -> std::result::Result<Self, Fault> {
        let count = byte_strings(&tensor.data).count();
        if product(&tensor.shape, 1) != Some(count) {
            return Err(Fault::new(format!("{count} strings for the shape {:?}", tensor.shape)));
        }
        let mut allocator = ptr::null_mut();
        // SAFETY: the default allocator lives as long as the library; the shape is live; the value is ours.
        let value = unsafe {
            call!(api, GetAllocatorWithDefaultOptions(&raw mut allocator))?;
            Owned::create((*api.table()).ReleaseValue, |out| {
                let element = to_onnx(DataType::Bytes);
                call!(api, CreateTensorAsOrtValue(allocator, shape.as_ptr(), shape.len(), element, out))
            })?
        };
        for (index, item) in byte_strings(&tensor.data).enumerate() {
            let mut room: *mut c_char = ptr::null_mut();
            // A buffer of the length asked for, and not a C string: elements may hold zero bytes.
            // SAFETY: the index is below the number of elements that the shape gave the value; the runtime hands out
            // `item.len()` writable bytes, which nothing else uses.
            unsafe {
                call!(
                    api,
                    GetResizedStringTensorElementBuffer(value.as_ptr(), index, item.len(), &raw mut room)
                )?;
                ptr::copy_nonoverlapping(item.as_ptr(), room.cast::<u8>(), item.len());
            }
        }
        Ok(Self { value, _memory: Memory::Inside })
    }
}

/// What the decoder has promised, asked once more where the next reader is C++.
fn check_length(tensor: &Tensor, size: usize) -> std::result::Result<(), Fault> {
    if product(&tensor.shape, size) != Some(tensor.data.len()) {
        return Err(Fault::new(format!("{} bytes for the shape {:?}", tensor.data.len(), tensor.shape)));
    }
    Ok(())
}

/// All sizes times `start`; `None` beyond what a `usize` holds.
fn product(shape: &[usize], start: usize) -> Option<usize> {
    shape.iter().try_fold(start, |product, size| product.checked_mul(*size))
}

/// The buffer itself when it is aligned for elements of `size` bytes, a copy of it otherwise.
fn place(data: &Bytes, size: usize) -> (Memory<'_>, *const u8) {
    if data.as_ptr().align_offset(size) == 0 {
        return (Memory::Borrowed(data), data.as_ptr());
    }
    let mut copy: Vec<AlignedWord> = vec![0; data.len().div_ceil(size_of::<AlignedWord>())];
    // SAFETY: the copy has room for at least as many bytes as the data and is fresh, so they do not overlap.
    unsafe { ptr::copy_nonoverlapping(data.as_ptr(), copy.as_mut_ptr().cast::<u8>(), data.len()) };
    let start = copy.as_ptr().cast();
    (Memory::Copied(copy), start)
}

/// Copies an output out of the runtime's memory.
pub(crate) fn read_output(api: Api, value: &Owned<OrtValue>) -> Result<Tensor> {
    // SAFETY: the value is live and came from `api`.
    unsafe { read(api, value.as_ptr()) }
        .map_err(|fault| Error::internal(format!("an output could not be read: {fault}")))
}

/// # Safety
/// `value` is live and came from `api`.
unsafe fn read(api: Api, value: *mut OrtValue) -> std::result::Result<Tensor, Fault> {
    // SAFETY: the value is live; the description is freed by its guard after it was read.
    let (datatype, shape) = unsafe {
        let info = Owned::create((*api.table()).ReleaseTensorTypeAndShapeInfo, |out| {
            call!(api, GetTensorTypeAndShape(value, out))
        })?;
        type_and_shape(api, info.as_ptr())?
    };
    let datatype = datatype.map_err(|code| Fault::new(format!("element type {code}")))?;
    let shape = shape.iter().map(|size| usize::try_from(*size)).collect::<std::result::Result<Vec<_>, _>>();
    let shape = shape.map_err(|_| Fault::new("a size below zero"))?;
    let elements = product(&shape, 1).ok_or_else(|| Fault::new("a shape beyond all memory"))?;
    // SAFETY: the value is live and holds as many elements as its own shape says.
    let data = unsafe {
        match datatype.size() {
            Some(size) => read_numbers(api, value, elements * size)?,
            None => read_strings(api, value, elements)?,
        }
    };
    Ok(Tensor { datatype, shape, data })
}

/// # Safety
/// `value` is a live tensor of `length` bytes that came from `api`.
unsafe fn read_numbers(api: Api, value: *mut OrtValue, length: usize) -> std::result::Result<Bytes, Fault> {
    let mut start = ptr::null_mut();
    // SAFETY: the value is live.
    unsafe { call!(api, GetTensorMutableData(value, &raw mut start)) }?;
    if length == 0 || start.is_null() {
        return Ok(Bytes::new());
    }
    // SAFETY: the tensor's memory holds `length` bytes, is on the host, and is not written during this call.
    Ok(Bytes::copy_from_slice(unsafe { std::slice::from_raw_parts(start.cast::<u8>(), length) }))
}

/// # Safety
/// `value` is a live tensor of `elements` strings that came from `api`.
unsafe fn read_strings(api: Api, value: *mut OrtValue, elements: usize) -> std::result::Result<Bytes, Fault> {
    if elements == 0 {
        return Ok(Bytes::new());
    }
    let mut total = 0;
    let mut starts = vec![0usize; elements];
    // SAFETY: the buffers have the lengths that are passed with them.
    let text = unsafe {
        call!(api, GetStringTensorDataLength(value, &raw mut total))?;
        let mut text = vec![0u8; total];
        call!(
            api,
            GetStringTensorContent(value, text.as_mut_ptr().cast(), total, starts.as_mut_ptr(), elements)
        )?;
        text
    };
    let ends = starts.iter().skip(1).copied().chain([total]);
    let mut data = Vec::with_capacity(total + 4 * elements);
    for (start, end) in starts.iter().zip(ends) {
        let item = text.get(*start..end).ok_or_else(|| Fault::new("string offsets out of order"))?;
        let length = u32::try_from(item.len()).map_err(|_| Fault::new("a string of 4 GiB or more"))?;
        data.extend_from_slice(&length.to_le_bytes());
        data.extend_from_slice(item);
    }
    Ok(data.into())
}
