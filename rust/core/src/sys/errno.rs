//! The system's error numbers, by their meaning.

pub(crate) const AGAIN: i32 = libc::EAGAIN;
pub(crate) const INTERRUPTED: i32 = libc::EINTR;
pub(crate) const NOT_SOCKET: i32 = libc::ENOTSOCK;
pub(crate) const NOT_SUPPORTED: i32 = libc::ENOTSUP;
pub(crate) const INVALID: i32 = libc::EINVAL;
pub(crate) const HOST_UNREACHABLE: i32 = libc::EHOSTUNREACH;
pub(crate) const NETWORK_UNREACHABLE: i32 = libc::ENETUNREACH;
pub(crate) const ADDRESS_IN_USE: i32 = libc::EADDRINUSE;
pub(crate) const ADDRESS_NOT_AVAILABLE: i32 = libc::EADDRNOTAVAIL;
pub(crate) const NO_DEVICE: i32 = libc::ENODEV;
pub(crate) const NAME_TOO_LONG: i32 = libc::ENAMETOOLONG;
pub(crate) const NO_PROTOCOL: i32 = libc::EPROTONOSUPPORT;
pub(crate) const TOO_MANY_FILES: i32 = libc::EMFILE;
pub(crate) const NO_ENTRY: i32 = libc::ENOENT;
pub(crate) const ACCESS: i32 = libc::EACCES;
pub(crate) const MESSAGE_SIZE: i32 = libc::EMSGSIZE;
pub(crate) const NO_MEMORY: i32 = libc::ENOMEM;
pub(crate) const FAULT: i32 = libc::EFAULT;
pub(crate) const CONNECTION_REFUSED: i32 = libc::ECONNREFUSED;
pub(crate) const CONNECTION_ABORTED: i32 = libc::ECONNABORTED;
pub(crate) const CONNECTION_RESET: i32 = libc::ECONNRESET;
pub(crate) const BROKEN_PIPE: i32 = libc::EPIPE;
pub(crate) const IN_PROGRESS: i32 = libc::EINPROGRESS;
pub(crate) const TIMED_OUT: i32 = libc::ETIMEDOUT;
/// The peer breaks a protocol.
pub(crate) const PROTOCOL: i32 = libc::EPROTO;
/// For an error without a number.
pub(crate) const IO: i32 = libc::EIO;
