//! Steps from number to number. Whole numbers stay whole until a step makes them fractions.

use crate::{
    error::{Fault, SpecError},
    spec::{Side, Step},
};

/// A number on its way to a tensor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Num {
    Int(i64),
    Float(f64),
}

impl Num {
    pub(crate) fn to_f64(self) -> f64 {
        match self {
            Self::Int(value) => value as f64,
            Self::Float(value) => value,
        }
    }

    /// Whole if it is or could be.
    pub(crate) fn settled(self) -> Self {
        match self {
            Self::Int(_) => self,
            Self::Float(value) => Self::of_f64(value),
        }
    }

    /// Whole if the value is.
    pub(crate) fn of_f64(value: f64) -> Self {
        if value.fract() == 0.0 && value.abs() <= MOST_EXACT {
            Self::Int(value as i64)
        } else {
            Self::Float(value)
        }
    }
}

/// Beyond it a double no longer tells whole numbers apart.
pub(crate) const MOST_EXACT: f64 = 9_007_199_254_740_992.0;

/// A checked step.
#[derive(Debug)]
pub(crate) enum Numeric {
    Bucketise {
        edges: Box<[f64]>,
        side: Side,
        offset: i64,
    },
    Clip {
        min: f64,
        max: f64,
    },
    Log1p,
    /// Less the first, by the second.
    Affine {
        less: f64,
        by: f64,
    },
}

impl Numeric {
    /// The step, or nothing when it is none of numbers.
    pub(crate) fn compile(step: &Step) -> Result<Option<Self>, SpecError> {
        let finite = |name: &str, value: f64| {
            if value.is_finite() {
                return Ok(value);
            }
            Err(SpecError::new(format!("`{name}` is {value}: expected a finite number")))
        };
        Ok(Some(match step {
            Step::Bucketise { edges, side, offset } => {
                let ascending = edges.is_sorted_by(|a, b| a < b) && edges.iter().all(|e| e.is_finite());
                if edges.is_empty() || !ascending {
                    return Err(SpecError::new("`edges`: expected ascending finite numbers, one at least"));
                }
                Self::Bucketise { edges: edges.as_slice().into(), side: *side, offset: *offset }
            }
            Step::Clip { min, max } => {
                let (min, max) = (min.unwrap_or(f64::NEG_INFINITY), max.unwrap_or(f64::INFINITY));
                if min > max || min.is_nan() || max.is_nan() {
                    return Err(SpecError::new(format!("`min` is {min}: expected at most `max`, {max}")));
                }
                Self::Clip { min, max }
            }
            Step::Log1p => Self::Log1p,
            Step::Standardise { mean, std } => {
                if finite("std", *std)? <= 0.0 {
                    return Err(SpecError::new(format!("`std` is {std}: expected a positive number")));
                }
                Self::Affine { less: finite("mean", *mean)?, by: *std }
            }
            Step::MinMax { min, max } => {
                if finite("max", *max)? <= finite("min", *min)? {
                    return Err(SpecError::new(format!("`max` is {max}: expected more than `min`, {min}")));
                }
                Self::Affine { less: *min, by: max - min }
            }
            _ => return Ok(None),
        }))
    }

    /// Whether the step gives whole numbers, given that it gets them or not.
    pub(crate) fn gives_whole(&self, whole: bool) -> bool {
        let integral = |bound: f64| bound.is_infinite() || matches!(Num::of_f64(bound), Num::Int(_));
        match self {
            Self::Bucketise { .. } => true,
            Self::Clip { min, max } => whole && integral(*min) && integral(*max),
            Self::Log1p | Self::Affine { .. } => false,
        }
    }

    pub(crate) fn apply(&self, number: Num) -> Result<Num, Fault> {
        let value = number.to_f64();
        Ok(match self {
            Self::Bucketise { edges, side, offset } => {
                let place = match side {
                    Side::Right => edges.partition_point(|edge| *edge <= value),
                    Side::Left => edges.partition_point(|edge| *edge < value),
                };
                Num::Int((place.cast_signed() as i64).saturating_add(*offset))
            }
            Self::Clip { min, .. } if value < *min => of_bound(number, *min),
            Self::Clip { max, .. } if value > *max => of_bound(number, *max),
            Self::Clip { .. } => number,
            Self::Log1p if value <= -1.0 => {
                return Err(Fault::new("a number above -1 for its logarithm").with(format!("`{value:?}`")));
            }
            Self::Log1p => Num::Float(libm::log1p(value)),
            Self::Affine { less, by } => Num::Float((value - less) / by),
        })
    }
}

/// The bound, whole where the number is.
fn of_bound(number: Num, bound: f64) -> Num {
    match number {
        Num::Int(_) => Num::of_f64(bound),
        Num::Float(_) => Num::Float(bound),
    }
}
