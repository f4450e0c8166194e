//! JSON numbers: one pass over the digits, then exact conversion. Integers never go through a float; floats are
//! correctly rounded to their own width.

/// Powers of ten that a double holds exactly.
const POWERS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18,
    1e19, 1e20, 1e21, 1e22,
];

/// The most digits that always fit a `u64`.
const EXACT_DIGITS: usize = 19;

/// A number as written: `mantissa * 10^exponent`, exact when there are at most 19 digits.
#[derive(Clone, Copy)]
pub(crate) struct Number<'a> {
    pub(crate) text: &'a [u8],
    negative: bool,
    /// Neither a fraction nor an exponent.
    whole: bool,
    digits: usize,
    mantissa: u64,
    exponent: i32,
}

impl<'a> Number<'a> {
    /// The number at the start of `text` by the grammar of JSON: no leading zeros, no bare point, no plus sign.
    #[allow(clippy::inline_always, reason = "a tenth of a decode, see examples/decode_cost.rs")]
    #[inline(always)]
    pub(crate) fn read(text: &'a [u8]) -> Option<Self> {
        let negative = text.first() == Some(&b'-');
        let (mut at, mut mantissa) = (usize::from(negative), 0);
        let first = text.get(at);
        let mut digits = take_digits(text, &mut at, &mut mantissa);
        if digits == 0 || (digits > 1 && first == Some(&b'0')) {
            return None;
        }
        let (mut whole, mut exponent) = (true, 0);
        if text.get(at) == Some(&b'.') {
            at += 1;
            let fraction = take_digits(text, &mut at, &mut mantissa);
            if fraction == 0 {
                return None;
            }
            digits += fraction;
            whole = false;
            exponent = -i32::try_from(fraction).unwrap_or(i32::MAX);
        }
        if let Some(b'e' | b'E') = text.get(at) {
            whole = false;
            exponent = exponent.saturating_add(take_exponent(text, &mut at)?);
        }
        Some(Self { text: text.get(..at)?, negative, whole, digits, mantissa, exponent })
    }

    /// Whether it is written without fraction and exponent. `5.0` and `1e2` are not.
    pub(crate) fn is_whole(&self) -> bool {
        self.whole
    }

    /// The value of a whole number, or `None` if it does not fit.
    #[inline]
    pub(crate) fn to_u64(self) -> Option<u64> {
        let magnitude = self.magnitude()?;
        (!self.negative || magnitude == 0).then_some(magnitude)
    }

    /// The value of a whole number, or `None` if it does not fit.
    #[inline]
    pub(crate) fn to_i64(self) -> Option<i64> {
        let magnitude = self.magnitude()?;
        if self.negative { 0_i64.checked_sub_unsigned(magnitude) } else { i64::try_from(magnitude).ok() }
    }

    #[inline]
    fn magnitude(self) -> Option<u64> {
        if !self.whole {
            return None;
        }
        if self.digits <= EXACT_DIGITS {
            return Some(self.mantissa);
        }
        self.as_str().trim_start_matches('-').parse().ok()
    }

    /// The nearest double; infinite when out of range.
    #[inline]
    pub(crate) fn to_f64(self) -> f64 {
        self.exact_product().unwrap_or_else(|| self.as_str().parse().unwrap_or(f64::NAN))
    }

    /// The nearest float; infinite when out of range.
    #[allow(clippy::inline_always, reason = "a tenth of a decode, see examples/decode_cost.rs")]
    #[inline(always)]
    pub(crate) fn to_f32(self) -> f32 {
        match self.exact_product() {
            // Rounding twice differs from rounding once only if the double lies half way between two floats.
            Some(double) if double.to_bits() & 0x1fff_ffff != 0x1000_0000 => double as f32,
            _ => self.as_str().parse().unwrap_or(f32::NAN),
        }
    }

    /// The correctly rounded double where one multiplication or division of exact operands gives it (Clinger 1990).
    #[allow(clippy::inline_always, reason = "a tenth of a decode, see examples/decode_cost.rs")]
    #[inline(always)]
    fn exact_product(self) -> Option<f64> {
        if self.digits > EXACT_DIGITS || self.mantissa > 1 << 53 {
            return None;
        }
        let power = *POWERS.get(self.exponent.unsigned_abs() as usize)?;
        let magnitude = self.mantissa as f64;
        let magnitude = if self.exponent < 0 { magnitude / power } else { magnitude * power };
        Some(if self.negative { -magnitude } else { magnitude })
    }

    fn as_str(&self) -> &'a str {
        std::str::from_utf8(self.text).unwrap_or_default()
    }
}

/// Takes the digits at the position and returns how many there were. Wraps beyond 19 digits; callers look.
#[inline]
fn take_digits(text: &[u8], at: &mut usize, mantissa: &mut u64) -> usize {
    let from = *at;
    while let Some(digit) = text.get(*at).map(|b| b.wrapping_sub(b'0')).filter(|digit| *digit < 10) {
        *mantissa = mantissa.wrapping_mul(10).wrapping_add(u64::from(digit));
        *at += 1;
    }
    *at - from
}

/// The exponent whose `e` is at the position. Beyond any float's range it only needs to stay large.
fn take_exponent(text: &[u8], at: &mut usize) -> Option<i32> {
    *at += 1;
    let negative = text.get(*at) == Some(&b'-');
    if negative || text.get(*at) == Some(&b'+') {
        *at += 1;
    }
    let from = *at;
    let mut value = 0_i32;
    while let Some(digit) = text.get(*at).filter(|b| b.is_ascii_digit()) {
        value = value.saturating_mul(10).saturating_add(i32::from(digit - b'0')).min(1_000_000);
        *at += 1;
    }
    (*at > from).then_some(if negative { -value } else { value })
}
