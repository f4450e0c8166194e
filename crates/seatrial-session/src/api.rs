//! The table of the runtime's functions, its statuses as results, and guards that give every object back.

use std::{
    ffi::CStr,
    fmt,
    ptr::{self, NonNull},
};

use ort_sys::{OrtApi, OrtStatus, OrtStatusPtr};

/// `ORT_INVALID_ARGUMENT`: the caller's inputs are to blame.
pub(crate) const INVALID_ARGUMENT: i32 = 2;

/// The runtime's function table. The library is never unloaded, so a copy stays good for the life of the process.
///
/// Fields are read one at a time through the raw pointer and never through a reference to the whole table: a reduced
/// build may leave entries null that we do not use.
#[derive(Clone, Copy)]
pub(crate) struct Api(NonNull<OrtApi>);

// SAFETY: the table is constant data of a library that is never unloaded; the runtime's C API may be called from any
// thread.
unsafe impl Send for Api {}
// SAFETY: as above.
unsafe impl Sync for Api {}

/// What the runtime said no with.
#[derive(Debug)]
pub(crate) struct Fault {
    pub(crate) code: i32,
    pub(crate) message: String,
}

/// Calls one function of the table and turns its status into a result. The caller stands for the arguments.
macro_rules! call {
    ($api:expr, $function:ident($($argument:expr),* $(,)?)) => {
        $api.check(((*$api.table()).$function)($($argument),*))
    };
}
pub(crate) use call;

impl Api {
    pub(crate) const fn new(table: NonNull<OrtApi>) -> Self {
        Self(table)
    }

    pub(crate) const fn table(self) -> *const OrtApi {
        self.0.as_ptr()
    }

    /// Turns a status into a result and frees it.
    pub(crate) fn check(self, status: OrtStatusPtr) -> Result<(), Fault> {
        match NonNull::new(status.0) {
            None => Ok(()),
            Some(status) => Err(self.take_fault(status)),
        }
    }

    fn take_fault(self, status: NonNull<OrtStatus>) -> Fault {
        // A newer runtime may know codes that the binding's enum does not, so the code is read as the plain integer
        // that it is in C.
        type GetErrorCode = unsafe extern "system" fn(*const OrtStatus) -> i32;
        // SAFETY: the table is valid; the enum is `repr(i32)`, so both function types have the same ABI; `status` is
        // a live status that came from the runtime and is released exactly once, after its text was copied.
        unsafe {
            let table = self.table();
            let get_code = std::mem::transmute::<
                unsafe extern "system" fn(*const OrtStatus) -> ort_sys::OrtErrorCode,
                GetErrorCode,
            >((*table).GetErrorCode);
            let code = get_code(status.as_ptr());
            let message = text(((*table).GetErrorMessage)(status.as_ptr()));
            ((*table).ReleaseStatus)(status.as_ptr());
            Fault { code, message }
        }
    }
}

/// Copies a C string; a null pointer gives an empty text.
///
/// # Safety
/// `text` is null or points to a string that ends with a zero byte and lives during the call.
pub(crate) unsafe fn text(text: *const std::ffi::c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: the caller's promise.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

impl Fault {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { code: 0, message: message.into() }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&crate::message::trim(&self.message))
    }
}

/// An object of the runtime that is released when this goes.
pub(crate) struct Owned<T> {
    object: NonNull<T>,
    release: unsafe extern "system" fn(*mut T),
}

impl<T> Owned<T> {
    /// Takes over an object. `None` when the runtime gave none.
    ///
    /// # Safety
    /// `object` is null or belongs to the caller alone, and `release` is the function that frees its kind.
    pub(crate) unsafe fn take(object: *mut T, release: unsafe extern "system" fn(*mut T)) -> Option<Self> {
        NonNull::new(object).map(|object| Self { object, release })
    }

    /// Runs a creating function of the API and takes over what it made.
    ///
    /// # Safety
    /// `create` is a call of the API that on success stores an object of the kind that `release` frees.
    pub(crate) unsafe fn create(
        release: unsafe extern "system" fn(*mut T),
        create: impl FnOnce(*mut *mut T) -> Result<(), Fault>,
    ) -> Result<Self, Fault> {
        let mut object = ptr::null_mut();
        create(&raw mut object)?;
        // SAFETY: the caller's promise; the object is fresh and nobody else knows it.
        unsafe { Self::take(object, release) }.ok_or_else(|| Fault::new("the runtime gave no object"))
    }

    pub(crate) const fn as_ptr(&self) -> *mut T {
        self.object.as_ptr()
    }
}

impl<T> Drop for Owned<T> {
    fn drop(&mut self) {
        // SAFETY: `take` was promised that the object is ours and that this function frees its kind; it is dropped
        // once.
        unsafe { (self.release)(self.object.as_ptr()) }
    }
}
