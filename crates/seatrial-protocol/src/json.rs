//! A JSON reader over a byte slice: it hands out tokens, builds no tree, never recurses and never panics.
//! Numbers keep their digits, so that whoever asks decides how exact they are.

use std::borrow::Cow;

use crate::{
    number::Number,
    refusal::{Checked, Refusal, quote, refuse},
};

/// The deepest nesting of a value that is skipped. Tensor data is bounded by the rank of its shape instead.
const MAX_DEPTH: u32 = 64;

/// What parameters are made of.
pub(crate) enum Scalar<'a> {
    Null,
    Bool(bool),
    Number(Number<'a>),
    Text(Cow<'a, str>),
    /// A list or an object, skipped.
    Nested,
}

#[derive(Clone, Copy)]
pub(crate) struct Reader<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(text: &'a [u8]) -> Self {
        Self { text, at: 0 }
    }

    pub(crate) fn at(&self) -> usize {
        self.at
    }

    pub(crate) fn go_to(&mut self, at: usize) {
        self.at = at;
    }

    /// Bytes not read yet.
    pub(crate) fn remaining(&self) -> usize {
        self.text.len().saturating_sub(self.at)
    }

    #[inline]
    pub(crate) fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    #[inline]
    pub(crate) fn skip_space(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.peek() {
            self.at += 1;
        }
    }

    /// Takes `byte` if it is next after white space.
    #[inline]
    pub(crate) fn eat(&mut self, byte: u8) -> bool {
        if self.peek() != Some(byte) {
            self.skip_space();
            if self.peek() != Some(byte) {
                return false;
            }
        }
        self.at += 1;
        true
    }

    fn expect(&mut self, byte: u8, what: &str) -> Checked<()> {
        if self.eat(byte) { Ok(()) } else { Err(self.unexpected(what)) }
    }

    /// Nothing but white space may follow.
    pub(crate) fn finish(&mut self) -> Checked<()> {
        self.skip_space();
        if self.remaining() == 0 { Ok(()) } else { Err(self.unexpected("the end of the JSON")) }
    }

    /// Calls `each` with every key; it must take the value.
    pub(crate) fn object(
        &mut self,
        what: &str,
        mut each: impl FnMut(&mut Self, &str) -> Checked<()>,
    ) -> Checked<()> {
        self.expect(b'{', what)?;
        if self.eat(b'}') {
            return Ok(());
        }
        loop {
            let key = self.string()?;
            self.expect(b':', "`:` after a key")?;
            each(self, &key)?;
            if !self.eat(b',') {
                return self.expect(b'}', "`,` or `}`");
            }
        }
    }

    /// Calls `each` at every item; it must take the item.
    pub(crate) fn list(&mut self, what: &str, mut each: impl FnMut(&mut Self) -> Checked<()>) -> Checked<()> {
        self.expect(b'[', what)?;
        if self.eat(b']') {
            return Ok(());
        }
        loop {
            each(self)?;
            if !self.eat(b',') {
                return self.expect(b']', "`,` or `]`");
            }
        }
    }

    /// Takes a literal such as `null` if it is next.
    pub(crate) fn literal(&mut self, word: &str) -> bool {
        self.skip_space();
        let found = self.text.get(self.at..).is_some_and(|rest| rest.starts_with(word.as_bytes()));
        if found {
            self.at += word.len();
        }
        found
    }

    /// Takes a number if one is next. Does not move otherwise. White space must have been skipped.
    #[allow(clippy::inline_always, reason = "a tenth of a decode, see examples/decode_cost.rs")]
    #[inline(always)]
    pub(crate) fn number(&mut self) -> Option<Number<'a>> {
        let number = Number::read(self.text.get(self.at..)?)?;
        self.at += number.text.len();
        Some(number)
    }

    pub(crate) fn string(&mut self) -> Checked<Cow<'a, str>> {
        self.skip_space();
        if self.peek() != Some(b'"') {
            return Err(self.unexpected("a string"));
        }
        self.at += 1;
        let run = self.plain_run()?;
        if self.peek() == Some(b'"') {
            self.at += 1;
            return Ok(Cow::Borrowed(run));
        }
        self.escaped(run.to_owned()).map(Cow::Owned)
    }

    /// The characters up to the next quote or backslash, which are left standing.
    fn plain_run(&mut self) -> Checked<&'a str> {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let length = rest.iter().position(|b| matches!(b, b'"' | b'\\' | 0..0x20)).unwrap_or(rest.len());
        let run = rest.get(..length).unwrap_or_default();
        let run = std::str::from_utf8(run).map_err(|e| {
            refuse(format!("invalid UTF-8 in a string at byte {}", self.at + e.valid_up_to()))
        })?;
        self.at += length;
        match self.peek() {
            Some(b'"' | b'\\') => Ok(run),
            Some(_) => Err(self.unexpected("an escape, since control characters may not stand in a string")),
            None => Err(self.unexpected("the end of a string")),
        }
    }

    fn escaped(&mut self, mut out: String) -> Checked<String> {
        loop {
            let closed = self.peek() == Some(b'"');
            self.at += 1;
            if closed {
                return Ok(out);
            }
            out.push(self.escape()?);
            out.push_str(self.plain_run()?);
        }
    }

    /// The character of an escape whose backslash has been taken.
    fn escape(&mut self) -> Checked<char> {
        let c = match self.peek() {
            Some(c @ (b'"' | b'\\' | b'/')) => char::from(c),
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => return self.unicode_escape(),
            _ => return Err(self.unexpected("an escape such as `\\n`")),
        };
        self.at += 1;
        Ok(c)
    }

    fn unicode_escape(&mut self) -> Checked<char> {
        let start = self.at.saturating_sub(1);
        let lone = || refuse(format!("half a surrogate pair in a string at byte {start}"));
        let high = self.hex4()?;
        if !(0xd800..0xe000).contains(&high) {
            return char::from_u32(high).ok_or_else(lone);
        }
        if high >= 0xdc00 || self.text.get(self.at..self.at + 2) != Some(b"\\u") {
            return Err(lone());
        }
        self.at += 1;
        let low = self.hex4()?;
        if !(0xdc00..0xe000).contains(&low) {
            return Err(lone());
        }
        char::from_u32(0x1_0000 + ((high - 0xd800) << 10) + (low - 0xdc00)).ok_or_else(lone)
    }

    /// The four hexadecimal digits after the `u` at the position.
    fn hex4(&mut self) -> Checked<u32> {
        self.at += 1;
        let digits = self.text.get(self.at..self.at + 4).unwrap_or_default();
        let value = digits.iter().try_fold(0, |v, b| Some(v << 4 | char::from(*b).to_digit(16)?));
        match value {
            Some(value) if digits.len() == 4 => {
                self.at += 4;
                Ok(value)
            }
            _ => Err(self.unexpected("four hexadecimal digits after `\\u`")),
        }
    }

    pub(crate) fn scalar(&mut self) -> Checked<Scalar<'a>> {
        self.skip_space();
        match self.peek() {
            Some(b'"') => Ok(Scalar::Text(self.string()?)),
            Some(b'{' | b'[') => self.skip_value().map(|()| Scalar::Nested),
            Some(b'n') if self.literal("null") => Ok(Scalar::Null),
            Some(b't') if self.literal("true") => Ok(Scalar::Bool(true)),
            Some(b'f') if self.literal("false") => Ok(Scalar::Bool(false)),
            _ => self.number().map(Scalar::Number).ok_or_else(|| self.unexpected("a JSON value")),
        }
    }

    /// Passes over one value of any kind and checks its syntax. The kinds of the open brackets lie in one word.
    pub(crate) fn skip_value(&mut self) -> Checked<()> {
        let (mut objects, mut depth) = (0_u64, 0);
        loop {
            self.skip_space();
            match self.peek() {
                Some(open @ (b'{' | b'[')) => {
                    if depth == MAX_DEPTH {
                        return Err(refuse(format!(
                            "JSON is nested deeper than {MAX_DEPTH} at byte {}",
                            self.at
                        )));
                    }
                    self.at += 1;
                    objects = objects << 1 | u64::from(open == b'{');
                    depth += 1;
                    if !self.eat(closing(objects)) {
                        self.key_if_object(objects)?;
                        continue;
                    }
                    objects >>= 1;
                    depth -= 1;
                }
                _ => drop(self.scalar()?),
            }
            loop {
                if depth == 0 {
                    return Ok(());
                }
                if self.eat(b',') {
                    break self.key_if_object(objects)?;
                }
                self.expect(closing(objects), if objects & 1 == 1 { "`,` or `}`" } else { "`,` or `]`" })?;
                objects >>= 1;
                depth -= 1;
            }
        }
    }

    fn key_if_object(&mut self, objects: u64) -> Checked<()> {
        if objects & 1 == 1 {
            self.string()?;
            self.expect(b':', "`:` after a key")?;
        }
        Ok(())
    }

    /// The token at the position, cut short, for messages.
    #[cold]
    pub(crate) fn token(&self) -> String {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let end = match rest.split_first() {
            Some((b'"', tail)) => tail.iter().position(|b| *b == b'"').map(|n| n + 2),
            Some((b'{' | b'[', _)) => Some(1),
            _ => rest
                .iter()
                .position(|b| matches!(b, b',' | b']' | b'}' | b':' | b' ' | b'\n' | b'\r' | b'\t')),
        };
        quote(rest.get(..end.unwrap_or(rest.len()).max(1)).unwrap_or(rest))
    }

    /// A syntax error at the position.
    #[cold]
    pub(crate) fn unexpected(&self, expected: &str) -> Refusal {
        let rest = self.text.get(self.at..).unwrap_or_default();
        if rest.is_empty() {
            return refuse(format!("the JSON is cut short at byte {}: expected {expected}", self.at));
        }
        if self.at == 0 && rest.starts_with(b"\xef\xbb\xbf") {
            return refuse("the JSON begins with a byte order mark; send it without");
        }
        if [&b"NaN"[..], b"Infinity", b"-Infinity"].iter().any(|word| rest.starts_with(word)) {
            let token = self.token();
            return refuse(format!(
                "{token} at byte {} is not JSON; send the string \"NaN\", \"Infinity\" or \"-Infinity\", or binary data",
                self.at
            ));
        }
        refuse(format!("the JSON is wrong at byte {}: expected {expected}, got {}", self.at, self.token()))
    }
}

fn closing(objects: u64) -> u8 {
    if objects & 1 == 1 { b'}' } else { b']' }
}
