//! A compiled feature spec: files are read once, then rows go through without looking anything up by name.

use std::{collections::HashMap, path::Path, sync::atomic::Ordering::Relaxed};

use seatrial_types::{Error, Result};

use crate::{
    chain::{Chain, Made},
    compile::{Compiled, Many, OfMissing, Shape, Surroundings, Work, compile},
    error::{Fault, SpecError, show},
    numeric::Num,
    raw::Raw,
    spec::Spec,
    tensors::{Layout, Table},
};

/// Raw rows to tensors. Shared between threads; a call changes nothing but counters and the cache of tokens.
#[derive(Debug)]
pub struct Plan {
    /// The raw fields, each once, in the order of the spec.
    pub(crate) fields: Vec<String>,
    pub(crate) places: HashMap<String, usize>,
    features: Vec<Compiled>,
    pub(crate) layouts: Vec<Layout>,
}

/// How often a field had no value, or one that its vocabulary does not know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldCounts {
    /// The field.
    pub field: String,
    /// Rows without a value.
    pub missing: u64,
    /// Values, or entries of lists, outside the vocabulary.
    pub unknown: u64,
}

/// What the caches of all tokenizers did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheCounts {
    /// Texts whose tokens were kept.
    pub hits: u64,
    /// Texts that had to be tokenized.
    pub misses: u64,
}

/// The numbers of one list, kept between rows for their memory.
pub(crate) type Scratch = Vec<Num>;

impl Plan {
    /// Checks the spec and loads the vocabularies and tokenizers, whose paths are relative to `folder`.
    pub fn compile(spec: &Spec, folder: &Path) -> std::result::Result<Self, SpecError> {
        let mut plan = Self {
            fields: Vec::new(),
            places: HashMap::new(),
            features: Vec::new(),
            layouts: spec.tensors.iter().map(Layout::compile).collect::<std::result::Result<_, _>>()?,
        };
        for (number, feature) in spec.features.iter().enumerate() {
            let place = feature.field.as_deref().map(|name| plan.place(name));
            let mut around =
                Surroundings { folder, layouts: &mut plan.layouts, missing_texts: &spec.missing_texts };
            let compiled = compile(feature, place, &mut around)
                .map_err(|e| e.of_feature(number, feature.field.as_deref()))?;
            plan.features.push(compiled);
        }
        plan.check_cover()?;
        Ok(plan)
    }

    fn place(&mut self, name: &str) -> usize {
        let next = self.fields.len();
        let place = *self.places.entry(name.to_owned()).or_insert(next);
        if place == next {
            self.fields.push(name.to_owned());
        }
        place
    }

    /// Every element of every tensor is written by exactly one feature.
    fn check_cover(&self) -> std::result::Result<(), SpecError> {
        for (tensor, layout) in self.layouts.iter().enumerate() {
            let mut writers = vec![0_usize; layout.width.unwrap_or(1)];
            for column in self.features.iter().flat_map(|f| f.columns(tensor)) {
                let Some(count) = writers.get_mut(column) else {
                    return Err(SpecError::new(format!(
                        "tensor `{}` has no column {column}: it has {}",
                        layout.name,
                        writers.len()
                    )));
                };
                *count += 1;
            }
            if let Some(column) = writers.iter().position(|n| *n != 1) {
                let how =
                    if writers.get(column) == Some(&0) { "no feature" } else { "more than one feature" };
                return Err(SpecError::new(format!("tensor `{}`: {how} fills column {column}", layout.name)));
            }
            let ragged = self.features.iter().any(|f| f.is_tokens() && f.fills(tensor));
            if ragged != layout.width.is_none() {
                let text = "a free axis behind the batch axis goes with `tokenizer`, and that needs one";
                return Err(SpecError::new(format!("tensor `{}`: {text}", layout.name)));
            }
        }
        Ok(())
    }

