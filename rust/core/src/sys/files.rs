//! Files of this process.

/// A flag for opening a file: fail if its name is a symbolic link.
pub(crate) const NO_FOLLOW: i32 = libc::O_NOFOLLOW;
