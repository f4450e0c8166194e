//! What the allocator keeps after a session has gone.

/// Gives pages back that hold nothing any more. The GNU allocator keeps what lies between blocks in use; others have
/// a decay of their own and are left alone.
pub fn give_memory_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: the function takes a number, may be called from any thread at any time, and touches free memory only.
    unsafe {
        libc::malloc_trim(0);
    }
}
