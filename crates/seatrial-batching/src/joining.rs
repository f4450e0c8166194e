//! Which requests may share a run: whole rows on axis 0 and the same types and inner shapes.

use seatrial_types::{BatchMode, Request};

/// Whether the rows of `request` may stand beside those of others at all. Scalars have no axis to join on, and
/// requests without rows would be lost between their neighbours.
pub(crate) fn joinable(mode: BatchMode, request: &Request) -> bool {
    let whole_rows = || request.inputs.iter().all(|input| input.shape.first() == Some(&request.rows));
    mode != BatchMode::None && request.rows > 0 && !request.inputs.is_empty() && whole_rows()
}

/// Whether two joinable requests fit together.
pub(crate) fn same_inner(a: &Request, b: &Request) -> bool {
    a.inputs.len() == b.inputs.len()
        && a.inputs
            .iter()
            .zip(&b.inputs)
            .all(|(a, b)| a.datatype == b.datatype && a.shape.get(1..) == b.shape.get(1..))
}