    /// Adds one row. `raws` holds the value of each field, `Null` where there is none.
    pub(crate) fn add_row(
        &self,
        row: usize,
        raws: &[Raw<'_>],
        table: &mut Table<'_>,
        scratch: &mut Scratch,
    ) -> Result<()> {
        table.begin_row();
        for feature in &self.features {
            let raw = feature.field.as_ref().and_then(|(place, _)| raws.get(*place)).unwrap_or(&Raw::Null);
            feature.fill(raw, table, scratch).map_err(|fault| {
                fault.at(row, feature.field.as_ref().map_or("", |(_, name)| name.as_str()), raw)
            })?;
        }
        Ok(())
    }

    /// What was missing or unknown so far, field by field.
    pub fn counts(&self) -> Vec<FieldCounts> {
        let of = |name: &String| {
            let own = |f: &&Compiled| f.field.as_ref().is_some_and(|(_, field)| field == name);
            FieldCounts {
                field: name.clone(),
                // Several features may read one field; each of them sees every row.
                missing: self
                    .features
                    .iter()
                    .filter(own)
                    .map(|f| f.n_missing.load(Relaxed))
                    .max()
                    .unwrap_or(0),
                unknown: self
                    .features
                    .iter()
                    .filter(own)
                    .map(|f| f.n_unknown.load(Relaxed))
                    .max()
                    .unwrap_or(0),
            }
        };
        self.fields.iter().map(of).collect()
    }

    /// Bytes of the tensors of one row, tokens not counted.
    pub fn row_bytes(&self) -> usize {
        self.layouts.iter().map(Layout::row_bytes).sum()
    }

    /// Whether texts are tokenized, which costs far more than anything else here.
    pub fn tokenizes(&self) -> bool {
        self.features.iter().any(Compiled::is_tokens)
    }

    /// What the caches of tokens did so far; `None` where nothing is tokenized.
    pub fn cache_counts(&self) -> Option<CacheCounts> {
        let caches = self.features.iter().filter_map(|feature| match &feature.work {
            Work::Tokens { tokens, .. } => Some(tokens.cache_counts()),
            _ => None,
        });
        caches.fold(None, |sum, (hits, misses)| {
            let CacheCounts { hits: h, misses: m } = sum.unwrap_or_default();
            Some(CacheCounts { hits: h + hits, misses: m + misses })
        })
    }

    /// The fields of a row and the error for a name that is none of them.
    #[cold]
    pub(crate) fn unknown_field(&self, row: Option<usize>, name: &str) -> Error {
        let known: Vec<String> = self.fields.iter().take(40).map(|f| format!("`{f}`")).collect();
        let at = row.map_or_else(String::new, |row| format!("instance {row}: "));
        Error::invalid(format!(
            "{at}there is no field {}, expected {}",
            crate::error::quote(name),
            known.join(", ")
        ))
    }
}

impl Compiled {
    const fn is_tokens(&self) -> bool {
        matches!(self.work, Work::Tokens { .. })
    }

    fn fills(&self, tensor: usize) -> bool {
        let also = match &self.work {
            Work::Tokens { mask, type_ids, .. } => *mask == Some(tensor) || *type_ids == Some(tensor),
            _ => false,
        };
        also || self.tensor == tensor
    }

    /// The columns that it writes in a tensor; rows of any length count as one.
    fn columns(&self, tensor: usize) -> Vec<usize> {
        if let Work::Tokens { mask, type_ids, .. } = &self.work {
            let written = [Some(self.tensor), *mask, *type_ids];
            return written.iter().filter(|t| **t == Some(tensor)).map(|_| 0).collect();
        }
        if self.tensor != tensor {
            return Vec::new();
        }
        let indicator = match &self.missing {
            OfMissing::Fill { indicator, .. } => *indicator,
            _ => None,
        };
        (self.column..self.column.saturating_add(self.width)).chain(indicator).collect()
    }

    fn is_missing(&self, raw: &Raw<'_>) -> bool {
        match raw {
            Raw::Null => true,
            Raw::Float(value) => value.is_nan(),
            Raw::Text(text) => self.missing_texts.iter().any(|missing| missing == text),
            _ => false,
        }
    }

    fn fill(
        &self,
        raw: &Raw<'_>,
        table: &mut Table<'_>,
        scratch: &mut Scratch,
    ) -> std::result::Result<(), Fault> {
        if let Work::Constant(number) = &self.work {
            return table.put(self.tensor, self.column, *number);
        }
        if !self.is_missing(raw) {
            return self.work_on(raw, table, scratch);
        }
        self.n_missing.fetch_add(1, Relaxed);
        match &self.missing {
            OfMissing::Error => Err(Fault::new("a value: the field has no rule for a missing one")),
            OfMissing::Replace(with) => self.work_on(&Raw::of_default(with), table, scratch),
            OfMissing::Fill { number, indicator } => {
                if let Some(column) = indicator {
                    table.put(self.tensor, *column, Num::Int(1))?;
                }
                (self.column..self.column + self.width)
                    .try_for_each(|column| table.put(self.tensor, column, *number))
            }
        }
    }

