//! One loaded model. Many threads may run it at once: on the CPU the C API's `Run` is thread-safe by contract.

use std::{
    ffi::{CStr, CString, c_char, c_int},
    os::unix::ffi::OsStrExt,
    path::Path,
    ptr,
    sync::Arc,
};

use ort_sys::{ExecutionMode, GraphOptimizationLevel, OrtSession, OrtSessionOptions, OrtValue};
use seatrial_types::{Code, Dim, Error, Result, Runner, Signature, Tensor, TensorSpec};

use crate::{
    Runtime, SessionError,
    api::{Api, Fault, INVALID_ARGUMENT, Owned, call},
    signature,
    value::{Input, read_output},
};

/// `ORT_LOGGING_LEVEL_FATAL`. Every lesser error comes back as a status too, and a client must not be able to fill the
/// log with requests that the model refuses.
const LOG_FATAL_ONLY: c_int = 4;

/// How a session computes. Thread counts are always explicit: the runtime's own default is the host's core count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionOptions {
    /// Threads inside one operator; 1 computes on the calling thread.
    pub intra_op_threads: usize,
    /// Whether idle threads spin for their next piece of work. Right only where cores are ours alone.
    pub spin: bool,
}

impl Default for SessionOptions {
    fn default() -> Self {
        Self { intra_op_threads: 1, spin: false }
    }
}

/// A loaded model whose graph agrees with its signature.
pub struct Session {
    // Declared before the runtime: fields are dropped in order, and the session needs its environment to the last.
    handle: Owned<OrtSession>,
    runtime: Arc<Runtime>,
    inputs: Names,
    outputs: Names,
}

// SAFETY: the C API documents `Run` on one session as safe from many threads at once; everything else is read-only
// after `open`.
unsafe impl Send for Session {}
// SAFETY: as above.
unsafe impl Sync for Session {}

/// Names as the C API wants them, made once.
struct Names {
    /// Into `owned`, whose heap buffers do not move.
    pointers: Vec<*const c_char>,
    _owned: Vec<CString>,
}

impl Session {
    pub(crate) fn open(
        runtime: Arc<Runtime>,
        model_file: &Path,
        signature: &Signature,
        options: &SessionOptions,
    ) -> std::result::Result<Self, SessionError> {
        let api = runtime.api();
        let free =
            signature.inputs.iter().any(|spec| spec.shape.iter().any(|dim| matches!(dim, Dim::Free { .. })));
        let settings =
            session_options(api, options, free).map_err(|fault| SessionError::Runtime(fault.to_string()))?;
        let refused = |reason: String| SessionError::Model { path: model_file.to_owned(), reason };
        let path =
            CString::new(model_file.as_os_str().as_bytes()).map_err(|error| refused(error.to_string()))?;
        // SAFETY: environment, path and options are live; given a path and not bytes, the runtime looks for external
        // data beside the model file whatever the working directory is.
        let handle = unsafe {
            Owned::create((*api.table()).ReleaseSession, |out| {
                call!(api, CreateSession(runtime.env(), path.as_ptr(), settings.as_ptr(), out))
            })
        };
        let handle = handle.map_err(|fault| refused(fault.to_string()))?;
        signature::check(api, handle.as_ptr(), signature)?;
        let (inputs, outputs) = (Names::of(&signature.inputs)?, Names::of(&signature.outputs)?);
        Ok(Self { handle, runtime, inputs, outputs })
    }

    /// Runs the model once. Inputs and outputs are in the order of the signature. Aligned input buffers are used in
    /// place; outputs are copied once.
    pub fn run(&self, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
        if inputs.len() != self.inputs.pointers.len() {
            let (came, needed) = (inputs.len(), self.inputs.pointers.len());
            return Err(Error::internal(format!("{came} inputs came to a model that takes {needed}")));
        }
        let values =
            inputs.iter().map(|input| Input::new(&self.runtime, input)).collect::<Result<Vec<_>>>()?;
        let outputs = self.call_run(&values).map_err(|fault| run_error(&fault))?;
        // The inputs outlive the copies: an output of a model that hands its input through shares the input's memory.
        let tensors = outputs.iter().map(|value| read_output(self.runtime.api(), value)).collect();
        drop(values);
        tensors
    }

