//! The `data` of an input: a flat or rectangular nested JSON list, written straight into the tensor's buffer.

use bytes::Bytes;
use seatrial_types::{DataType, Error, TensorSpec};

use crate::{
    half::{BF16, FP16},
    json::Reader,
    number::Number,
    refusal::{Checked, Refusal, refuse},
};

/// Why reading stopped. The reader stands at the token that is wrong.
enum Stop {
    /// Lists where values are due, the other way round, or the wrong number of either.
    Structure,
    /// A value of another kind: what was due.
    Wanted(&'static str),
    /// A fraction or an exponent where whole numbers are due.
    Whole,
    /// A number that the type cannot hold.
    Range,
    /// Not JSON.
    Syntax(Refusal),
}

/// Reads the list at the reader's position. Nothing is allocated that the text cannot fill.
pub(crate) fn read(reader: &mut Reader<'_>, spec: &TensorSpec, shape: &[usize]) -> Checked<Bytes> {
    reader.skip_space();
    let start = reader.at();
    // Each value takes at least one character and a comma or bracket.
    let room = reader.remaining() / 2 + 1;
    let outcome = match count(shape).filter(|n| *n <= room) {
        Some(elements) => read_typed(reader, spec.datatype, shape, elements),
        None => Err(Stop::Structure),
    };
    outcome.map_err(|stop| explain(stop, *reader, start, spec, shape))
}

/// Number of elements of a shape, unless it overflows.
pub(crate) fn count(shape: &[usize]) -> Option<usize> {
    if shape.contains(&0) {
        return Some(0);
    }
    shape.iter().try_fold(1_usize, |product, size| product.checked_mul(*size))
}

fn read_typed(
    reader: &mut Reader<'_>,
    datatype: DataType,
    shape: &[usize],
    elements: usize,
) -> Result<Bytes, Stop> {
    let fixed = match datatype {
        DataType::Bool => fill(reader, shape, elements, |r| truth(r).map(|b| [u8::from(b)])),
        DataType::U8 => fill(reader, shape, elements, |r| unsigned::<u8>(r).map(u8::to_le_bytes)),
        DataType::U16 => fill(reader, shape, elements, |r| unsigned::<u16>(r).map(u16::to_le_bytes)),
        DataType::U32 => fill(reader, shape, elements, |r| unsigned::<u32>(r).map(u32::to_le_bytes)),
        DataType::U64 => fill(reader, shape, elements, |r| unsigned::<u64>(r).map(u64::to_le_bytes)),
        DataType::I8 => fill(reader, shape, elements, |r| signed::<i8>(r).map(i8::to_le_bytes)),
        DataType::I16 => fill(reader, shape, elements, |r| signed::<i16>(r).map(i16::to_le_bytes)),
        DataType::I32 => fill(reader, shape, elements, |r| signed::<i32>(r).map(i32::to_le_bytes)),
        DataType::I64 => fill(reader, shape, elements, |r| signed::<i64>(r).map(i64::to_le_bytes)),
        DataType::F16 => fill(reader, shape, elements, |r| {
            float(r, |n| FP16.narrow(n.to_f64()), |v| FP16.narrow(v).unwrap_or_default())
                .map(u16::to_le_bytes)
        }),
        DataType::BF16 => fill(reader, shape, elements, |r| {
            float(r, |n| BF16.narrow(n.to_f64()), |v| BF16.narrow(v).unwrap_or_default())
                .map(u16::to_le_bytes)
        }),
        DataType::F32 => fill(reader, shape, elements, |r| {
            float(r, |n| Some(n.to_f32()).filter(|v| v.is_finite()), |v| v as f32).map(f32::to_le_bytes)
        }),
        DataType::F64 => fill(reader, shape, elements, |r| {
            float(r, |n| Some(n.to_f64()).filter(|v| v.is_finite()), |v| v).map(f64::to_le_bytes)
        }),
        DataType::Bytes => strings(reader, shape, elements),
    };
    fixed.map(Bytes::from)
}

#[inline]
fn fill<const SIZE: usize>(
    reader: &mut Reader<'_>,
    shape: &[usize],
    elements: usize,
    mut value: impl FnMut(&mut Reader<'_>) -> Result<[u8; SIZE], Stop>,
) -> Result<Vec<u8>, Stop> {
    let mut out = vec![0; elements * SIZE];
    let mut slots = out.as_chunks_mut::<SIZE>().0.iter_mut();
    walk(reader, shape, elements, |reader| {
        let bytes = value(reader)?;
        *slots.next().ok_or(Stop::Structure)? = bytes;
        Ok(())
    })?;
    Ok(out)
}

fn strings(reader: &mut Reader<'_>, shape: &[usize], elements: usize) -> Result<Vec<u8>, Stop> {
    let mut out = Vec::with_capacity(elements.saturating_mul(8).min(reader.remaining()));
    walk(reader, shape, elements, |reader| {
        if reader.peek() != Some(b'"') {
            return Err(Stop::Wanted("a string"));
        }
        let text = reader.string().map_err(Stop::Syntax)?;
        let length = u32::try_from(text.len()).map_err(|_| Stop::Range)?;
        out.extend_from_slice(&length.to_le_bytes());
        out.extend_from_slice(text.as_bytes());
        Ok(())
    })?;
    Ok(out)
}

/// Steps through the lists and calls `leaf` at each value, white space skipped.
#[inline]
fn walk(
    reader: &mut Reader<'_>,
    shape: &[usize],
    elements: usize,
    mut leaf: impl FnMut(&mut Reader<'_>) -> Result<(), Stop>,
) -> Result<(), Stop> {
    let nested = nested_shape(shape);
    match opening_brackets(*reader, shape.len()) {
        0 if shape.is_empty() => leaf(reader),
        1 => row(reader, elements, &mut leaf),
        depth if depth == nested.len() => rows(reader, nested, &mut leaf),
        _ => Err(Stop::Structure),
    }
}

/// The levels that a nested list of this shape has: an empty list has nothing below it.
fn nested_shape(shape: &[usize]) -> &[usize] {
    let levels = shape.iter().position(|size| *size == 0).map_or(shape.len(), |at| at + 1);
    shape.get(..levels).unwrap_or(shape)
}

/// How many lists open at the start, counted to one more than the rank.
fn opening_brackets(mut reader: Reader<'_>, rank: usize) -> usize {
    (0..=rank).take_while(|_| reader.eat(b'[')).count()
}

#[inline]
fn row(
    reader: &mut Reader<'_>,
    size: usize,
    leaf: &mut impl FnMut(&mut Reader<'_>) -> Result<(), Stop>,
) -> Result<(), Stop> {
    due(reader.eat(b'['))?;
    for n in 0..size {
        due(n == 0 || reader.eat(b','))?;
        reader.skip_space();
        leaf(reader)?;
    }
    due(reader.eat(b']'))
}

fn rows(
    reader: &mut Reader<'_>,
    shape: &[usize],
    leaf: &mut impl FnMut(&mut Reader<'_>) -> Result<(), Stop>,
) -> Result<(), Stop> {
    let (inner, outer) = shape.split_last().ok_or(Stop::Structure)?;
    let mut levels: Vec<(usize, usize)> = outer.iter().map(|size| (*size, 0)).collect();
    let mut opening = levels.len();
    loop {
        for _ in 0..opening {
            due(reader.eat(b'['))?;
        }
        row(reader, *inner, leaf)?;
        opening = 0;
        for (size, done) in levels.iter_mut().rev() {
            *done += 1;
            if *done < *size {
                break;
            }
            *done = 0;
            due(reader.eat(b']'))?;
            opening += 1;
        }
        if opening == levels.len() {
            return Ok(());
        }
        due(reader.eat(b','))?;
    }
}

#[inline]
fn due(found: bool) -> Result<(), Stop> {
    if found { Ok(()) } else { Err(Stop::Structure) }
}

/// The number at the position, or what is wrong with what stands there.
#[inline]
fn number<'a>(reader: &mut Reader<'a>, wanted: &'static str) -> Result<Number<'a>, Stop> {
    reader.number().ok_or(Stop::Wanted(wanted))
}

#[inline]
fn unsigned<T: TryFrom<u64>>(reader: &mut Reader<'_>) -> Result<T, Stop> {
    whole(reader, |n| n.to_u64().and_then(|v| T::try_from(v).ok()))
}

#[inline]
fn signed<T: TryFrom<i64>>(reader: &mut Reader<'_>) -> Result<T, Stop> {
    whole(reader, |n| n.to_i64().and_then(|v| T::try_from(v).ok()))
}

#[inline]
fn whole<T>(reader: &mut Reader<'_>, convert: impl Fn(Number<'_>) -> Option<T>) -> Result<T, Stop> {
    let start = reader.at();
    let number = number(reader, "a whole number")?;
    convert(number).ok_or_else(|| {
        reader.go_to(start);
        if number.is_whole() { Stop::Range } else { Stop::Whole }
    })
}

#[inline]
fn float<T>(
    reader: &mut Reader<'_>,
    convert: impl Fn(Number<'_>) -> Option<T>,
    special: impl Fn(f64) -> T,
) -> Result<T, Stop> {
    let start = reader.at();
    if reader.peek() == Some(b'"') {
        return non_finite(reader).map(special);
    }
    let number = number(reader, "a number")?;
    convert(number).ok_or_else(|| {
        reader.go_to(start);
        Stop::Range
    })
}

/// The three strings that stand for values without a JSON number.
#[cold]
fn non_finite(reader: &mut Reader<'_>) -> Result<f64, Stop> {
    let start = reader.at();
    let value = match &*reader.string().map_err(Stop::Syntax)? {
        "NaN" => f64::NAN,
        "Infinity" => f64::INFINITY,
        "-Infinity" => f64::NEG_INFINITY,
        _ => {
            reader.go_to(start);
            return Err(Stop::Wanted("a number, or the string \"NaN\", \"Infinity\" or \"-Infinity\""));
        }
    };
    Ok(value)
}

fn truth(reader: &mut Reader<'_>) -> Result<bool, Stop> {
    if reader.literal("true") {
        Ok(true)
    } else if reader.literal("false") {
        Ok(false)
    } else {
        Err(Stop::Wanted("true or false"))
    }
}

/// Says what is wrong, in words of the input. Reads the data a second time, since only refused requests come here.
#[cold]
fn explain(stop: Stop, reader: Reader<'_>, start: usize, spec: &TensorSpec, shape: &[usize]) -> Refusal {
    let mut whole = reader;
    whole.go_to(start);
    let what = match (stop, whole.skip_value()) {
        (Stop::Syntax(refusal), _) | (_, Err(refusal)) => Error::from(refusal).message,
        (Stop::Structure, _) => structure(whole, start, shape),
        (Stop::Wanted(_), _) if matches!(reader.peek(), Some(b'[' | b']')) => structure(whole, start, shape),
        (stop, _) => value(&stop, reader, start, spec.datatype),
    };
    refuse(format!("input `{}`: {what}", spec.name))
}

fn value(stop: &Stop, reader: Reader<'_>, start: usize, datatype: DataType) -> String {
    let index = leaves(reader, start, reader.at());
    let token = reader.token();
    match stop {
        Stop::Wanted(what) => format!("data[{index}] is {token}, {datatype} takes {what}"),
        Stop::Whole => {
            format!("data[{index}] is {token}, {datatype} takes whole numbers without point or exponent")
        }
        _ => format!("data[{index}] is {token}, which is out of range for {datatype}"),
    }
}

fn structure(after: Reader<'_>, start: usize, shape: &[usize]) -> String {
    let found = leaves(after, start, after.at());
    match count(shape) {
        None => format!("shape {shape:?} is too large"),
        Some(due) if due != found => format!("shape {shape:?} takes {due} values, data has {found}"),
        Some(_) => format!("data is neither a flat list nor lists nested evenly as shape {shape:?}"),
    }
}

/// Values between two positions of data whose syntax is known to be right.
fn leaves(mut reader: Reader<'_>, start: usize, end: usize) -> usize {
    reader.go_to(start);
    let mut found = 0;
    loop {
        while reader.eat(b'[') || reader.eat(b']') || reader.eat(b',') {}
        if reader.at() >= end || reader.skip_value().is_err() {
            return found;
        }
        found += 1;
    }
}
