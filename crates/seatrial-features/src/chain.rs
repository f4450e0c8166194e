//! One value, from raw to number: text steps, the step that makes a number of a text, steps from number to number.

use std::path::Path;

use crate::{
    dates::DatePart,
    error::{Fault, SpecError, show},
    hash::Hash,
    numeric::{Num, Numeric},
    raw::Raw,
    spec::{DateInput, Step},
    vocabulary::{Place, Vocabulary},
};

/// What a chain begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Input {
    Text,
    Integer,
    Number,
    Boolean,
}

/// The checked steps of one value.
#[derive(Debug)]
pub(crate) struct Chain {
    input: Input,
    /// Integers go on as their digits.
    digits: bool,
    slices: Box<[(usize, usize)]>,
    bridge: Bridge,
    numeric: Box<[Numeric]>,
    /// False when the number is never whole but by accident.
    pub(crate) may_be_whole: bool,
}

#[derive(Debug)]
enum Bridge {
    /// The value is a number already.
    None,
    Hash(Hash),
    Vocabulary(Vocabulary),
    Parse,
    Date(DatePart),
}

/// What becomes of one value.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Made {
    Number(Num),
    /// A number that stands for a word nobody knows.
    Unknown(Num),
    /// Nothing: an unknown word that the spec leaves out.
    Skipped,
}

impl Chain {
    /// The chain of these steps, which hold no step of a whole list.
    pub(crate) fn compile(input: Input, steps: &[Step], folder: &Path) -> Result<Self, SpecError> {
        let (digits, steps) = match steps {
            [Step::ToText, rest @ ..] if input == Input::Integer => (true, rest),
            [Step::ToText, ..] => {
                return Err(SpecError::new("`to_text` takes whole numbers: expected type `integer`"));
            }
            _ => (false, steps),
        };
        let is_text = digits || input == Input::Text;
        let n_slices = steps.iter().take_while(|step| matches!(step, Step::Slice { .. })).count();
        let (slices, rest) = steps.split_at_checked(n_slices).unwrap_or_default();
        if !is_text && !slices.is_empty() {
            return Err(SpecError::new("`slice` takes text: put `to_text` before it"));
        }
        let (bridge, rest) = bridge(is_text, rest, folder)?;
        let numeric = numbers(rest)?;
        let may_be_whole = numeric.iter().fold(true, |whole, step| step.gives_whole(whole));
        let slices = slices.iter().filter_map(|step| match step {
            Step::Slice { start, length } => Some((*start, *length)),
            _ => None,
        });
        Ok(Self { input, digits, slices: slices.collect(), bridge, numeric: numeric.into(), may_be_whole })
    }

    /// Whether a list may come out shorter than it went in.
    pub(crate) const fn skips(&self) -> bool {
        matches!(&self.bridge, Bridge::Vocabulary(words) if words.skips())
    }

    pub(crate) fn apply(&self, raw: &Raw<'_>) -> Result<Made, Fault> {
        match (self.input, raw) {
            (Input::Text, Raw::Text(text)) => self.of_text(text),
            (Input::Text, _) => Err(Fault::new("a string")),
            (Input::Boolean, Raw::Bool(value)) => self.of_number(Num::Int((*value).into())),
            (Input::Boolean, _) => Err(Fault::new("true or false")),
            (Input::Integer, _) => {
                let whole = whole(raw).ok_or_else(|| Fault::new("a whole number"))?;
                if self.digits {
                    return self.of_text(itoa::Buffer::new().format(whole));
                }
                let narrow = i64::try_from(whole).map_err(|_| Fault::new("a whole number of 64 bits"))?;
                self.of_number(Num::Int(narrow))
            }
            (Input::Number, Raw::Int(value)) => {
                self.of_number(i64::try_from(*value).map_or(Num::Float(*value as f64), Num::Int))
            }
            (Input::Number, Raw::Float(value)) if value.is_finite() => self.of_number(Num::Float(*value)),
            (Input::Number, _) => Err(Fault::new("a finite number")),
        }
    }

