//! What the tests share: the runtime, sessions of the tiny models, tensors, and requests with their answers.

use std::{
    env,
    io::{self, Write},
    path::{Path, PathBuf},
    process::Command,
    sync::{Arc, Mutex, OnceLock},
    time::{Duration, Instant},
};

use bytes::Bytes;
use seatrial_session::{Runtime, Session, SessionOptions};
use seatrial_types::{
    Batch, BatchSource, DataType, Dim, Release, Reply, Request, Signature, Stages, Tensor, TensorSpec, Ticket,
};
use tokio::sync::oneshot::Receiver;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Says on the real stderr, past the capture of the test harness, that a test did not run.
pub fn skip(why: &str) {
    let _ = writeln!(io::stderr(), "SKIPPED: {why}");
}

/// The library file, from the environment or from the repository's own Python environment.
pub fn library() -> Option<PathBuf> {
    if let Some(path) = env::var_os("SEATRIAL_TEST_RUNTIME").filter(|path| !path.is_empty()) {
        let path = repository().join(path);
        assert!(path.is_file(), "SEATRIAL_TEST_RUNTIME names no file: {}", path.display());
        return Some(path);
    }
    let find = "import glob, importlib.util as u\n\
                folder = u.find_spec('onnxruntime').submodule_search_locations[0]\n\
                print(glob.glob(folder + '/capi/libonnxruntime.so.*')[0])";
    let found = Command::new(repository().join(".venv/bin/python")).args(["-c", find]).output();
    let text = found.ok().filter(|output| output.status.success()).map(|output| output.stdout);
    let path = text.and_then(|text| String::from_utf8(text).ok()).map(|text| PathBuf::from(text.trim()));
    if path.is_none() {
        skip("no ONNX Runtime library; set SEATRIAL_TEST_RUNTIME or run `make setup`");
    }
    path
}

pub fn runtime() -> Option<Arc<Runtime>> {
    static RUNTIME: OnceLock<Option<Arc<Runtime>>> = OnceLock::new();
    RUNTIME.get_or_init(|| library().map(|path| Runtime::open(&path).unwrap())).clone()
}

/// The models of the sample folder beside the repository.
pub fn shared_models() -> Option<PathBuf> {
    let folder = repository().join("../shared/cases/models");
    if !folder.is_dir() {
        skip("no sample folder at ../shared/cases/models");
        return None;
    }
    Some(folder)
}

/// A tiny model of our own.
pub fn model(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/models").join(name)
}

pub fn open(runtime: &Arc<Runtime>, name: &str, signature: &Signature) -> Session {
    runtime.session(&model(name), signature, &SessionOptions::default()).unwrap()
}

/// A port of a signature; -1 is a free dimension.
pub fn spec(name: &str, datatype: DataType, shape: &[i64]) -> TensorSpec {
    let dim = |(axis, size): (usize, &i64)| {
        usize::try_from(*size).map_or_else(|_| Dim::Free { name: format!("d{axis}"), max: None }, Dim::Fixed)
    };
    let shape = shape.iter().enumerate().map(dim).collect();
    TensorSpec { name: name.to_owned(), datatype, shape, range: None, labels: None }
}

pub fn signature(inputs: &[TensorSpec], outputs: &[TensorSpec]) -> Signature {
    Signature { inputs: inputs.to_vec(), outputs: outputs.to_vec() }
}

pub fn double() -> Signature {
    signature(&[spec("x", DataType::F32, &[-1, 3])], &[spec("y", DataType::F32, &[-1, 3])])
}

pub fn lookup() -> Signature {
    signature(&[spec("ids", DataType::I64, &[-1])], &[spec("y", DataType::F32, &[-1, 2])])
}

pub fn mixed() -> Signature {
    signature(
        &[spec("x", DataType::F32, &[-1, 2]), spec("s", DataType::Bytes, &[-1, -1])],
        &[spec("y", DataType::F32, &[-1, 2]), spec("t", DataType::Bytes, &[-1, -1])],
    )
}

pub fn floats(shape: &[usize], values: &[f32]) -> Tensor {
    let data: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    Tensor { datatype: DataType::F32, shape: shape.to_vec(), data: data.into() }
}

pub fn integers(shape: &[usize], values: &[i64]) -> Tensor {
    let data: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    Tensor { datatype: DataType::I64, shape: shape.to_vec(), data: data.into() }
}

pub fn strings(shape: &[usize], values: &[&[u8]]) -> Tensor {
    let mut data = Vec::new();
    for value in values {
        data.extend_from_slice(&(value.len() as u32).to_le_bytes());
        data.extend_from_slice(value);
    }
    Tensor { datatype: DataType::Bytes, shape: shape.to_vec(), data: data.into() }
}

pub fn as_floats(tensor: &Tensor) -> Vec<f32> {
    assert_eq!(tensor.datatype, DataType::F32);
    tensor.data.chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect()
}

/// The same bytes at an address that is aligned for nothing.
pub fn unaligned(data: &[u8]) -> Bytes {
    let mut room = vec![0u8; data.len() + 17];
    let start = room.as_ptr().align_offset(8) + 1;
    room[start..start + data.len()].copy_from_slice(data);
    Bytes::from(room).slice(start..start + data.len())
}

pub fn request(inputs: Vec<Tensor>, rows: usize) -> (Request, Receiver<Reply>) {
    let (reply, answer) = tokio::sync::oneshot::channel();
    let now = Instant::now();
    let deadline = now + Duration::from_mins(1);
    let stages = Stages::start(now);
    (Request { inputs, rows, deadline, priority: 0, wire_bytes: 0, stages, reply }, answer)
}

/// A source that hands out given batches and then ends.
pub struct Given(Mutex<Vec<Batch>>);

impl Given {
    pub fn new(batches: Vec<Vec<Request>>) -> Arc<Self> {
        let batch = |requests| Batch { ticket: Ticket(1), requests, release: Release::Idle };
        Arc::new(Self(Mutex::new(batches.into_iter().rev().map(batch).collect())))
    }
}

impl BatchSource for Given {
    fn take(&self, _done: Option<Ticket>) -> Option<Batch> {
        self.0.lock().unwrap().pop()
    }
}