    fn work_on(
        &self,
        raw: &Raw<'_>,
        table: &mut Table<'_>,
        scratch: &mut Scratch,
    ) -> std::result::Result<(), Fault> {
        match &self.work {
            Work::Constant(number) => table.put(self.tensor, self.column, *number),
            Work::One(chain) => match self.known(chain.apply(raw)?) {
                Some(number) => table.put(self.tensor, self.column, number),
                None => Ok(()),
            },
            Work::Many(many, chain) => {
                scratch.clear();
                self.entries(many, chain, raw, scratch)?;
                self.lay_out(&many.shape, scratch, table)
            }
            Work::Tokens { tokens, mask, type_ids } => {
                let Raw::Text(text) = raw else { return Err(Fault::new("a string")) };
                let found = tokens.encode(text)?;
                table.put_row(self.tensor, found.ids.iter().map(|id| i64::from(*id)))?;
                if let Some(mask) = mask {
                    table.put_row(*mask, found.ids.iter().map(|_| 1))?;
                }
                if let Some(type_ids) = type_ids {
                    table.put_row(*type_ids, found.type_ids.iter().map(|id| i64::from(*id)))?;
                }
                Ok(())
            }
        }
    }

    fn known(&self, made: Made) -> Option<Num> {
        match made {
            Made::Number(number) => Some(number),
            Made::Unknown(number) => {
                self.n_unknown.fetch_add(1, Relaxed);
                Some(number)
            }
            Made::Skipped => {
                self.n_unknown.fetch_add(1, Relaxed);
                None
            }
        }
    }

    fn entries(
        &self,
        many: &Many,
        chain: &Chain,
        raw: &Raw<'_>,
        out: &mut Scratch,
    ) -> std::result::Result<(), Fault> {
        match (&many.separator, raw) {
            (None, Raw::List(items)) => {
                for item in items {
                    let made =
                        chain.apply(item).map_err(|fault| fault.with(format!("the entry {}", show(item))))?;
                    out.extend(self.known(made));
                }
            }
            (None, _) => return Err(Fault::new("a list")),
            (Some(_), Raw::Text(text)) if text.is_empty() => {}
            (Some(separator), Raw::Text(text)) => {
                for part in text.split(separator.as_str()) {
                    let shown = || format!("the entry {}", crate::error::quote(part));
                    out.extend(self.known(chain.of_text(part).map_err(|fault| fault.with(shown()))?));
                }
            }
            (Some(_), _) => return Err(Fault::new("a string")),
        }
        Ok(())
    }

    fn lay_out(
        &self,
        shape: &Shape,
        numbers: &[Num],
        table: &mut Table<'_>,
    ) -> std::result::Result<(), Fault> {
        match *shape {
            Shape::MultiHot { size, least, most } => {
                if !(least..=most).contains(&numbers.len()) {
                    let upper = if most == usize::MAX { "more".to_owned() } else { most.to_string() };
                    return Err(Fault::new(format!("{least} to {upper} entries"))
                        .with(format!("{} that count", numbers.len())));
                }
                for number in numbers {
                    let index = match number.settled() {
                        Num::Int(whole) => usize::try_from(whole).ok().filter(|index| *index < size),
                        Num::Float(_) => None,
                    };
                    let Some(index) = index else {
                        let text = format!("indexes of 0 to {}", size - 1);
                        return Err(Fault::new(text).with(format!("the index `{}`", number.to_f64())));
                    };
                    table.put(self.tensor, self.column + index, Num::Int(1))?;
                }
                Ok(())
            }
            Shape::Sequence { length, pad, pad_left, cut_left } => {
                let surplus = numbers.len().saturating_sub(length);
                let from = if cut_left { surplus } else { 0 };
                let kept = numbers.get(from..numbers.len() - (surplus - from)).unwrap_or(numbers);
                let gap = length - kept.len();
                let start = if pad_left { gap } else { 0 };
                for (at, column) in (self.column..self.column + length).enumerate() {
                    let number = at.checked_sub(start).and_then(|n| kept.get(n)).copied().unwrap_or(pad);
                    table.put(self.tensor, column, number)?;
                }
                Ok(())
            }
        }
    }
}
