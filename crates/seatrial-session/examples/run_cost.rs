//! Microseconds of one run of a model through `Session`, at one row and at more: what our side of the border costs
//! over the runtime's own. Compare with the same model in the runtime's Python API, in turns on a quiet machine.
//!
//! `cargo run --release --example run_cost -- LIBRARY MODEL SIGNATURE.json [ROWS]`; the signature is that of
//! server.json.

use std::{
    error::Error,
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use bytes::Bytes;
use seatrial_session::{Runtime, Session, SessionOptions};
use seatrial_types::{Dim, Signature, Tensor, TensorSpec};

/// Time spent on each number of rows, after a tenth of it as warm-up.
const TIME: Duration = Duration::from_secs(1);

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let mut next = || arguments.next().ok_or("usage: run_cost LIBRARY MODEL SIGNATURE.json [ROWS]");
    let (library, model, signature) = (next()?, next()?, next()?);
    let rows = next().ok().and_then(|rows| rows.to_str()?.parse().ok()).unwrap_or(64);
    let signature: Signature = serde_json::from_slice(&fs::read(signature)?)?;
    let session = open(&library, &model, &signature)?;
    for rows in [1, rows] {
        let inputs: Vec<Tensor> = signature.inputs.iter().map(|spec| zeros(spec, rows)).collect();
        measure(&session, &inputs, TIME / 10)?;
        let (median, fastest, runs) = measure(&session, &inputs, TIME)?;
        println!("rows {rows:>5}: median {median:>8.2} us, fastest {fastest:>8.2} us a run, {runs} runs");
    }
    Ok(())
}

fn open(library: &Path, model: &Path, signature: &Signature) -> Result<Session, Box<dyn Error>> {
    let runtime = Runtime::open(library)?;
    Ok(runtime.session(model, signature, &SessionOptions::default())?)
}

/// Median and fastest run in microseconds, and how many there were.
fn measure(
    session: &Session,
    inputs: &[Tensor],
    time: Duration,
) -> Result<(f64, f64, usize), Box<dyn Error>> {
    let (start, mut spent) = (Instant::now(), Vec::new());
    while start.elapsed() < time {
        let before = Instant::now();
        session.run(inputs)?;
        spent.push(before.elapsed());
    }
    spent.sort_unstable();
    let at = |index: usize| spent.get(index).map_or(0.0, |time| time.as_secs_f64() * 1e6);
    Ok((at(spent.len() / 2), at(0), spent.len()))
}

fn zeros(spec: &TensorSpec, rows: usize) -> Tensor {
    let size = |(axis, dim): (usize, &Dim)| match dim {
        Dim::Fixed(size) => *size,
        Dim::Free { .. } => {
            if axis == 0 {
                rows
            } else {
                16
            }
        }
    };
    let shape: Vec<usize> = spec.shape.iter().enumerate().map(size).collect();
    let bytes = shape.iter().product::<usize>() * spec.datatype.size().unwrap_or(4);
    Tensor { datatype: spec.datatype, shape, data: Bytes::from(vec![0; bytes]) }
}
