//! The resolved feature spec as the control plane writes it: `features.yaml` with the tensors of the signature.

use seatrial_types::DataType;
use serde::{Deserialize, Serialize};

/// Everything that turns raw fields into the inputs of one model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    /// The model's inputs, in the order of its signature.
    pub tensors: Vec<TensorTarget>,
    /// Texts that count as missing in every field that does not name its own.
    #[serde(default)]
    pub missing_texts: Vec<String>,
    /// What fills them.
    pub features: Vec<Feature>,
}

/// One input of the model without its batch axis.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TensorTarget {
    /// Name in the signature.
    pub name: String,
    /// Element type: an integer, FP32, FP64 or BOOL.
    pub datatype: DataType,
    /// Sizes behind the batch axis; `null` for the one that a tokenizer fills.
    pub inner: Vec<Option<usize>>,
    /// Inclusive range of legal values.
    #[serde(default)]
    pub range: Option<(f64, f64)>,
}

/// One raw field and what becomes of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Feature {
    /// Name in the request; none for a constant.
    #[serde(default)]
    pub field: Option<String>,
    /// What the field may hold; none for a constant.
    #[serde(default, rename = "type")]
    pub kind: Option<FieldType>,
    /// What a list holds.
    #[serde(default)]
    pub items: Option<ItemType>,
    /// The model input that it fills.
    pub tensor: String,
    /// The first column that it fills; 0 when left out.
    #[serde(default)]
    pub column: Option<usize>,
    /// From the raw value to the number, in order.
    #[serde(default)]
    pub steps: Vec<Step>,
    /// What happens when there is no value.
    #[serde(default)]
    pub missing: Missing,
    /// Texts that count as missing, instead of the spec's.
    #[serde(default)]
    pub missing_texts: Option<Vec<String>>,
}

/// What a field may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "each variant is the name of a type")]
pub enum FieldType {
    String,
    Integer,
    Number,
    Boolean,
    List,
}

/// What a list may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "each variant is the name of a type")]
pub enum ItemType {
    String,
    Integer,
    Number,
}

/// What stands for a value that is not there.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(tag = "rule", rename_all = "snake_case", deny_unknown_fields)]
pub enum Missing {
    /// The request is refused.
    #[default]
    Error,
    /// This number is written to every column of the feature.
    Value {
        /// The number.
        value: f64,
    },
    /// The same, and a column of its own says 1 for missing and 0 for there.
    Indicator {
        /// The number.
        value: f64,
        /// The column of the same tensor that tells.
        column: usize,
    },
    /// The steps go on as if this raw value had been sent.
    Replace {
        /// The raw value.
        with: RawDefault,
    },
}

/// A raw value written in the spec.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
#[allow(missing_docs, reason = "each variant is the name of a type")]
pub enum RawDefault {
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(String),
    Texts(Vec<String>),
}

/// One step from the raw value to the numbers of the tensor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "step", rename_all = "snake_case", deny_unknown_fields)]
pub enum Step {
    /// Text to a part of it, counted in characters.
    Slice {
        /// The first character that is kept.
        start: usize,
        /// How many are kept at most.
        length: usize,
    },
    /// Text to the texts between separators. An empty text holds none.
    Split {
        /// What stands between two.
        separator: String,
    },
    /// Whole number to its decimal digits.
    ToText,
    /// Decimal text to a number.
    ToNumber,
    /// Text to a bucket.
    Hash(HashStep),
    /// Text to its place in a list.
    Vocabulary(VocabularyStep),
    /// Moment to a part of its local date or time.
    DatePart(DateStep),
    /// Number to the place of its bucket.
    Bucketise {
        /// Ascending limits.
        edges: Vec<f64>,
        /// To which bucket a number on an edge belongs: `right` counts the edges up to and with the number, `left`
        /// those below it.
        side: Side,
        /// Added to the place.
        #[serde(default)]
        offset: i64,
    },
    /// Number to the nearest one within bounds.
    Clip {
        /// Lower bound.
        #[serde(default)]
        min: Option<f64>,
        /// Upper bound.
        #[serde(default)]
        max: Option<f64>,
    },
    /// Number to the natural logarithm of one plus it.
    Log1p,
    /// Number less the mean, by the standard deviation.
    Standardise {
        /// Mean of the training rows.
        mean: f64,
        /// Standard deviation of the training rows.
        std: f64,
    },
    /// Number to its place between two others, 0 to 1.
    MinMax {
        /// What becomes 0.
        min: f64,
        /// What becomes 1.
        max: f64,
    },
    /// Indexes of a list to a row of 0 and 1.
    MultiHot {
        /// Columns of the row.
        size: usize,
        /// The fewest entries that a list may have.
        #[serde(default)]
        min: usize,
        /// The most entries that a list may have.
        #[serde(default)]
        max: Option<usize>,
    },
    /// Numbers of a list to a row of fixed length.
    Sequence(SequenceStep),
    /// Text to the tokens of a Hugging Face tokenizer.
    Tokenizer(TokenizerStep),
    /// The same number in every row.
    Constant {
        /// The number.
        value: f64,
    },
}

