//! One raw value of one field, whoever brought it: a JSON body or a column. Texts are borrowed where they can be.

use std::{borrow::Cow, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess, SeqAccess, Visitor},
};

use crate::spec::RawDefault;

/// A raw value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Raw<'a> {
    Null,
    Bool(bool),
    /// Wide enough for both kinds of 64 bits.
    Int(i128),
    Float(f64),
    Text(Cow<'a, str>),
    List(Vec<Raw<'a>>),
    /// Nothing takes it; kept to be named in the refusal.
    Object,
}

impl<'a> Raw<'a> {
    pub(crate) fn of_default(value: &'a RawDefault) -> Self {
        match value {
            RawDefault::Bool(value) => Self::Bool(*value),
            RawDefault::Int(value) => Self::Int((*value).into()),
            RawDefault::Float(value) => Self::Float(*value),
            RawDefault::Text(text) => Self::Text(Cow::Borrowed(text)),
            RawDefault::Texts(texts) => {
                Self::List(texts.iter().map(|t| Self::Text(Cow::Borrowed(t))).collect())
            }
        }
    }
}

impl<'de> Deserialize<'de> for Raw<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(RawVisitor)
    }
}

struct RawVisitor;

impl<'de> Visitor<'de> for RawVisitor {
    type Value = Raw<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Raw<'de>, E> {
        Ok(Raw::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Raw<'de>, E> {
        Ok(Raw::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Raw<'de>, E> {
        Ok(Raw::Int(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Raw<'de>, E> {
        Ok(Raw::Int(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Raw<'de>, E> {
        Ok(Raw::Float(value))
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Raw<'de>, E> {
        Ok(Raw::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Raw<'de>, E> {
        Ok(Raw::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Raw<'de>, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Raw::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Raw<'de>, A::Error> {
        while entries.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Raw::Object)
    }
}