    /// The number of a text, where the field or the list holds texts.
    pub(crate) fn of_text(&self, text: &str) -> Result<Made, Fault> {
        let text = self.slices.iter().fold(text, |text, (start, length)| slice(text, *start, *length));
        let whole = |place| Num::Int(place);
        match &self.bridge {
            Bridge::Hash(hash) => self.of_steps(whole(hash.index(text))).map(Made::Number),
            Bridge::Vocabulary(words) => match words.find(text) {
                Place::Known(place) => self.of_steps(whole(place)).map(Made::Number),
                Place::Unknown(place) => self.of_steps(whole(place)).map(Made::Unknown),
                Place::Skipped => Ok(Made::Skipped),
                Place::Refused => Err(Fault::new("a word of the vocabulary")),
            },
            Bridge::Date(date) => self.of_steps(whole(date.of_text(text)?)).map(Made::Number),
            // `compile` lets no text end without a step that makes a number of it.
            Bridge::Parse | Bridge::None => self.of_steps(parse(text)?).map(Made::Number),
        }
    }

    fn of_number(&self, number: Num) -> Result<Made, Fault> {
        let number = match &self.bridge {
            Bridge::Date(date) => Num::Int(date.of_number(number)?),
            _ => number,
        };
        self.of_steps(number).map(Made::Number)
    }

    fn of_steps(&self, number: Num) -> Result<Num, Fault> {
        self.numeric.iter().try_fold(number, |number, step| step.apply(number))
    }
}

/// The step that makes a number of a text or of a moment, and what follows.
fn bridge<'s>(is_text: bool, steps: &'s [Step], folder: &Path) -> Result<(Bridge, &'s [Step]), SpecError> {
    let Some((first, rest)) = steps.split_first() else {
        return if is_text { Err(unfinished()) } else { Ok((Bridge::None, steps)) };
    };
    let bridge = match first {
        Step::Hash(step) if is_text => Bridge::Hash(Hash::compile(step)?),
        Step::Vocabulary(step) if is_text => Bridge::Vocabulary(Vocabulary::compile(step, folder)?),
        Step::ToNumber if is_text => Bridge::Parse,
        Step::DatePart(step) if is_text == (step.input == DateInput::Iso) => {
            Bridge::Date(DatePart::compile(step)?)
        }
        Step::DatePart(_) if is_text => {
            return Err(SpecError::new("`date_part` of seconds or milliseconds takes a number"));
        }
        Step::DatePart(_) => {
            return Err(SpecError::new("`date_part` of `iso` takes text: expected type `string`"));
        }
        Step::Hash(_) | Step::Vocabulary(_) | Step::ToNumber => {
            return Err(SpecError::new(
                "`hash`, `vocabulary` and `to_number` take text: put `to_text` before them",
            ));
        }
        _ if is_text => return Err(unfinished()),
        _ => return Ok((Bridge::None, steps)),
    };
    Ok((bridge, rest))
}

fn unfinished() -> SpecError {
    SpecError::new(
        "a text must become a number: add `hash`, `vocabulary`, `to_number`, `date_part` or `tokenizer`",
    )
}

fn numbers(steps: &[Step]) -> Result<Vec<Numeric>, SpecError> {
    let each = |step| {
        Numeric::compile(step)?.ok_or_else(|| {
            SpecError::new(
                "a step stands in the wrong place: the order is text, then number, then list steps",
            )
        })
    };
    steps.iter().map(each).collect()
}

/// A whole number, however it is written: columns with gaps come as `260.0`.
fn whole(raw: &Raw<'_>) -> Option<i128> {
    match raw {
        Raw::Int(value) => Some(*value),
        Raw::Float(value) => match Num::of_f64(*value) {
            Num::Int(whole) => Some(whole.into()),
            Num::Float(_) => None,
        },
        _ => None,
    }
}

fn slice(text: &str, start: usize, length: usize) -> &str {
    let at = |n: usize| text.char_indices().nth(n).map_or(text.len(), |(at, _)| at);
    text.get(at(start)..at(start.saturating_add(length))).unwrap_or_default()
}

fn parse(text: &str) -> Result<Num, Fault> {
    let wrong = || Fault::new("a decimal number in the text");
    if let Ok(whole) = text.parse() {
        return Ok(Num::Int(whole));
    }
    // `parse` alone would take words such as `inf`.
    let plain = text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'.' | b'-' | b'+' | b'e' | b'E'));
    match text.parse::<f64>() {
        Ok(number) if plain && number.is_finite() => Ok(Num::Float(number)),
        _ => Err(wrong().with(show(&Raw::Text(text.into())))),
    }
}
