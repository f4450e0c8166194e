//! The Python face of the data plane: converts arguments, delegates, translates errors. No rule of ours lives here.

#![forbid(unsafe_code)]

mod features;

#[pyo3::pymodule]
mod _native {
    use std::path::PathBuf;

    use pyo3::{
        Bound, PyResult, Python, pyfunction,
        types::{PyModule, PyModuleMethods},
    };

    #[pymodule_export]
    use crate::features::FeaturePlan;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }

    /// Runs a server until it ends and returns its exit code. The interpreter is free meanwhile.
    #[pyfunction]
    #[allow(clippy::needless_pass_by_value, reason = "the form that arguments are converted to")]
    fn run_server(py: Python<'_>, path: PathBuf) -> i32 {
        py.detach(|| seatrial_server::run_from_file(&path))
    }

    /// Runs a load generator until it ends and returns its exit code. The interpreter is free meanwhile.
    #[pyfunction]
    #[allow(clippy::needless_pass_by_value, reason = "the form that arguments are converted to")]
    fn run_load(py: Python<'_>, path: PathBuf) -> i32 {
        py.detach(|| seatrial_loadgen::run_from_file(&path))
    }
}
