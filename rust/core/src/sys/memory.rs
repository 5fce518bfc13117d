//! What the allocator has been given back and keeps, given back to the system.

/// Costs milliseconds: for the end of something large. Where the allocator has no such call it is left to itself.
pub(crate) fn give_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: takes no memory from anybody who uses it, and may be called by any thread at any time.
    unsafe {
        libc::malloc_trim(0);
    }
}
