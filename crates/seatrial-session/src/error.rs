//! What keeps a session from being made, in words for the person who starts the server.

use std::{fmt, path::PathBuf};

use crate::runtime::{NEWEST_RUNTIME_MINOR, OLDEST_RUNTIME_MINOR};

/// Why the runtime or a session is not there. `Display` gives one sentence, `hint` the cure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionError {
    /// There is no such file.
    LibraryMissing(PathBuf),
    /// The file is there but cannot be loaded.
    NotALibrary {
        /// The file.
        path: PathBuf,
        /// The loader's own words.
        reason: String,
    },
    /// A library, but not ONNX Runtime.
    NotARuntime(PathBuf),
    /// ONNX Runtime of a version that is not supported.
    Version {
        /// The file.
        path: PathBuf,
        /// The version it gives.
        found: String,
    },
    /// The runtime refused something that never depends on the model.
    Runtime(String),
    /// The runtime does not take the model file.
    Model {
        /// The model file.
        path: PathBuf,
        /// The runtime's own words.
        reason: String,
    },
    /// The graph and the signature do not agree.
    Signature(String),
    /// The graph gives or takes something that cannot travel as a tensor of the protocol.
    Unsupported(String),
}

impl fmt::Display for SessionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LibraryMissing(path) => write!(f, "no ONNX Runtime library at `{}`", path.display()),
            Self::NotALibrary { path, reason } => {
                write!(f, "`{}` is not a shared library of this platform: {reason}", path.display())
            }
            Self::NotARuntime(path) => {
                write!(f, "`{}` is not ONNX Runtime: it has no symbol `OrtGetApiBase`", path.display())
            }
            Self::Version { path, found } => write!(
                f,
                "ONNX Runtime `{found}` at `{}` is not supported, needed is 1.{OLDEST_RUNTIME_MINOR} to \
                 1.{NEWEST_RUNTIME_MINOR}",
                path.display()
            ),
            Self::Runtime(reason) => write!(f, "ONNX Runtime could not be set up: {reason}"),
            Self::Model { path, reason } => {
                write!(f, "ONNX Runtime does not take the model `{}`: {reason}", path.display())
            }
            Self::Signature(difference) => write!(f, "the graph differs from the signature: {difference}"),
            Self::Unsupported(what) => f.write_str(what),
        }
    }
}

impl SessionError {
    /// What to do about it.
    pub const fn hint(&self) -> &'static str {
        match self {
            Self::LibraryMissing(_)
            | Self::NotALibrary { .. }
            | Self::NotARuntime(_)
            | Self::Version { .. } => "install a supported runtime: pip install 'onnxruntime>=1.24,<1.33'",
            Self::Runtime(_) => "run again with another version of onnxruntime, and report it if that helps",
            Self::Model { .. } => "run `seatrial check` on the package: it names the node and the version",
            Self::Signature(_) => "correct signature.yaml or export the model anew",
            Self::Unsupported(_) => "export the model with plain tensors (for scikit-learn: zipmap=False)",
        }
    }
}

impl std::error::Error for SessionError {}
