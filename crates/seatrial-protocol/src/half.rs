//! The two 16-bit floats, FP16 and BF16, to and from wider ones. Rounding is to nearest, ties to even.

use seatrial_types::{DataType, Tensor};

/// The values of a tensor of floats; `None` for any other type.
pub fn float_values(tensor: &Tensor) -> Option<Vec<f64>> {
    fn each<const N: usize>(data: &[u8], value: impl Fn([u8; N]) -> f64) -> Vec<f64> {
        data.as_chunks::<N>().0.iter().map(|bytes| value(*bytes)).collect()
    }
    let half = |format: Format| each(&tensor.data, |b| f64::from(format.widen(u16::from_le_bytes(b))));
    Some(match tensor.datatype {
        DataType::F16 => half(FP16),
        DataType::BF16 => half(BF16),
        DataType::F32 => each(&tensor.data, |b| f64::from(f32::from_le_bytes(b))),
        DataType::F64 => each(&tensor.data, f64::from_le_bytes),
        _ => return None,
    })
}

/// Bits of exponent and fraction of FP16.
pub(crate) const FP16: Format = Format { exponent: 5, fraction: 10 };
/// Bits of exponent and fraction of BF16.
pub(crate) const BF16: Format = Format { exponent: 8, fraction: 7 };

/// How a 16-bit float is laid out below its sign bit.
#[derive(Clone, Copy)]
pub(crate) struct Format {
    exponent: u32,
    fraction: u32,
}

impl Format {
    const fn infinity(self) -> u16 {
        ((1 << self.exponent) - 1) << self.fraction
    }

    /// The bits of the nearest value; `None` when a finite value is beyond the largest one.
    pub(crate) fn narrow(self, value: f64) -> Option<u16> {
        let sign = u16::from(value.is_sign_negative()) << 15;
        if value.is_nan() {
            return Some(sign | self.infinity() | 1 << (self.fraction - 1));
        }
        if value.is_infinite() {
            return Some(sign | self.infinity());
        }
        let bits = value.to_bits();
        let fraction = bits & ((1 << 52) - 1) | 1 << 52;
        let middle = (1 << (self.exponent - 1)) - 1;
        let exponent = ((bits >> 52 & 0x7ff) as i32) - 1023 + middle;
        // Below the normal range the implicit bit moves into the fraction.
        let shift = 52 - self.fraction + (1 - exponent).max(0) as u32;
        if shift > 54 {
            return Some(sign);
        }
        let (kept, rest, half) = (fraction >> shift, fraction & ((1 << shift) - 1), 1 << (shift - 1));
        let up = u64::from(rest > half || (rest == half && kept & 1 == 1));
        let magnitude = ((exponent.max(1) - 1) as u64).checked_shl(self.fraction)? + kept + up;
        let magnitude = u16::try_from(magnitude).ok().filter(|m| *m < self.infinity())?;
        Some(sign | magnitude)
    }

    /// The same value as a float; NaN stays NaN.
    pub(crate) fn widen(self, bits: u16) -> f32 {
        let magnitude = bits & 0x7fff;
        let fraction = magnitude & ((1 << self.fraction) - 1);
        let exponent = i32::from(magnitude >> self.fraction);
        let middle = (1 << (self.exponent - 1)) - 1;
        let unit = |e: i32| 2_f64.powi(e - middle - self.fraction.cast_signed());
        let value = if magnitude > self.infinity() {
            f64::NAN
        } else if magnitude == self.infinity() {
            f64::INFINITY
        } else if exponent == 0 {
            f64::from(fraction) * unit(1)
        } else {
            f64::from(fraction | 1 << self.fraction) * unit(exponent)
        };
        // Every finite value of both formats is exact in a float.
        if bits >> 15 == 1 { -value as f32 } else { value as f32 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bit_pattern_survives_widening_and_narrowing() {
        for format in [FP16, BF16] {
            for bits in 0..=u16::MAX {
                let wide = format.widen(bits);
                let back = format.narrow(f64::from(wide));
                if wide.is_nan() {
                    assert!(format.widen(back.unwrap()).is_nan());
                } else {
                    assert_eq!(back, Some(bits), "{wide}");
                }
            }
        }
    }

    #[test]
    fn bf16_is_the_upper_half_of_a_float() {
        for bits in (0..=u16::MAX).filter(|bits| !BF16.widen(*bits).is_nan()) {
            assert_eq!(BF16.widen(bits).to_bits(), u32::from(bits) << 16);
        }
    }

    #[test]
    fn half_way_goes_to_even_and_the_largest_is_not_exceeded() {
        for (value, bits) in [
            (1.0 + 2f64.powi(-11), Some(0x3c00)),
            (1.0 + 3.0 * 2f64.powi(-11), Some(0x3c02)),
            (1.0 + 2f64.powi(-11) + 2f64.powi(-40), Some(0x3c01)),
            (65519.9, Some(0x7bff)),
            (65520.0, None),
            (-65520.0, None),
            (1e300, None),
            (2f64.powi(-24), Some(1)),
            (2f64.powi(-25), Some(0)),
            (-2f64.powi(-25) * 1.0001, Some(0x8001)),
            (5e-324, Some(0)),
            (0.1, Some(0x2e66)),
        ] {
            assert_eq!(FP16.narrow(value), bits, "{value}");
        }
        assert_eq!(BF16.narrow(3.4e38), None);
        assert_eq!(BF16.narrow(0.1), Some(0x3dcd));
    }
}
