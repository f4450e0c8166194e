//! The Python face of the data plane: converts arguments, delegates, translates errors. No rule of ours lives here.

#[pyo3::pymodule]
mod _native {}
