//! A feature of the spec to the work that fills its columns.

use std::{path::Path, sync::atomic::AtomicU64};

use crate::{
    chain::{Chain, Input},
    error::SpecError,
    numeric::Num,
    spec::{Feature, FieldType, ItemType, Missing, RawDefault, SequenceStep, Side, Step, TokenizerStep},
    tensors::Layout,
    tokens::TextTokens,
};

/// One checked feature.
#[derive(Debug)]
pub(crate) struct Compiled {
    /// Place of its field among the plan's, and its name; none for a constant.
    pub(crate) field: Option<(usize, String)>,
    pub(crate) tensor: usize,
    pub(crate) column: usize,
    /// Columns that it fills, the indicator's not counted; 0 for rows of any length.
    pub(crate) width: usize,
    pub(crate) missing: OfMissing,
    pub(crate) missing_texts: Box<[String]>,
    pub(crate) work: Work,
    pub(crate) n_missing: AtomicU64,
    pub(crate) n_unknown: AtomicU64,
}

#[derive(Debug)]
pub(crate) enum OfMissing {
    Error,
    Fill { number: Num, indicator: Option<usize> },
    Replace(RawDefault),
}

/// What fills the columns.
#[derive(Debug)]
pub(crate) enum Work {
    Constant(Num),
    One(Chain),
    Many(Many, Chain),
    Tokens { tokens: Box<TextTokens>, mask: Option<usize>, type_ids: Option<usize> },
}

/// A list, where its entries come from and what becomes of them.
#[derive(Debug)]
pub(crate) struct Many {
    /// The separator of a text, or none for a list.
    pub(crate) separator: Option<String>,
    pub(crate) shape: Shape,
}

#[derive(Debug)]
pub(crate) enum Shape {
    MultiHot { size: usize, least: usize, most: usize },
    Sequence { length: usize, pad: Num, pad_left: bool, cut_left: bool },
}

/// What a feature is compiled against.
pub(crate) struct Surroundings<'a> {
    pub(crate) folder: &'a Path,
    pub(crate) layouts: &'a mut [Layout],
    pub(crate) missing_texts: &'a [String],
}

/// Compiles one feature. `field` is the place of its field among the plan's.
pub(crate) fn compile(
    feature: &Feature,
    field: Option<usize>,
    around: &mut Surroundings<'_>,
) -> Result<Compiled, SpecError> {
    let tensor = find(around.layouts, &feature.tensor)?;
    let (work, width) = work(feature, tensor, around)?;
    let column = feature.column.unwrap_or(0);
    if width == 0 && feature.column.is_some() {
        return Err(SpecError::new("`column` does not go with `tokenizer`, which fills whole rows"));
    }
    let compiled = Compiled {
        field: feature.field.clone().and_then(|name| field.map(|place| (place, name))),
        tensor,
        column,
        width,
        missing: of_missing(feature, &work)?,
        missing_texts: feature.missing_texts.as_deref().unwrap_or(around.missing_texts).into(),
        work,
        n_missing: AtomicU64::new(0),
        n_unknown: AtomicU64::new(0),
    };
    check_whole(&compiled, around.layouts)?;
    Ok(compiled)
}

fn find(layouts: &[Layout], name: &str) -> Result<usize, SpecError> {
    layouts.iter().position(|layout| layout.name == name).ok_or_else(|| {
        let names: Vec<String> = layouts.iter().map(|layout| format!("`{}`", layout.name)).collect();
        SpecError::new(format!("there is no tensor `{name}`: expected {}", names.join(", ")))
    })
}

fn work(feature: &Feature, tensor: usize, around: &mut Surroundings<'_>) -> Result<(Work, usize), SpecError> {
    if let [Step::Constant { value }] = feature.steps.as_slice() {
        if feature.field.is_some() || feature.kind.is_some() || feature.missing != Missing::Error {
            return Err(SpecError::new("`constant` reads no field: leave out `field`, `type` and `missing`"));
        }
        return Ok((Work::Constant(finite("value", *value)?), 1));
    }
    let (Some(_), Some(kind)) = (&feature.field, feature.kind) else {
        return Err(SpecError::new("`field` and `type` are needed, unless the only step is `constant`"));
    };
    if let [Step::Tokenizer(step)] = feature.steps.as_slice() {
        return tokens(kind, step, tensor, around).map(|work| (work, 0));
    }
    if (kind == FieldType::List) != feature.items.is_some() {
        return Err(SpecError::new("`items` goes with type `list`, and that needs it"));
    }
    match split_list(kind, &feature.steps)? {
        None => {
            let input = match kind {
                FieldType::String => Input::Text,
                FieldType::Integer => Input::Integer,
                FieldType::Number => Input::Number,
                FieldType::Boolean => Input::Boolean,
                FieldType::List => return Err(no_shape()),
            };
            let chain = Chain::compile(input, &feature.steps, around.folder)?;
            if chain.skips() {
                return Err(SpecError::new("`unknown` is `skip`: it goes with lists only"));
            }
            Ok((Work::One(chain), 1))
        }
        Some((many, steps)) => {
            let input = match feature.items {
                None | Some(ItemType::String) => Input::Text,
                Some(ItemType::Integer) => Input::Integer,
                Some(ItemType::Number) => Input::Number,
            };
            let chain = Chain::compile(input, steps, around.folder)?;
            let width = match &many.shape {
                Shape::MultiHot { .. } if !chain.may_be_whole => {
                    return Err(SpecError::new(
                        "`multi_hot` takes whole numbers: it has logarithms or the like before it",
                    ));
                }
                Shape::MultiHot { size, .. } => *size,
                Shape::Sequence { length, .. } => *length,
            };
            Ok((Work::Many(many, chain), width))
        }
    }
}

