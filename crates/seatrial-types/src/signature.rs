//! What a model takes and gives, and how its requests may be joined. Read from the resolved server configuration.

use serde::{Deserialize, Serialize};

use crate::{DataType, Padding};

/// One dimension: a fixed size, or free with a name and an optional upper bound.
/// In JSON a number, or `{"name": "batch", "max": 64}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Dim {
    /// Exactly this size.
    Fixed(usize),
    /// Any size from 0 to `max`. Equal names within one request must have equal sizes.
    Free {
        /// The symbol, such as `batch`.
        name: String,
        /// The largest size a request may ask for, when there is one.
        #[serde(default)]
        max: Option<usize>,
    },
}

/// One input or output.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TensorSpec {
    /// Name in the graph and on the wire.
    pub name: String,
    /// Element type.
    pub datatype: DataType,
    /// Dimensions, outermost first; empty for a scalar.
    pub shape: Vec<Dim>,
    /// Inclusive range of legal values, for numeric inputs. A value outside is the client's mistake.
    #[serde(default)]
    pub range: Option<(f64, f64)>,
    /// Names of the columns of a classifier's output.
    #[serde(default)]
    pub labels: Option<Vec<String>>,
}

/// The inputs and outputs of a model, in graph order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Signature {
    /// What a request must carry: all of these and nothing else.
    pub inputs: Vec<TensorSpec>,
    /// What a run gives.
    pub outputs: Vec<TensorSpec>,
}

/// Which requests may share one run of the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BatchMode {
    /// Rows are independent of their mates and of padding.
    Full,
    /// Rows are independent of mates of the same length; padding changes the answer.
    EqualLength,
    /// Every request runs alone.
    None,
}

/// How a model is batched, and why it is so when it is not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Batching {
    /// What may be joined. Rows are joined on axis 0.
    pub mode: BatchMode,
    /// The most rows of one run.
    pub max_rows: usize,
    /// The finding behind the mode, shown in metadata and logs.
    #[serde(default)]
    pub why: String,
    /// How requests of different lengths may run together, where the mode is `full` and the model has a length.
    #[serde(default)]
    pub padding: Option<Padding>,
    /// Fixed sizes and a delay in place of the measured cost.
    #[serde(default)]
    pub preferred: Option<Preferred>,
}

/// Batches of fixed sizes: one is let go when it has as many rows as one of `rows`, or when its oldest request has
/// waited for `max_delay_ms`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Preferred {
    /// Sizes worth waiting for, ascending.
    pub rows: Vec<usize>,
    /// The longest wait for more.
    pub max_delay_ms: u64,
}
