//! [`Error`]: one kind per ZeroMQ error number, and a sentence about the particular case.

use std::borrow::Cow;
use std::fmt;
use std::io;

use crate::sys::errno;

/// The result of every operation of this crate that can fail.
pub type Result<T> = std::result::Result<T, Error>;

/// First of the numbers that ZeroMQ adds to those of the system.
const HAUSNUMERO: i32 = 156_384_712;
const EFSM: i32 = HAUSNUMERO + 51;
const ENOCOMPATPROTO: i32 = HAUSNUMERO + 52;
const ETERM: i32 = HAUSNUMERO + 53;
const EMTHREAD: i32 = HAUSNUMERO + 54;
/// Not one of libzmq's.
const ETOOSLOW: i32 = HAUSNUMERO + 200;

/// An error. It is displayed as the kind's general sentence, followed by the particulars of this case.
#[derive(Clone, PartialEq, Eq)]
pub struct Error {
    kind: ErrorKind,
    context: Option<Box<str>>,
}

/// The kind of an error, for matching. Each kind is one error number, see [`ErrorKind::errno`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum ErrorKind {
    /// `EAGAIN`: the call would block, or its time limit was reached.
    Again,
    /// `EINTR`: a signal handler ran while the call waited; call again.
    Interrupted,
    /// `ETERM`: the context was terminated or shut down.
    Terminated,
    /// `ENOTSOCK`: the socket was closed.
    NotSocket,
    /// `ENOTSUP`: this socket type does not support the operation.
    NotSupported,
    /// `EINVAL`: a malformed argument, or an option that does not exist here.
    Invalid,
    /// `EFSM`: not in this state, because REQ and REP take turns.
    Fsm,
    /// `EHOSTUNREACH`: no peer has the routing id that the message names.
    HostUnreachable,
    /// `EADDRINUSE`: another socket is bound to the address.
    AddressInUse,
    /// `EADDRNOTAVAIL`: no such local address.
    AddressNotAvailable,
    /// `ENODEV`: no such network interface or local host name.
    NoDevice,
    /// `ENAMETOOLONG`: the path is too long for a socket address.
    NameTooLong,
    /// `EPROTONOSUPPORT`: no transport of that name.
    NoProtocol,
    /// `ENOCOMPATPROTO`: the transport does not support this socket type.
    IncompatibleProtocol,
    /// `EMTHREAD`: the context has no I/O threads.
    NoThread,
    /// `EMFILE`: the context's or the process's limit of sockets is reached.
    TooManySockets,
    /// `ENOENT`: no such endpoint, or no such file or directory.
    NoEntry,
    /// `EACCES`: permission denied.
    Access,
    /// `EMSGSIZE`: the message is too large.
    MessageSize,
    /// `ENOMEM`: out of memory.
    NoMemory,
    /// `EFAULT`: the argument is not what it must be, for example a closed message.
    Fault,
    /// `ECONNREFUSED`: no program listens there.
    ConnectionRefused,
    /// `ETIMEDOUT`: no answer in time.
    TimedOut,
    /// `ETOOSLOW`: a subscriber has not kept up with its publishers (MAX_LAG, SLOW_SUBSCRIBER), so messages are missing.
    TooSlow,
    /// Used in a child process after a fork (numbered `ENOTSOCK`): sockets and contexts stay with the process that
    /// made them.
    Forked,
    /// Any other error number of the system.
    Os(i32),
}

impl Error {
    /// An error about which there is nothing particular to say.
    pub const fn new(kind: ErrorKind) -> Error {
        Error {
            kind,
            context: None,
        }
    }

    /// An error with what is particular about it: to which endpoint, and what to do.
    pub fn with(kind: ErrorKind, context: impl Into<String>) -> Error {
        let context: String = context.into();
        Error {
            kind,
            context: (!context.is_empty()).then(|| context.into_boxed_str()),
        }
    }

    /// The kind, for matching.
    pub const fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The particulars of this case.
    pub fn context(&self) -> Option<&str> {
        self.context.as_deref()
    }

    /// The error number, see [`ErrorKind::errno`].
    pub const fn errno(&self) -> i32 {
        self.kind.errno()
    }

    /// Whether the system ran out of descriptors or memory, so that a retry may succeed later but not at once.
    pub const fn is_exhausted(&self) -> bool {
        matches!(self.kind, ErrorKind::TooManySockets | ErrorKind::NoMemory)
    }

    /// The error of a connection that peers cause while only the last descriptors are left.
    pub(crate) fn descriptors_reserved() -> Error {
        let text = "the last descriptors of this process are kept for the program";
        Error::with(ErrorKind::TooManySockets, text)
    }

