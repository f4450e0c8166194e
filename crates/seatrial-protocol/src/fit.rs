//! Whether a tensor fits its place in the signature: rank, sizes, symbols shared between inputs, range of values.

use seatrial_types::{DataType, Dim, Signature, Tensor, TensorSpec};

use crate::{
    half::{BF16, FP16, Format},
    refusal::{Checked, refuse, show_sizes},
};

/// Rank, fixed sizes and the bounds of free ones.
pub(crate) fn check_shape(spec: &TensorSpec, shape: &[usize]) -> Checked<()> {
    let name = &spec.name;
    let promised = || show_shape(&spec.shape);
    if shape.len() != spec.shape.len() {
        return Err(refuse(format!(
            "input `{name}`: shape {} has {} dimensions, expected {} as in {}",
            show_sizes(shape),
            shape.len(),
            spec.shape.len(),
            promised()
        )));
    }
    for (axis, (size, dim)) in shape.iter().zip(&spec.shape).enumerate() {
        let limit = match dim {
            Dim::Fixed(fixed) if fixed != size => format!("expected {fixed}"),
            Dim::Free { max: Some(max), .. } if size > max => format!("at most {max}"),
            _ => continue,
        };
        return Err(refuse(format!(
            "input `{name}`: axis {axis} of shape {shape:?} is {size}, {limit} as in {}",
            promised()
        )));
    }
    Ok(())
}

/// A shape of the signature, symbols by name.
pub(crate) fn show_shape(shape: &[Dim]) -> String {
    let sizes: Vec<String> = shape
        .iter()
        .map(|dim| match dim {
            Dim::Fixed(size) => size.to_string(),
            Dim::Free { name, .. } => name.clone(),
        })
        .collect();
    format!("[{}]", sizes.join(", "))
}

/// Equal symbols have equal sizes, and the returned rows are what all inputs share along axis 0.
pub(crate) fn check_together(signature: &Signature, tensors: &[Tensor]) -> Checked<usize> {
    let mut known: Vec<(&str, usize, &str)> = Vec::new();
    for (spec, tensor) in signature.inputs.iter().zip(tensors) {
        for (dim, size) in spec.shape.iter().zip(&tensor.shape) {
            let Dim::Free { name: symbol, .. } = dim else { continue };
            match known.iter().find(|(known, ..)| known == symbol) {
                None => known.push((symbol, *size, &spec.name)),
                Some((_, first, _)) if first == size => {}
                Some((_, first, other)) => {
                    let same = format!(
                        "`{symbol}` is {first} in input `{other}` and {size} in input `{}`",
                        spec.name
                    );
                    return Err(refuse(format!("{same}; equal names need equal sizes")));
                }
            }
        }
    }
    shared_rows(signature, tensors)
}

fn shared_rows(signature: &Signature, tensors: &[Tensor]) -> Checked<usize> {
    let batched = |spec: &TensorSpec| matches!(spec.shape.first(), Some(Dim::Free { .. }));
    let Some(first) = tensors.first().filter(|_| signature.inputs.iter().all(batched)) else { return Ok(1) };
    let odd = tensors.iter().zip(&signature.inputs).find(|(tensor, _)| tensor.rows() != first.rows());
    match (odd, signature.inputs.first()) {
        (Some((tensor, spec)), Some(lead)) => Err(refuse(format!(
            "input `{}` has {} rows and input `{}` has {}; all inputs need the same number along axis 0",
            lead.name,
            first.rows(),
            spec.name,
            tensor.rows()
        ))),
        _ => Ok(first.rows()),
    }
}

/// Every value lies in the range that the signature promises, if it promises one. Integers are compared exactly;
/// floats with the bounds rounded to their own width, so that a bound of 0.1 takes the nearest float to 0.1.
pub(crate) fn check_range(spec: &TensorSpec, tensor: &Tensor) -> Checked<()> {
    let Some((low, high)) = spec.range else { return Ok(()) };
    let Some((index, value)) = first_outside(tensor.datatype, &tensor.data, low, high) else { return Ok(()) };
    Err(refuse(format!(
        "input `{}`: value `{value}` at {:?} is outside {} to {}",
        spec.name,
        place(index, &tensor.shape),
        show_bound(low),
        show_bound(high)
    )))
}

fn show_bound(bound: f64) -> String {
    if bound.abs() < 1e15 { bound.to_string() } else { format!("{bound:e}") }
}

fn first_outside(datatype: DataType, data: &[u8], low: f64, high: f64) -> Option<(usize, String)> {
    // Saturating casts: a bound beyond 128 bits holds for every 64-bit value.
    let (least, most) = (low.ceil() as i128, high.floor() as i128);
    let whole = |v: i128| !(least..=most).contains(&v);
    match datatype {
        DataType::U8 => find(data, u8::from_le_bytes, |v| whole(v.into())),
        DataType::U16 => find(data, u16::from_le_bytes, |v| whole(v.into())),
        DataType::U32 => find(data, u32::from_le_bytes, |v| whole(v.into())),
        DataType::U64 => find(data, u64::from_le_bytes, |v| whole(v.into())),
        DataType::I8 => find(data, i8::from_le_bytes, |v| whole(v.into())),
        DataType::I16 => find(data, i16::from_le_bytes, |v| whole(v.into())),
        DataType::I32 => find(data, i32::from_le_bytes, |v| whole(v.into())),
        DataType::I64 => find(data, i64::from_le_bytes, |v| whole(v.into())),
        DataType::F16 => find_half(data, FP16, low, high),
        DataType::BF16 => find_half(data, BF16, low, high),
        DataType::F32 => find(data, f32::from_le_bytes, |v| !(low as f32..=high as f32).contains(&v)),
        DataType::F64 => find(data, f64::from_le_bytes, |v| !(low..=high).contains(&v)),
        DataType::Bool | DataType::Bytes => None,
    }
}

fn find_half(data: &[u8], format: Format, low: f64, high: f64) -> Option<(usize, String)> {
    let round = |bound: f64| format.narrow(bound).map_or(bound as f32, |bits| format.widen(bits));
    let (low, high) = (round(low), round(high));
    find(data, |bits| format.widen(u16::from_le_bytes(bits)), |v| !(low..=high).contains(&v))
}

fn find<const SIZE: usize, T: Copy + std::fmt::Debug>(
    data: &[u8],
    read: impl Fn([u8; SIZE]) -> T,
    outside: impl Fn(T) -> bool,
) -> Option<(usize, String)> {
    let values = data.as_chunks::<SIZE>().0.iter().map(|bytes| read(*bytes));
    values.enumerate().find(|(_, v)| outside(*v)).map(|(index, v)| (index, format!("{v:?}")))
}

/// The index along every axis of a row-major element.
fn place(mut index: usize, shape: &[usize]) -> Vec<usize> {
    let mut place: Vec<usize> = Vec::with_capacity(shape.len());
    for size in shape.iter().rev() {
        place.push(index.checked_rem(*size).unwrap_or(0));
        index = index.checked_div(*size).unwrap_or(0);
    }
    place.reverse();
    place
}