/// The list part of the steps, and the steps of one entry; none where the field is one value.
fn split_list(kind: FieldType, steps: &[Step]) -> Result<Option<(Many, &[Step])>, SpecError> {
    let shape = match steps.last() {
        Some(Step::MultiHot { size, min, max }) => multi_hot(*size, *min, *max)?,
        Some(Step::Sequence(step)) => sequence(step)?,
        _ if kind == FieldType::List => return Err(no_shape()),
        _ => return Ok(None),
    };
    let before = steps.split_last().map(|(_, before)| before).unwrap_or_default();
    match (kind, before) {
        (FieldType::List, _) => Ok(Some((Many { separator: None, shape }, before))),
        (FieldType::String, [Step::Split { separator }, rest @ ..]) if !separator.is_empty() => {
            Ok(Some((Many { separator: Some(separator.clone()), shape }, rest)))
        }
        _ => Err(SpecError::new(
            "`multi_hot` and `sequence` take a list: expected type `list`, or `string` with `split` as its first step",
        )),
    }
}

fn no_shape() -> SpecError {
    SpecError::new("a list must end in `multi_hot` or `sequence`")
}

fn multi_hot(size: usize, least: usize, most: Option<usize>) -> Result<Shape, SpecError> {
    let most = most.unwrap_or(usize::MAX);
    if size == 0 || least > most {
        return Err(SpecError::new("`multi_hot`: expected a `size` of 1 or more, and `min` up to `max`"));
    }
    Ok(Shape::MultiHot { size, least, most })
}

fn sequence(step: &SequenceStep) -> Result<Shape, SpecError> {
    if step.length == 0 {
        return Err(SpecError::new("`length` is 0: expected 1 or more"));
    }
    let pad = finite("pad", step.pad)?;
    let (pad_left, cut_left) = (step.pad_side == Side::Left, step.truncate_side == Side::Left);
    Ok(Shape::Sequence { length: step.length, pad, pad_left, cut_left })
}

fn tokens(
    kind: FieldType,
    step: &TokenizerStep,
    tensor: usize,
    around: &mut Surroundings<'_>,
) -> Result<Work, SpecError> {
    if kind != FieldType::String {
        return Err(SpecError::new("`tokenizer` takes text: expected type `string`"));
    }
    let mask = step.mask.as_deref().map(|name| find(around.layouts, name)).transpose()?;
    let type_ids = step.type_ids.as_deref().map(|name| find(around.layouts, name)).transpose()?;
    let tokens = Box::new(TextTokens::compile(step, around.folder)?);
    if let Some(layout) = around.layouts.get_mut(tensor) {
        layout.pad = step.pad_id;
    }
    Ok(Work::Tokens { tokens, mask, type_ids })
}

fn of_missing(feature: &Feature, work: &Work) -> Result<OfMissing, SpecError> {
    Ok(match &feature.missing {
        Missing::Error => OfMissing::Error,
        Missing::Replace { with } => OfMissing::Replace(with.clone()),
        Missing::Value { .. } | Missing::Indicator { .. } if matches!(work, Work::Tokens { .. }) => {
            return Err(SpecError::new("`missing` of a tokenized text is `error` or `replace`"));
        }
        Missing::Value { value } => OfMissing::Fill { number: finite("value", *value)?, indicator: None },
        Missing::Indicator { value, column } => {
            OfMissing::Fill { number: finite("value", *value)?, indicator: Some(*column) }
        }
    })
}

fn finite(name: &str, value: f64) -> Result<Num, SpecError> {
    if value.is_finite() {
        return Ok(Num::of_f64(value));
    }
    Err(SpecError::new(format!("`{name}` is {value}: expected a finite number")))
}

/// No logarithm ends in a tensor of whole numbers.
fn check_whole(compiled: &Compiled, layouts: &[Layout]) -> Result<(), SpecError> {
    let whole = layouts.get(compiled.tensor).filter(|layout| layout.is_whole());
    let Some(layout) = whole else { return Ok(()) };
    let fill = match &compiled.missing {
        OfMissing::Fill { number, .. } => Some(*number),
        _ => None,
    };
    let fraction = match &compiled.work {
        Work::Constant(number) => matches!(number, Num::Float(_)),
        Work::One(chain) | Work::Many(_, chain) => !chain.may_be_whole,
        Work::Tokens { .. } => false,
    };
    if fraction || matches!(fill, Some(Num::Float(_))) {
        return Err(SpecError::new(format!(
            "tensor `{}` takes whole numbers, and the steps end in fractions",
            layout.name
        )));
    }
    Ok(())
}
