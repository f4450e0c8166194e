//! What can stop a run, with the exit code each case ends in.

use std::fmt;

/// Why a run did not start or could not go on.
#[derive(Debug)]
pub enum Error {
    /// The configuration is wrong.
    Config {
        /// What was wrong, with the value in backticks.
        message: String,
        /// The cure.
        hint: String,
    },
    /// Something is missing here: a file, a folder, room on the disk.
    Missing {
        /// What is missing.
        message: String,
        /// The cure.
        hint: String,
    },
    /// Anything else.
    Other(String),
}

impl Error {
    /// A wrong configuration.
    pub fn config(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Config { message: message.into(), hint: hint.into() }
    }

    /// Something that is not there.
    pub fn missing(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Missing { message: message.into(), hint: hint.into() }
    }

    /// The exit code of the process: 2 wrong configuration, 3 something missing, 1 anything else.
    pub const fn exit_code(&self) -> i32 {
        match self {
            Self::Config { .. } => 2,
            Self::Missing { .. } => 3,
            Self::Other(_) => 1,
        }
    }

    /// The cure, where one is known.
    pub fn hint(&self) -> Option<&str> {
        match self {
            Self::Config { hint, .. } | Self::Missing { hint, .. } => Some(hint),
            Self::Other(_) => None,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Config { message, .. } | Self::Missing { message, .. } | Self::Other(message) => {
                f.write_str(message)
            }
        }
    }
}

impl std::error::Error for Error {}
