//! What is kept of one request, and the meaning of the stage header.

use seatrial_types::Stage;

/// The stages that a header can carry: all but `write`, which happens after it.
pub const STAGES: usize = Stage::ALL.len() - 1;

/// How a request ended. The numbers are the `outcome` column of `requests.arrow`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Outcome {
    /// A whole answer with a 2xx status.
    Ok = 0,
    /// A whole answer with another status.
    HttpError = 1,
    /// No whole answer before the time-out.
    Timeout = 2,
    /// No connection.
    Connect = 3,
    /// The connection ended before the answer did.
    Reset = 4,
    /// The answer was not HTTP.
    Protocol = 5,
    /// No free place among the requests in flight before the time-out.
    NotSent = 6,
}

/// One request. Times are nanoseconds from the run's origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// When it was due.
    pub intended: i64,
    /// When the client began with it: the write, or the connecting before it.
    pub sent: Option<i64>,
    /// When the first byte of the answer was there.
    pub first_byte: Option<i64>,
    /// When the answer was whole, or when the client gave up.
    pub end: i64,
    /// Status of the answer, 0 without one.
    pub status: u16,
    /// How it ended.
    pub outcome: Outcome,
    /// Bytes written.
    pub bytes_out: u32,
    /// Bytes read.
    pub bytes_in: u32,
    /// Number of the entry that was sent.
    pub body: u32,
    /// What the server said about its stages.
    pub stages: StageTimes,
}

/// Stage times in nanoseconds, each present or not; longer than 4.29 s is recorded as 4.29 s.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StageTimes {
    ns: [u32; STAGES],
    seen: u16,
}

impl StageTimes {
    /// Reads `accept=12;parse=8.5;…` in microseconds. Unknown names and malformed values are left out.
    pub fn parse(value: &[u8]) -> Self {
        let mut times = Self::default();
        for part in value.split(|b| *b == b';') {
            let mut sides = part.splitn(2, |b| *b == b'=');
            let (Some(name), Some(figure)) = (sides.next(), sides.next()) else { continue };
            let known = Stage::ALL.iter().position(|stage| stage.name().as_bytes() == name.trim_ascii());
            if let (Some(index), Some(ns)) = (known, microseconds(figure.trim_ascii()))
                && let Some(slot) = times.ns.get_mut(index)
            {
                *slot = ns;
                times.seen |= 1 << index;
            }
        }
        times
    }

    /// The time of the stage with this number.
    pub fn get(&self, index: usize) -> Option<u32> {
        (self.seen >> index & 1 == 1).then(|| self.ns.get(index).copied()).flatten()
    }
}

fn microseconds(text: &[u8]) -> Option<u32> {
    let (whole, fraction) = match text.iter().position(|b| *b == b'.') {
        Some(dot) => (text.get(..dot)?, text.get(dot + 1..)?),
        None => (text, &b""[..]),
    };
    let digits = |part: &[u8]| {
        part.iter().try_fold(0_u64, |sum, b| {
            b.is_ascii_digit().then(|| sum.saturating_mul(10).saturating_add(u64::from(b - b'0')))
        })
    };
    if whole.is_empty() {
        return None;
    }
    let mut padded = *b"000";
    for (slot, digit) in padded.iter_mut().zip(fraction) {
        *slot = *digit;
    }
    let ns = digits(whole)?.saturating_mul(1000).saturating_add(digits(&padded)?);
    Some(u32::try_from(ns).unwrap_or(u32::MAX))
}