    /// The same kind with a more particular subject, usually an endpoint, in front of the earlier text. If the earlier
    /// text names the subject already, nothing is added.
    pub(crate) fn about(self, subject: impl fmt::Display) -> Error {
        let subject = printable(&subject.to_string());
        match self.context {
            Some(context) if context.contains(&subject) => Error::with(self.kind, context),
            Some(context) => Error::with(self.kind, format!("{subject}: {context}")),
            None => Error::with(self.kind, subject),
        }
    }
}

/// The text on one line: a line break at the end of an endpoint, as from a file, is visible as `\n`.
pub(crate) fn printable(text: &str) -> String {
    let mut printable = String::with_capacity(text.len());
    for char in text.chars() {
        match char.is_control() {
            true => printable.extend(char.escape_default()),
            false => printable.push(char),
        }
    }
    printable
}

impl ErrorKind {
    /// The error number: Linux's, or ZeroMQ's own above 156384712.
    pub const fn errno(self) -> i32 {
        match self {
            ErrorKind::Again => errno::AGAIN,
            ErrorKind::Interrupted => errno::INTERRUPTED,
            ErrorKind::Terminated => ETERM,
            ErrorKind::NotSocket | ErrorKind::Forked => errno::NOT_SOCKET,
            ErrorKind::NotSupported => errno::NOT_SUPPORTED,
            ErrorKind::Invalid => errno::INVALID,
            ErrorKind::Fsm => EFSM,
            ErrorKind::HostUnreachable => errno::HOST_UNREACHABLE,
            ErrorKind::AddressInUse => errno::ADDRESS_IN_USE,
            ErrorKind::AddressNotAvailable => errno::ADDRESS_NOT_AVAILABLE,
            ErrorKind::NoDevice => errno::NO_DEVICE,
            ErrorKind::NameTooLong => errno::NAME_TOO_LONG,
            ErrorKind::NoProtocol => errno::NO_PROTOCOL,
            ErrorKind::IncompatibleProtocol => ENOCOMPATPROTO,
            ErrorKind::NoThread => EMTHREAD,
            ErrorKind::TooSlow => ETOOSLOW,
            ErrorKind::TooManySockets => errno::TOO_MANY_FILES,
            ErrorKind::NoEntry => errno::NO_ENTRY,
            ErrorKind::Access => errno::ACCESS,
            ErrorKind::MessageSize => errno::MESSAGE_SIZE,
            ErrorKind::NoMemory => errno::NO_MEMORY,
            ErrorKind::Fault => errno::FAULT,
            ErrorKind::ConnectionRefused => errno::CONNECTION_REFUSED,
            ErrorKind::TimedOut => errno::TIMED_OUT,
            ErrorKind::Os(number) => number,
        }
    }

    /// The kind of an error number; the inverse of [`ErrorKind::errno`].
    pub const fn from_errno(number: i32) -> ErrorKind {
        match number {
            errno::AGAIN => ErrorKind::Again,
            errno::INTERRUPTED => ErrorKind::Interrupted,
            ETERM => ErrorKind::Terminated,
            errno::NOT_SOCKET => ErrorKind::NotSocket,
            errno::NOT_SUPPORTED => ErrorKind::NotSupported,
            errno::INVALID => ErrorKind::Invalid,
            EFSM => ErrorKind::Fsm,
            errno::HOST_UNREACHABLE => ErrorKind::HostUnreachable,
            errno::ADDRESS_IN_USE => ErrorKind::AddressInUse,
            errno::ADDRESS_NOT_AVAILABLE => ErrorKind::AddressNotAvailable,
            errno::NO_DEVICE => ErrorKind::NoDevice,
            errno::NAME_TOO_LONG => ErrorKind::NameTooLong,
            errno::NO_PROTOCOL => ErrorKind::NoProtocol,
            ENOCOMPATPROTO => ErrorKind::IncompatibleProtocol,
            EMTHREAD => ErrorKind::NoThread,
            ETOOSLOW => ErrorKind::TooSlow,
            errno::TOO_MANY_FILES => ErrorKind::TooManySockets,
            errno::NO_ENTRY => ErrorKind::NoEntry,
            errno::ACCESS => ErrorKind::Access,
            errno::MESSAGE_SIZE => ErrorKind::MessageSize,
            errno::NO_MEMORY => ErrorKind::NoMemory,
            errno::FAULT => ErrorKind::Fault,
            errno::CONNECTION_REFUSED => ErrorKind::ConnectionRefused,
            errno::TIMED_OUT => ErrorKind::TimedOut,
            number => ErrorKind::Os(number),
        }
    }

