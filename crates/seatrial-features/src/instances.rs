//! The body `{"instances": [{...}, ...]}` straight to tensors: one pass, and no tree of the whole.

use std::{borrow::Cow, fmt};

use seatrial_types::{Code, Error, Result};
use serde::{
    Deserialize, Deserializer,
    de::{DeserializeSeed, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor},
};

use crate::{
    error::quote,
    plan::{Plan, Scratch},
    raw::Raw,
    tensors::{Prepared, Table},
};

impl Plan {
    /// The tensors of a JSON body. More instances than `most` are refused before the next one is read.
    pub fn instances(&self, body: &[u8], most: Option<usize>) -> Result<Prepared> {
        let mut reading = Reading {
            plan: self,
            most: most.unwrap_or(usize::MAX),
            table: Table::new(&self.layouts),
            raws: vec![Raw::Null; self.fields.len()],
            scratch: Scratch::new(),
            rows: 0,
            refusal: None,
        };
        let mut json = serde_json::Deserializer::from_slice(body);
        let read = Body(&mut reading).deserialize(&mut json).and_then(|()| json.end());
        match (reading.refusal, read) {
            (Some(refusal), _) => Err(refusal),
            (None, Err(e)) => Err(Error::invalid(format!("the JSON is wrong: {e}"))),
            (None, Ok(())) => Ok(reading.table.finish()),
        }
    }
}

/// What is known while a body is read.
struct Reading<'p, 'de> {
    plan: &'p Plan,
    most: usize,
    table: Table<'p>,
    /// The values of the row being read, by place of their field.
    raws: Vec<Raw<'de>>,
    scratch: Scratch,
    rows: usize,
    /// What is wrong with the content; the JSON library only carries texts.
    refusal: Option<Error>,
}

impl Reading<'_, '_> {
    fn refuse<E: serde::de::Error>(&mut self, error: Error) -> E {
        self.refusal = Some(error);
        E::custom("refused")
    }
}

struct Body<'r, 'p, 'de>(&'r mut Reading<'p, 'de>);

impl<'de> DeserializeSeed<'de> for Body<'_, '_, 'de> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> std::result::Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Body<'_, '_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with `instances`")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> std::result::Result<(), A::Error> {
        let mut found = false;
        while let Some(key) = entries.next_key::<Key<'de>>()? {
            match &*key.0 {
                "instances" if found => return Err(A::Error::custom("`instances` is given twice")),
                "instances" => {
                    entries.next_value_seed(Instances(self.0))?;
                    found = true;
                }
                // Clients of TensorFlow Serving send it; there is one signature here.
                "signature_name" => drop(entries.next_value::<IgnoredAny>()?),
                other => {
                    let text = format!("there is no key {} in a body, expected `instances`", quote(other));
                    return Err(self.0.refuse(Error::invalid(text)));
                }
            }
        }
        if !found {
            return Err(self
                .0
                .refuse(Error::invalid("the body has no `instances`, expected a list of objects")));
        }
        Ok(())
    }
}

struct Instances<'r, 'p, 'de>(&'r mut Reading<'p, 'de>);

impl<'de> DeserializeSeed<'de> for Instances<'_, '_, 'de> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> std::result::Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Instances<'_, '_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of objects for `instances`")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> std::result::Result<(), A::Error> {
        while items.next_element_seed(Instance(&mut *self.0))?.is_some() {}
        Ok(())
    }
}

struct Instance<'r, 'p, 'de>(&'r mut Reading<'p, 'de>);

impl<'de> DeserializeSeed<'de> for Instance<'_, '_, 'de> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> std::result::Result<(), D::Error> {
        if self.0.rows >= self.0.most {
            let text = format!("there are more than {} `instances`, the most of one request", self.0.most);
            return Err(self.0.refuse(Error::new(Code::InvalidArgument, text)));
        }
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Instance<'_, '_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an object for instance {}", self.0.rows)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> std::result::Result<(), A::Error> {
        let reading = self.0;
        let row = reading.rows;
        reading.raws.fill(Raw::Null);
        while let Some(key) = entries.next_key::<Key<'de>>()? {
            let Some(place) = reading.plan.places.get(&*key.0) else {
                let refusal = reading.plan.unknown_field(Some(row), &key.0);
                return Err(reading.refuse(refusal));
            };
            let value = entries.next_value::<Raw<'de>>()?;
            let Some(slot) = reading.raws.get_mut(*place) else { continue };
            if *slot != Raw::Null {
                let text = format!("instance {row}: field {} is given twice", quote(&key.0));
                return Err(reading.refuse(Error::invalid(text)));
            }
            *slot = value;
        }
        reading.rows += 1;
        let Reading { plan, raws, table, scratch, .. } = reading;
        plan.add_row(row, raws, table, scratch).map_err(|error| reading.refuse(error))
    }
}

/// A key, borrowed unless it has escapes.
struct Key<'de>(Cow<'de, str>);

impl<'de> Deserialize<'de> for Key<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        match Raw::deserialize(deserializer)? {
            Raw::Text(text) => Ok(Self(text)),
            _ => Err(D::Error::custom("a key is no string")),
        }
    }
}
