//! Content codings: gzip and deflate (in zlib's wrapping), bounded while they unpack.

use std::io::{Read, Write};

use bytes::Bytes;
use flate2::{Compression, Decompress, FlushDecompress, Status, read::MultiGzDecoder, write};
use seatrial_types::{Code, Error, Result};

use crate::refusal::quote;

/// What a request may be coded in, as `Accept-Encoding` lists it.
pub const TAKEN: &str = "gzip, deflate, identity";

/// Answers up to this size are not worth packing.
const SMALL: usize = 1024;

/// Unpacks a request body. `limit` bounds what comes out, while it comes out.
pub fn inflate(coding: &str, body: &[u8], limit: usize) -> Result<Vec<u8>> {
    match coding.trim().to_ascii_lowercase().as_str() {
        "gzip" | "x-gzip" => inflate_gzip(body, limit),
        "deflate" => inflate_zlib(body, limit),
        "" | "identity" if body.len() > limit => Err(too_large(limit)),
        "" | "identity" => Ok(body.to_vec()),
        _ => Err(Error::new(
            Code::UnsupportedMediaType,
            format!("content coding {} is not taken; taken is one of {TAKEN}", quote(coding)),
        )),
    }
}

fn inflate_gzip(body: &[u8], limit: usize) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    let bound = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    MultiGzDecoder::new(body)
        .take(bound)
        .read_to_end(&mut out)
        .map_err(|e| corrupt("gzip", &e.to_string()))?;
    if out.len() > limit { Err(too_large(limit)) } else { Ok(out) }
}

/// The reader type of the library takes a cut stream for its end, so the stream is driven by hand.
fn inflate_zlib(body: &[u8], limit: usize) -> Result<Vec<u8>> {
    let mut stream = Decompress::new(true);
    let mut out = Vec::new();
    loop {
        let room = limit.saturating_add(1).saturating_sub(out.len());
        out.reserve(room.min((out.len() / 2).max(16 * 1024)));
        let before = (stream.total_in(), stream.total_out());
        let rest = usize::try_from(before.0).ok().and_then(|used| body.get(used..)).unwrap_or_default();
        let status = stream
            .decompress_vec(rest, &mut out, FlushDecompress::None)
            .map_err(|e| corrupt("deflate", &e.to_string()))?;
        if out.len() > limit {
            return Err(too_large(limit));
        }
        match status {
            Status::StreamEnd if usize::try_from(stream.total_in()) == Ok(body.len()) => return Ok(out),
            Status::StreamEnd => return Err(corrupt("deflate", "bytes follow its end")),
            _ if (stream.total_in(), stream.total_out()) == before => {
                return Err(corrupt("deflate", "it is cut short"));
            }
            _ => {}
        }
    }
}

fn corrupt(coding: &str, why: &str) -> Error {
    Error::invalid(format!("the body is not valid {coding}: {why}"))
}

fn too_large(limit: usize) -> Error {
    Error::new(Code::PayloadTooLarge, format!("the body is larger than {limit} bytes once unpacked"))
}

/// Packs an answer if the client takes a coding and it is worth it. Returns the value for `Content-Encoding`.
pub fn deflate_answer(accept_encoding: &str, body: Bytes) -> (Bytes, Option<&'static str>) {
    if body.len() <= SMALL {
        return (body, None);
    }
    let packed = match preferred(accept_encoding) {
        Some("gzip") => {
            pack(write::GzEncoder::new(Vec::new(), Compression::fast()), &body, write::GzEncoder::finish)
        }
        Some(_) => {
            pack(write::ZlibEncoder::new(Vec::new(), Compression::fast()), &body, write::ZlibEncoder::finish)
        }
        None => return (body, None),
    };
    match packed {
        Some(packed) if packed.len() < body.len() => (Bytes::from(packed), preferred(accept_encoding)),
        _ => (body, None),
    }
}

fn pack<W: Write>(
    mut encoder: W,
    body: &[u8],
    finish: impl FnOnce(W) -> std::io::Result<Vec<u8>>,
) -> Option<Vec<u8>> {
    encoder.write_all(body).ok()?;
    finish(encoder).ok()
}

/// The coding with the highest weight; gzip before deflate, and neither when the client ranks it 0 or `identity`
/// above both.
fn preferred(accept_encoding: &str) -> Option<&'static str> {
    let weights: Vec<(&str, f32)> = accept_encoding.split(',').filter_map(weight).collect();
    let of =
        |name: &str| weights.iter().find(|(coding, _)| coding.eq_ignore_ascii_case(name)).map(|(_, q)| *q);
    let rank = |name: &str| of(name).or_else(|| of("*")).unwrap_or(0.0);
    let (gzip, deflate) = (rank("gzip").max(of("x-gzip").unwrap_or(0.0)), rank("deflate"));
    let best = gzip.max(deflate);
    if best <= 0.0 || of("identity").is_some_and(|q| q > best) {
        return None;
    }
    Some(if gzip >= deflate { "gzip" } else { "deflate" })
}

/// `gzip;q=0.5` as a pair. An unreadable weight counts as 0, so that nothing is sent that may not be wanted.
fn weight(item: &str) -> Option<(&str, f32)> {
    let mut parts = item.split(';');
    let coding = parts.next()?.trim();
    let q = parts.find_map(|part| part.trim().strip_prefix("q=").or_else(|| part.trim().strip_prefix("Q=")));
    (!coding.is_empty()).then(|| (coding, q.map_or(1.0, |q| q.trim().parse().unwrap_or(0.0))))
}
