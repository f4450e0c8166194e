//! Opening the ONNX Runtime library of the installed wheel: version first, everything else after.

use std::{
    ffi::c_char,
    mem::ManuallyDrop,
    path::{Path, PathBuf},
    ptr::NonNull,
    sync::Arc,
};

use libloading::{Library, Symbol};
use ort_sys::{OrtAllocatorType, OrtApiBase, OrtEnv, OrtLoggingLevel, OrtMemType, OrtMemoryInfo};
use seatrial_types::Signature;

use crate::{
    SessionError, SessionOptions,
    api::{Api, Fault, Owned, call, text},
    session::Session,
};

/// The oldest supported runtime is 1.24; its function table is the one that this crate is written against.
pub const OLDEST_RUNTIME_MINOR: u32 = 24;
/// The newest supported runtime is 1.32; later ones were not tried.
pub const NEWEST_RUNTIME_MINOR: u32 = 32;

/// An opened ONNX Runtime with its environment. One for the process is enough.
pub struct Runtime {
    api: Api,
    version: String,
    path: PathBuf,
    env: Owned<OrtEnv>,
    cpu: Owned<OrtMemoryInfo>,
}

// SAFETY: the environment and the memory description are not changed after `open`, and the C API documents both as
// usable from any thread.
unsafe impl Send for Runtime {}
// SAFETY: as above.
unsafe impl Sync for Runtime {}

impl Runtime {
    /// Loads the library at `path`, checks its version and sets up an environment that logs errors only and reports
    /// nothing to anybody.
    pub fn open(path: &Path) -> Result<Arc<Self>, SessionError> {
        let base = load(path)?;
        // SAFETY: `base` is the constant table of a library that stays loaded; the function takes nothing and gives
        // a constant string.
        let version = unsafe { text(((*base.as_ptr()).GetVersionString)()) };
        if !supported(&version) {
            return Err(SessionError::Version { path: path.to_owned(), found: version });
        }
        // SAFETY: as above; the version check promises that this runtime has the table of this number.
        let table = unsafe { ((*base.as_ptr()).GetApi)(OLDEST_RUNTIME_MINOR) };
        let api = NonNull::new(table.cast_mut()).map(Api::new);
        let api =
            api.ok_or_else(|| SessionError::Version { path: path.to_owned(), found: version.clone() })?;
        let (env, cpu) = set_up(api).map_err(|fault| SessionError::Runtime(fault.to_string()))?;
        Ok(Arc::new(Self { api, version, path: path.to_owned(), env, cpu }))
    }

    /// The version that the library gives, such as `1.31.1`.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The file that was loaded.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Loads a model and checks it against its signature.
    pub fn session(
        self: &Arc<Self>,
        model_file: &Path,
        signature: &Signature,
        options: &SessionOptions,
    ) -> Result<Session, SessionError> {
        Session::open(Arc::clone(self), model_file, signature, options)
    }

    pub(crate) const fn api(&self) -> Api {
        self.api
    }

    pub(crate) const fn env(&self) -> *const OrtEnv {
        self.env.as_ptr()
    }

    pub(crate) const fn cpu(&self) -> *const OrtMemoryInfo {
        self.cpu.as_ptr()
    }
}

fn load(path: &Path) -> Result<NonNull<OrtApiBase>, SessionError> {
    if !path.is_file() {
        return Err(SessionError::LibraryMissing(path.to_owned()));
    }
    // SAFETY: loading runs the library's initialisers. The path comes from the operator's own configuration and is
    // trusted as much as the program itself.
    let library = unsafe { Library::new(path) }.map_err(|error| SessionError::NotALibrary {
        path: path.to_owned(),
        reason: loader_words(&error, path),
    })?;
    // The runtime keeps threads and thread-local objects whose code must not go away: it is never unloaded.
    let library = ManuallyDrop::new(library);
    // SAFETY: this is the documented type of the only entry point; it takes nothing and gives a constant table.
    let base = unsafe {
        let entry: Result<Symbol<unsafe extern "system" fn() -> *const OrtApiBase>, _> =
            library.get("OrtGetApiBase");
        entry.map_or(std::ptr::null(), |entry| entry())
    };
    NonNull::new(base.cast_mut()).ok_or_else(|| SessionError::NotARuntime(path.to_owned()))
}

/// The loader's message, which begins with the path that our own sentence names already.
fn loader_words(error: &libloading::Error, path: &Path) -> String {
    let source = std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string);
    source.trim_start_matches(&*path.to_string_lossy()).trim_start_matches(": ").to_owned()
}

/// Whether a version text is one of 1.24 to 1.32.
fn supported(version: &str) -> bool {
    let mut parts = version.split('.');
    let major = parts.next();
    let minor = parts.next().and_then(|minor| minor.parse::<u32>().ok());
    major == Some("1") && minor.is_some_and(|m| (OLDEST_RUNTIME_MINOR..=NEWEST_RUNTIME_MINOR).contains(&m))
}

fn set_up(api: Api) -> Result<(Owned<OrtEnv>, Owned<OrtMemoryInfo>), Fault> {
    let name: *const c_char = c"seatrial".as_ptr();
    let level = OrtLoggingLevel::ORT_LOGGING_LEVEL_ERROR;
    // SAFETY: the table is valid, the name is a constant, the out pointers are ours, and each release function fits
    // the object that its neighbour creates.
    unsafe {
        let env = Owned::create((*api.table()).ReleaseEnv, |out| call!(api, CreateEnv(level, name, out)))?;
        call!(api, DisableTelemetryEvents(env.as_ptr()))?;
        let (arena, default) = (OrtAllocatorType::OrtArenaAllocator, OrtMemType::OrtMemTypeDefault);
        let cpu = Owned::create((*api.table()).ReleaseMemoryInfo, |out| {
            call!(api, CreateCpuMemoryInfo(arena, default, out))
        })?;
        Ok((env, cpu))
    }
}

#[cfg(test)]
mod tests {
    use super::supported;

    #[test]
    fn versions_from_1_24_to_1_32_are_supported() {
        for version in ["1.24.0", "1.24.4", "1.31.1", "1.32.9", "1.30.0-rc1", "1.28"] {
            assert!(supported(version), "{version}");
        }
        for version in
            ["1.23.2", "1.33.0", "0.31.0", "2.31.0", "1.9", "1", "", "1.x.2", "x", "1.-3", "11.30.1"]
        {
            assert!(!supported(version), "{version}");
        }
    }
}
