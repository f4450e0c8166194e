//! The timetable of an open loop: every intended time, made before the run from the seed.
//!
//! The law is fixed for ever: PCG XSL RR 128/64 with state `seed` and stream [`STREAM`], its upper 53 bits as
//! u in (0, 1], gap = -ln(u) / rate with the portable logarithm of libm, times added up as f64 seconds.

use rand_pcg::{Pcg64, rand_core::Rng};

use crate::{Error, config::Arrivals};

/// The stream constant of the generator; part of the meaning of a seed.
pub const STREAM: u128 = 0x0a02_bdbf_7bb3_c0a7_ac28_fa16_a64a_bf96;

/// More would not fit into memory beside the server that is measured.
const MOST: f64 = 100e6;

/// Every intended time in nanoseconds from the start, rising, each below `duration_s`.
pub fn timetable(arrivals: Arrivals, rate_per_s: f64, duration_s: f64, seed: u64) -> Result<Vec<i64>, Error> {
    let expected = rate_per_s * duration_s;
    if expected > MOST {
        return Err(Error::config(
            format!(
                "{rate_per_s}/s for {duration_s} s are {expected:.0} requests, above {MOST:.0} in one run"
            ),
            "split the run into phases",
        ));
    }
    Ok(match arrivals {
        Arrivals::Constant => constant(rate_per_s, duration_s),
        Arrivals::Poisson => poisson(rate_per_s, duration_s, seed),
    })
}

fn constant(rate_per_s: f64, duration_s: f64) -> Vec<i64> {
    // A product such as 0.1 * 30 lands a hair above the whole number; that hair is not one more request.
    let count = (rate_per_s * duration_s - 1e-6).ceil() as u64;
    (0..count).map(|i| nanoseconds(i as f64 / rate_per_s)).collect()
}

fn poisson(rate_per_s: f64, duration_s: f64, seed: u64) -> Vec<i64> {
    let mut random = Pcg64::new(u128::from(seed), STREAM);
    let mut times = Vec::with_capacity((rate_per_s * duration_s * 1.01) as usize + 64);
    let mut at = 0.0;
    loop {
        let u = ((random.next_u64() >> 11) + 1) as f64 / (1_u64 << 53) as f64;
        at -= libm::log(u) / rate_per_s;
        if at >= duration_s {
            return times;
        }
        times.push(nanoseconds(at));
    }
}

fn nanoseconds(seconds: f64) -> i64 {
    (seconds * 1e9).round() as i64
}