    /// The runtime that the session belongs to.
    pub fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    fn call_run(&self, values: &[Input]) -> std::result::Result<Vec<Owned<OrtValue>>, Fault> {
        let api = self.runtime.api();
        let inputs: Vec<*const OrtValue> = values.iter().map(Input::as_ptr).collect();
        let mut outputs: Vec<*mut OrtValue> = vec![ptr::null_mut(); self.outputs.pointers.len()];
        // SAFETY: the session is live; names and values are as many as the counts say; null run options mean the
        // defaults; null outputs are filled by the runtime with values that are ours.
        let status = unsafe {
            call!(
                api,
                Run(
                    self.handle.as_ptr(),
                    ptr::null(),
                    self.inputs.pointers.as_ptr(),
                    inputs.as_ptr(),
                    inputs.len(),
                    self.outputs.pointers.as_ptr(),
                    outputs.len(),
                    outputs.as_mut_ptr(),
                )
            )
        };
        // SAFETY: each pointer is null or a value that the run made for us, also when it failed half-way.
        let take = |value| unsafe { Owned::take(value, (*api.table()).ReleaseValue) };
        let outputs: Vec<_> = outputs.into_iter().map(take).collect();
        status?;
        outputs.into_iter().map(|value| value.ok_or_else(|| Fault::new("the model gave no value"))).collect()
    }
}

/// One session under several executors: each holds a clone.
#[derive(Clone)]
pub struct SharedSession(pub Arc<Session>);

impl Runner for SharedSession {
    fn run(&mut self, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
        self.0.run(inputs)
    }
}

impl Names {
    fn of(specs: &[TensorSpec]) -> std::result::Result<Self, SessionError> {
        let owned = specs
            .iter()
            .map(|spec| CString::new(spec.name.as_str()))
            .collect::<std::result::Result<Vec<_>, _>>();
        let owned = owned.map_err(|_| SessionError::Signature("a name holds a zero byte".to_owned()))?;
        Ok(Self { pointers: owned.iter().map(|name| name.as_ptr()).collect(), _owned: owned })
    }
}

fn session_options(
    api: Api,
    options: &SessionOptions,
    free: bool,
) -> std::result::Result<Owned<OrtSessionOptions>, Fault> {
    let threads =
        c_int::try_from(options.intra_op_threads.max(1)).map_err(|_| Fault::new("too many threads"))?;
    let spin: &CStr = if options.spin { c"1" } else { c"0" };
    // SAFETY: the table is valid; the options are live during all calls; the strings are constants.
    unsafe {
        let made =
            Owned::create((*api.table()).ReleaseSessionOptions, |out| call!(api, CreateSessionOptions(out)))?;
        let raw = made.as_ptr();
        call!(api, SetSessionExecutionMode(raw, ExecutionMode::ORT_SEQUENTIAL))?;
        call!(api, SetSessionGraphOptimizationLevel(raw, GraphOptimizationLevel::ORT_ENABLE_ALL))?;
        call!(api, SetIntraOpNumThreads(raw, threads))?;
        call!(api, SetInterOpNumThreads(raw, 1))?;
        call!(api, SetSessionLogSeverityLevel(raw, LOG_FATAL_ONLY))?;
        call!(api, AddSessionConfigEntry(raw, c"session.intra_op.allow_spinning".as_ptr(), spin.as_ptr()))?;
        if free {
            // A memory pattern is kept for every input shape ever seen and never dropped (ORT issue 11118).
            call!(api, DisableMemPattern(raw))?;
        }
        Ok(made)
    }
}

fn run_error(fault: &Fault) -> Error {
    let code = if fault.code == INVALID_ARGUMENT { Code::InvalidArgument } else { Code::Internal };
    Error::new(code, format!("the model could not compute this request: {fault}"))
}
