//! `bodies.bin` to ready-made request bytes, so that a request in the run is one write and nothing else.

use std::path::Path;

use crate::{Config, Error, config::is_token};

/// Reads the entries and renders one whole request for each.
pub fn render(config: &Config) -> Result<Vec<Vec<u8>>, Error> {
    let data = std::fs::read(&config.bodies).map_err(|error| {
        Error::missing(
            format!("the bodies `{}` cannot be read: {error}", config.bodies.display()),
            "write the file before the run",
        )
    })?;
    let mut rest = data.as_slice();
    let mut requests = Vec::new();
    while !rest.is_empty() {
        let entry =
            take_entry(&mut rest).ok_or_else(|| broken(&config.bodies, requests.len(), "cut short"))?;
        requests.push(request(config, &entry).map_err(|why| broken(&config.bodies, requests.len(), why))?);
    }
    if requests.is_empty() {
        return Err(broken(&config.bodies, 0, "missing: the file is empty"));
    }
    Ok(requests)
}

/// Name and value.
type HeaderField<'a> = (&'a [u8], &'a [u8]);

struct Entry<'a> {
    headers: &'a [u8],
    body: &'a [u8],
}

fn take_entry<'a>(rest: &mut &'a [u8]) -> Option<Entry<'a>> {
    let (header_length, tail) = rest.split_first_chunk::<4>()?;
    let (body_length, tail) = tail.split_first_chunk::<4>()?;
    let (headers, tail) = tail.split_at_checked(u32::from_le_bytes(*header_length) as usize)?;
    let (body, tail) = tail.split_at_checked(u32::from_le_bytes(*body_length) as usize)?;
    *rest = tail;
    Some(Entry { headers, body })
}

fn request(config: &Config, entry: &Entry<'_>) -> Result<Vec<u8>, &'static str> {
    let own = header_lines(entry.headers)?;
    let target = &config.target;
    let mut out = Vec::with_capacity(256 + entry.headers.len() + entry.body.len());
    out.extend_from_slice(format!("{} {} HTTP/1.1\r\n", target.method, target.path).as_bytes());
    let given = |name: &str| own.iter().any(|(own_name, _)| own_name.eq_ignore_ascii_case(name.as_bytes()));
    let common = |name: &str| target.headers.iter().any(|(n, _)| n.eq_ignore_ascii_case(name));
    if !given("host") && !common("host") {
        let host = &target.host;
        let host = if host.contains(':') { format!("[{host}]") } else { host.clone() };
        field(&mut out, b"Host", format!("{host}:{}", target.port).as_bytes());
    }
    for (name, value) in target.headers.iter().filter(|(name, _)| !given(name)) {
        field(&mut out, name.as_bytes(), value.as_bytes());
    }
    for (name, value) in &own {
        field(&mut out, name, value);
    }
    if config.stages {
        field(&mut out, b"seatrial-stages", b"1");
    }
    let expects_body = !matches!(target.method.as_str(), "GET" | "HEAD" | "DELETE" | "OPTIONS");
    let framed = given("content-length") || given("transfer-encoding") || common("content-length");
    if !framed && (expects_body || !entry.body.is_empty()) {
        field(&mut out, b"Content-Length", entry.body.len().to_string().as_bytes());
    }
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(entry.body);
    Ok(out)
}

fn field(out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    for part in [name, b": ", value, b"\r\n"] {
        out.extend_from_slice(part);
    }
}

/// Header lines of an entry, a `CRLF` after each (the last may lack it).
fn header_lines(text: &[u8]) -> Result<Vec<HeaderField<'_>>, &'static str> {
    let lines = text.split(|b| *b == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    lines
        .filter(|line| !line.is_empty())
        .map(|line| {
            let colon = line.iter().position(|b| *b == b':').ok_or("not a header line")?;
            let (name, value) = line.split_at_checked(colon).ok_or("not a header line")?;
            let value = value.trim_ascii_start().strip_prefix(b":").unwrap_or_default().trim_ascii();
            let clean = !name.is_empty()
                && name.iter().copied().all(is_token)
                && value.iter().all(|b| *b >= b' ' || *b == b'\t');
            if clean { Ok((name, value)) } else { Err("not a header line") }
        })
        .collect()
}

fn broken(path: &Path, entry: usize, why: &str) -> Error {
    Error::config(
        format!("entry {entry} of the bodies `{}` is {why}", path.display()),
        "each entry is u32 header length, u32 body length, header lines, body",
    )
}