/// A row of fixed length from a list of any length.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SequenceStep {
    /// Columns of the row.
    pub length: usize,
    /// What fills up a short list.
    pub pad: f64,
    /// Where it is filled up.
    pub pad_side: Side,
    /// Where a long list is cut.
    pub truncate_side: Side,
}

/// One of two sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "each variant is the name of a side")]
pub enum Side {
    Left,
    Right,
}

/// How a text becomes a bucket. Nothing has a default, because none is usual.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HashStep {
    /// The function.
    pub algorithm: Algorithm,
    /// Its seed.
    pub seed: u64,
    /// The bytes of the text.
    pub encoding: Encoding,
    /// How the bits are read.
    pub sign: Sign,
    /// How the rest is taken of a negative number.
    pub modulo: Modulo,
    /// Number of buckets.
    pub buckets: u64,
    /// Added to the bucket.
    #[serde(default)]
    pub offset: i64,
}

/// A hash function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Algorithm {
    /// Austin Appleby's `MurmurHash3_x86_32`.
    #[serde(rename = "murmur3_32")]
    Murmur3,
    /// As Spark's `hash` and `FeatureHasher` before 3.0 have it: each byte of the tail is a block of its own.
    #[serde(rename = "murmur3_32_spark")]
    Murmur3Spark,
    /// Yann Collet's XXH64.
    #[serde(rename = "xxh64")]
    Xxh64,
}

/// How a text becomes bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Encoding {
    /// UTF-8.
    #[serde(rename = "utf-8")]
    Utf8,
    /// UTF-16, low byte first, without a mark.
    #[serde(rename = "utf-16-le")]
    Utf16Le,
}

/// How the bits of a hash are read as a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "each variant is the name of a reading")]
pub enum Sign {
    Unsigned,
    Signed,
}

/// How the rest of a division is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Modulo {
    /// Never negative, as Python's `%`.
    Floor,
    /// The rest of the magnitude, as `abs(h) % n`.
    Abs,
}

/// Where the words are and what happens to others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VocabularyStep {
    /// A file of the package, one word a line.
    #[serde(default)]
    pub file: Option<String>,
    /// The words themselves.
    #[serde(default)]
    pub words: Option<Vec<String>>,
    /// Added to the place of the word, which is counted from 0.
    #[serde(default)]
    pub offset: i64,
    /// What becomes of a word that is not there.
    pub unknown: Unknown,
}

/// What becomes of a word that the vocabulary does not have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "rule", rename_all = "snake_case", deny_unknown_fields)]
pub enum Unknown {
    /// This index.
    Index {
        /// The index, taken as it is.
        index: i64,
    },
    /// The request is refused.
    Error,
    /// A bucket.
    Hash(HashStep),
    /// The entry of the list is left out.
    Skip,
}

/// Which part of which moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DateStep {
    /// The part.
    pub part: Part,
    /// Name of the zone whose clock is read, such as `Asia/Shanghai`.
    pub zone: String,
    /// What the moment is written as.
    pub input: DateInput,
    /// Added to the part.
    #[serde(default)]
    pub offset: i64,
}

/// A part of a local date or time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// The year.
    Year,
    /// 1 to 12.
    Month,
    /// 1 to 31.
    Day,
    /// 1 to 366.
    DayOfYear,
    /// 0 for Monday to 6 for Sunday.
    Weekday,
    /// 0 to 23.
    Hour,
    /// 0 to 59.
    Minute,
}

/// What a moment is written as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DateInput {
    /// Seconds since 1970 in UTC; fractions are cut off downwards.
    Seconds,
    /// Milliseconds since 1970 in UTC.
    Milliseconds,
    /// ISO 8601 text. Without an offset it is the local time of the zone already.
    Iso,
}

/// A Hugging Face tokenizer. Rows are never padded here for the engine; offline they are, to the longest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenizerStep {
    /// The `tokenizer.json` of the package.
    pub file: String,
    /// The most tokens of a text, special ones included.
    pub max_length: usize,
    /// Where a long text is cut.
    pub truncate_side: Side,
    /// What fills up a short row where rows must be equally long.
    #[serde(default)]
    pub pad_id: i64,
    /// Model input that gets 1 for a token and 0 for padding.
    #[serde(default)]
    pub mask: Option<String>,
    /// Model input that gets the segment of each token.
    #[serde(default)]
    pub type_ids: Option<String>,
    /// Texts whose tokens are kept.
    #[serde(default = "default_cache")]
    pub cache_entries: usize,
}

fn default_cache() -> usize {
    10_000
}