    /// The general sentence of this kind: the system's own, or ZeroMQ's for its own numbers.
    pub fn message(self) -> Cow<'static, str> {
        Cow::Borrowed(match self {
            ErrorKind::Terminated => "Context was terminated",
            ErrorKind::Fsm => "Operation cannot be accomplished in current state",
            ErrorKind::IncompatibleProtocol => {
                "The protocol is not compatible with the socket type"
            }
            ErrorKind::NoThread => "No thread available",
            ErrorKind::TooSlow => "The subscriber was too slow",
            ErrorKind::Forked => "Used after a fork in the child process",
            kind => return Cow::Owned(system_message(kind.errno())),
        })
    }
}

/// The system's sentence, without the number that the standard library appends.
fn system_message(errno: i32) -> String {
    let mut text = io::Error::from_raw_os_error(errno).to_string();
    if let Some(end) = text.rfind(" (os error ") {
        text.truncate(end);
    }
    text
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.kind.message())?;
        match &self.context {
            Some(context) => write!(f, ": {context}"),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} ({self})", self.kind)
    }
}

impl std::error::Error for Error {}

impl From<ErrorKind> for Error {
    fn from(kind: ErrorKind) -> Error {
        Error::new(kind)
    }
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Error {
        if let Some(errno) = error.raw_os_error() {
            return Error::new(ErrorKind::from_errno(errno));
        }
        let kind = match error.kind() {
            io::ErrorKind::NotFound => ErrorKind::NoEntry,
            io::ErrorKind::PermissionDenied => ErrorKind::Access,
            io::ErrorKind::ConnectionRefused => ErrorKind::ConnectionRefused,
            io::ErrorKind::AddrInUse => ErrorKind::AddressInUse,
            io::ErrorKind::AddrNotAvailable => ErrorKind::AddressNotAvailable,
            io::ErrorKind::WouldBlock => ErrorKind::Again,
            io::ErrorKind::TimedOut => ErrorKind::TimedOut,
            io::ErrorKind::Interrupted => ErrorKind::Interrupted,
            io::ErrorKind::OutOfMemory => ErrorKind::NoMemory,
            io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData => ErrorKind::Invalid,
            io::ErrorKind::Unsupported => ErrorKind::NotSupported,
            _ => ErrorKind::Os(errno::IO),
        };
        Error::with(kind, error.to_string())
    }
}

impl From<Error> for io::Error {
    fn from(error: Error) -> io::Error {
        match error.context {
            None if error.errno() < HAUSNUMERO => io::Error::from_raw_os_error(error.errno()),
            _ => io::Error::new(io::Error::from_raw_os_error(error.errno()).kind(), error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_go_both_ways() {
        for errno in (1..200).chain(HAUSNUMERO..HAUSNUMERO + 60) {
            assert_eq!(ErrorKind::from_errno(errno).errno(), errno);
        }
        assert_eq!(ErrorKind::Terminated.errno(), 156_384_765);
        assert_eq!(ErrorKind::Fsm.errno(), 156_384_763);
        assert_eq!(ErrorKind::from_errno(999), ErrorKind::Os(999));
    }

    #[test]
    fn the_text_has_the_kind_and_then_the_particulars() {
        let error = Error::with(ErrorKind::AddressInUse, "tcp://127.0.0.1:5555");
        // The C library's text.
        let what = Error::new(ErrorKind::AddressInUse).to_string();
        assert!(what.starts_with("Address "), "{what}");
        assert_eq!(error.to_string(), format!("{what}: tcp://127.0.0.1:5555"));
        assert_eq!(
            Error::new(ErrorKind::Terminated).to_string(),
            "Context was terminated"
        );
        assert_eq!(
            Error::with(ErrorKind::NoDevice, "no interface eth9")
                .about("tcp://eth9:1")
                .context(),
            Some("tcp://eth9:1: no interface eth9")
        );
        let error = Error::with(ErrorKind::AddressInUse, "tcp://*:1 is taken");
        assert_eq!(
            error.about("tcp://*:1").context(),
            Some("tcp://*:1 is taken")
        );
    }

    #[test]
    fn system_errors_keep_their_number_and_others_their_text() {
        let os = Error::from(io::Error::from_raw_os_error(errno::TOO_MANY_FILES));
        assert_eq!((os.kind(), os.context()), (ErrorKind::TooManySockets, None));
        assert!(os.is_exhausted());
        let text = Error::from(io::Error::new(io::ErrorKind::TimedOut, "no answer"));
        assert_eq!(text.kind(), ErrorKind::TimedOut);
        assert_eq!(text.context(), Some("no answer"));
        let back = io::Error::from(Error::with(ErrorKind::TimedOut, "no answer"));
        assert_eq!(back.kind(), io::ErrorKind::TimedOut);
    }

    #[test]
    fn is_small() {
        assert!(size_of::<Error>() <= 24);
    }
}
