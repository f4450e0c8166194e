//! What can be wrong with a registration. All of it is a mistake in a program or its configuration.

use std::fmt;

/// Why a series was not registered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RegistryError {
    /// The text is no legal metric or label name.
    Name(String),
    /// The family exists with another type.
    Type(String),
    /// The family exists with other label names.
    Labels(String),
    /// The edges are empty, not finite, not ascending, or differ from those of the family.
    Edges(String),
}

impl fmt::Display for RegistryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => write!(f, "`{name}` is no legal metric or label name"),
            Self::Type(name) => write!(f, "metric `{name}` is registered already with another type"),
            Self::Labels(name) => write!(f, "metric `{name}` is registered already with other label names"),
            Self::Edges(name) => write!(
                f,
                "the bucket edges of metric `{name}` must be finite, ascending and the same in the whole family"
            ),
        }
    }
}

impl std::error::Error for RegistryError {}
