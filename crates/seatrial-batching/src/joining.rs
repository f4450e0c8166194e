//! Which requests may share a run: whole rows on axis 0, the same types, and the same inner shapes but for a length
//! that may be padded.

use seatrial_types::{BatchMode, PadPlan, Request};

/// Whether the rows of `request` may stand beside those of others at all. Scalars have no axis to join on, and
/// requests without rows would be lost between their neighbours, as would rows without any length among padded ones.
pub(crate) fn joinable(mode: BatchMode, padding: Option<&PadPlan>, request: &Request) -> bool {
    let whole_rows = || request.inputs.iter().all(|input| input.shape.first() == Some(&request.rows));
    let has_length = || padding.is_none_or(|plan| plan.length(&request.inputs).is_some_and(|n| n > 0));
    mode != BatchMode::None && request.rows > 0 && !request.inputs.is_empty() && whole_rows() && has_length()
}

/// Whether two joinable requests fit together.
pub(crate) fn same_inner(a: &Request, b: &Request, padding: Option<&PadPlan>) -> bool {
    let axis = |at: usize| Some(padding?.inputs().get(at)?.as_ref()?.axis);
    a.inputs.len() == b.inputs.len()
        && a.inputs.iter().zip(&b.inputs).enumerate().all(|(at, (a, b))| {
            a.datatype == b.datatype && same_but(a.shape.get(1..), b.shape.get(1..), axis(at))
        })
}

fn same_but(a: Option<&[usize]>, b: Option<&[usize]>, free_axis: Option<usize>) -> bool {
    let (Some(a), Some(b)) = (a, b) else { return a == b };
    let agree = |(at, (a, b)): (usize, (&usize, &usize))| a == b || Some(at + 1) == free_axis;
    a.len() == b.len() && a.iter().zip(b).enumerate().all(agree)
}

/// What the cost of a run depends on beside its rows: the length that can be padded, or else the elements of a row.
pub(crate) fn length(padding: Option<&PadPlan>, request: &Request) -> usize {
    let elements = || request.inputs.iter().map(|input| input.shape.iter().skip(1).product::<usize>()).sum();
    padding.and_then(|plan| plan.length(&request.inputs)).unwrap_or_else(elements)
}
