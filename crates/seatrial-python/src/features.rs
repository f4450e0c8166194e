//! Feature plans for Python: columns and bodies in, bytes of tensors out. Converts and delegates.

use std::path::PathBuf;

use pyo3::{
    Bound, FromPyObject, Py, PyAny, PyErr, PyResult, Python,
    exceptions::PyValueError,
    pybacked::PyBackedBytes,
    pyclass, pymethods,
    types::{PyAnyMethods, PyByteArray},
};
use seatrial_features::{Column, Plan, Prepared, Spec, Values};
use seatrial_types::Tensor;

/// Name, element type, shape and bytes of one tensor.
type Made = (String, &'static str, Vec<usize>, Py<PyByteArray>);

/// A compiled feature spec. Calls let the interpreter go meanwhile; what is wrong is a `ValueError`.
#[pyclass(frozen)]
pub(crate) struct FeaturePlan(Plan);

#[pymethods]
impl FeaturePlan {
    /// Reads the spec and loads the files that it names, relative to the folder.
    #[new]
    fn new(py: Python<'_>, spec: &str, folder: PathBuf) -> PyResult<Self> {
        py.detach(move || {
            let spec: Spec = serde_json::from_str(spec).map_err(|e| wrong(&e))?;
            Plan::compile(&spec, &folder).map(Self).map_err(|e| wrong(&e))
        })
    }

    /// The tensors of a body `{"instances": [...]}`.
    fn instances(&self, py: Python<'_>, body: PyBackedBytes) -> PyResult<Vec<Made>> {
        give(py, py.detach(move || self.0.instances(&body, None)))
    }

    /// The tensors of `rows` rows of columns: field -> (kind, validity, offsets, values or items).
    fn columns(&self, py: Python<'_>, rows: usize, columns: Vec<(String, Cells)>) -> PyResult<Vec<Made>> {
        let columns: Vec<(String, Column)> =
            columns.into_iter().map(|(name, cells)| (name, cells.0)).collect();
        give(py, py.detach(|| self.0.columns(rows, &columns)))
    }

    /// The raw fields in the order of the spec.
    fn fields(&self) -> Vec<String> {
        self.0.counts().into_iter().map(|counts| counts.field).collect()
    }

    /// Rows without a value and values outside the vocabulary so far: (field, missing, unknown).
    fn counts(&self) -> Vec<(String, u64, u64)> {
        self.0.counts().into_iter().map(|c| (c.field, c.missing, c.unknown)).collect()
    }

    /// Texts whose tokens were kept and texts that were tokenized so far; None without a tokenizer.
    fn cache_counts(&self) -> Option<(u64, u64)> {
        self.0.cache_counts().map(|c| (c.hits, c.misses))
    }
}

fn give(py: Python<'_>, prepared: seatrial_types::Result<Prepared>) -> PyResult<Vec<Made>> {
    let prepared = prepared.map_err(|e| PyValueError::new_err(e.message))?;
    let made = |(name, Tensor { datatype, shape, data })| {
        (name, datatype.name(), shape, PyByteArray::new(py, &data).unbind())
    };
    Ok(py.detach(|| prepared.padded()).into_iter().map(made).collect())
}

fn wrong(error: &impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// A column as it comes from Python.
struct Cells(Column);

impl<'py> FromPyObject<'_, 'py> for Cells {
    type Error = PyErr;

    fn extract(object: pyo3::Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        type Parts<'py> = (String, Option<PyBackedBytes>, Option<PyBackedBytes>, Bound<'py, PyAny>);
        let (kind, valid, offsets, content): Parts<'py> = object.extract()?;
        let offsets = || words(offsets.as_deref().unwrap_or_default(), i64::from_ne_bytes);
        let bytes = || content.extract::<PyBackedBytes>();
        let values = match kind.as_str() {
            "int" => Values::Int(words(&bytes()?, i64::from_ne_bytes)),
            "uint" => Values::UInt(words(&bytes()?, u64::from_ne_bytes)),
            "float" => Values::Float(words(&bytes()?, f64::from_ne_bytes)),
            "bool" => Values::Bool(bytes()?.to_vec()),
            "text" => Values::Text { offsets: offsets(), data: bytes()?.to_vec() },
            "list" => Values::List { offsets: offsets(), items: Box::new(content.extract::<Self>()?.0) },
            "nothing" => Values::Nothing,
            other => return Err(PyValueError::new_err(format!("there is no kind of column `{other}`"))),
        };
        Ok(Self(Column { values, valid: valid.map(|valid| valid.to_vec()) }))
    }
}

fn words<T>(bytes: &[u8], read: impl Fn([u8; 8]) -> T) -> Vec<T> {
    bytes.as_chunks::<8>().0.iter().map(|word| read(*word)).collect()
}
