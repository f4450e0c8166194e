//! Whole columns to tensors, for data that lies in memory already. Each cell takes the way that a JSON value takes.

use std::borrow::Cow;

use seatrial_types::{Error, Result};

use crate::{
    plan::{Plan, Scratch},
    raw::Raw,
    tensors::{Prepared, Table},
};

/// The values of one field, row by row.
#[derive(Clone, Debug)]
pub struct Column {
    /// The values; what stands in a row without one is not looked at.
    pub values: Values,
    /// For each row 0 where there is no value; `None` when all rows have one.
    pub valid: Option<Vec<u8>>,
}

/// Values in one of the kinds that everything else is brought to.
#[derive(Clone, Debug)]
pub enum Values {
    /// Signed whole numbers.
    Int(Vec<i64>),
    /// Whole numbers without a sign.
    UInt(Vec<u64>),
    /// Numbers.
    Float(Vec<f64>),
    /// 0 for false.
    Bool(Vec<u8>),
    /// UTF-8, row *i* from `offsets[i]` to `offsets[i + 1]`.
    Text {
        /// One more than there are rows.
        offsets: Vec<i64>,
        /// All texts.
        data: Vec<u8>,
    },
    /// Lists, row *i* from `offsets[i]` to `offsets[i + 1]` of `items`.
    List {
        /// One more than there are rows.
        offsets: Vec<i64>,
        /// The entries of all lists.
        items: Box<Column>,
    },
    /// No row has a value.
    Nothing,
}

impl Column {
    fn cell(&self, row: usize) -> Option<Raw<'_>> {
        if self.valid.as_ref().is_some_and(|valid| valid.get(row) == Some(&0)) {
            return Some(Raw::Null);
        }
        Some(match &self.values {
            Values::Int(values) => Raw::Int((*values.get(row)?).into()),
            Values::UInt(values) => Raw::Int((*values.get(row)?).into()),
            Values::Float(values) => Raw::Float(*values.get(row)?),
            Values::Bool(values) => Raw::Bool(*values.get(row)? != 0),
            Values::Text { offsets, data } => {
                let text = data.get(span(offsets, row)?)?;
                Raw::Text(Cow::Borrowed(std::str::from_utf8(text).ok()?))
            }
            Values::List { offsets, items } => {
                let cells: Option<_> = span(offsets, row)?.map(|item| items.cell(item)).collect();
                Raw::List(cells?)
            }
            Values::Nothing => Raw::Null,
        })
    }
}

fn span(offsets: &[i64], row: usize) -> Option<std::ops::Range<usize>> {
    let at = |n: usize| offsets.get(n).and_then(|offset| usize::try_from(*offset).ok());
    Some(at(row)?..at(row.checked_add(1)?)?)
}

impl Plan {
    /// The tensors of `rows` rows. A field without a column has no values.
    pub fn columns(&self, rows: usize, columns: &[(String, Column)]) -> Result<Prepared> {
        let mut by_field: Vec<Option<&Column>> = vec![None; self.fields.len()];
        for (name, column) in columns {
            let place = self.places.get(name).ok_or_else(|| self.unknown_field(None, name))?;
            match by_field.get_mut(*place) {
                Some(slot @ None) => *slot = Some(column),
                _ => return Err(Error::invalid(format!("field `{name}` is given twice"))),
            }
        }
        let mut table = Table::new(&self.layouts);
        let mut scratch = Scratch::new();
        let mut cells = vec![Raw::Null; self.fields.len()];
        for row in 0..rows {
            for ((cell, column), name) in cells.iter_mut().zip(&by_field).zip(&self.fields) {
                let Some(column) = column else { continue };
                *cell = column.cell(row).ok_or_else(|| {
                    Error::invalid(format!("field `{name}`: row {row} is cut short or no UTF-8"))
                })?;
            }
            self.add_row(row, &cells, &mut table, &mut scratch)?;
        }
        Ok(table.finish())
    }
}
