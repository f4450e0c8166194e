//! Texts to buckets. The functions of one name differ in text width, tail bytes, sign and modulo, and 12 of 20 texts
//! change their bucket with each, so a spec names all of them.

use crate::{
    error::SpecError,
    spec::{Algorithm, Encoding, HashStep, Modulo, Sign},
};

/// A checked [`HashStep`].
#[derive(Debug)]
pub(crate) struct Hash(HashStep);

impl Hash {
    pub(crate) fn compile(step: &HashStep) -> Result<Self, SpecError> {
        if step.buckets == 0 {
            return Err(SpecError::new("`buckets` is 0: expected 1 or more"));
        }
        if step.algorithm != Algorithm::Xxh64 && u32::try_from(step.seed).is_err() {
            return Err(SpecError::new(format!("`seed` is {}: expected at most {}", step.seed, u32::MAX)));
        }
        let largest = i128::from(step.buckets) - 1 + i128::from(step.offset);
        if i64::try_from(largest).is_err() {
            return Err(SpecError::new(format!(
                "`buckets` is {}: the largest index passes 64 bits",
                step.buckets
            )));
        }
        Ok(Self(step.clone()))
    }

    /// The bucket of a text, the offset added.
    pub(crate) fn index(&self, text: &str) -> i64 {
        let bits = match self.0.encoding {
            Encoding::Utf8 => self.bits(text.as_bytes()),
            Encoding::Utf16Le => {
                let bytes: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
                self.bits(&bytes)
            }
        };
        let value = match (self.0.sign, self.0.algorithm) {
            (Sign::Unsigned, _) => i128::from(bits),
            (Sign::Signed, Algorithm::Xxh64) => i128::from(bits.cast_signed()),
            (Sign::Signed, _) => i128::from((bits as u32).cast_signed()),
        };
        let value = match self.0.modulo {
            Modulo::Floor => value,
            Modulo::Abs => value.abs(),
        };
        // `compile` has checked that the sum fits.
        (value.rem_euclid(self.0.buckets.into()) + i128::from(self.0.offset)) as i64
    }

    fn bits(&self, bytes: &[u8]) -> u64 {
        match self.0.algorithm {
            Algorithm::Murmur3 => murmur3(bytes, self.0.seed as u32).into(),
            Algorithm::Murmur3Spark => murmur3_spark(bytes, self.0.seed as u32).into(),
            Algorithm::Xxh64 => xxhash_rust::xxh64::xxh64(bytes, self.0.seed),
        }
    }
}

fn murmur3(bytes: &[u8], seed: u32) -> u32 {
    let (blocks, tail) = bytes.as_chunks::<4>();
    let mut state = blocks.iter().fold(seed, |state, block| mix(state, u32::from_le_bytes(*block)));
    if !tail.is_empty() {
        let last = tail.iter().rev().fold(0, |word, byte| word << 8 | u32::from(*byte));
        state ^= scramble(last);
    }
    finish(state, bytes.len())
}

fn murmur3_spark(bytes: &[u8], seed: u32) -> u32 {
    let (blocks, tail) = bytes.as_chunks::<4>();
    let state = blocks.iter().fold(seed, |state, block| mix(state, u32::from_le_bytes(*block)));
    let state =
        tail.iter().fold(state, |state, byte| mix(state, i32::from(byte.cast_signed()).cast_unsigned()));
    finish(state, bytes.len())
}

const fn scramble(word: u32) -> u32 {
    word.wrapping_mul(0xcc9e_2d51).rotate_left(15).wrapping_mul(0x1b87_3593)
}

const fn mix(state: u32, word: u32) -> u32 {
    (state ^ scramble(word)).rotate_left(13).wrapping_mul(5).wrapping_add(0xe654_6b64)
}

const fn finish(state: u32, length: usize) -> u32 {
    let mut state = state ^ length as u32;
    state = (state ^ state >> 16).wrapping_mul(0x85eb_ca6b);
    state = (state ^ state >> 13).wrapping_mul(0xc2b2_ae35);
    state ^ state >> 16
}
