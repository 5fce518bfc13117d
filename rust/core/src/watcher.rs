//! Notifies another event loop that something happened to a socket.
//!
//! A socket's own descriptor is level-triggered and belongs to the program that requested it. A [`Watcher`] has a
//! descriptor of its own, which is signalled only while a call waits, and is independent of all others.

use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;

use crate::error::Result;
use crate::signal::Level;
use crate::socket::Socket;
use crate::sys::sync::atomic::{AtomicBool, Ordering};

/// A descriptor that becomes readable when something happens to a socket, between [`watch`](Self::watch) and
/// [`rest`](Self::rest).
///
/// A readable descriptor means that the socket should be checked, not what has happened: [`clear`](Self::clear) it,
/// then check. Check also after `watch`, because earlier events are not reported.
pub struct Watcher {
    socket: Socket,
    level: Arc<Level>,
    fd: RawFd,
    watching: AtomicBool,
}

impl Watcher {
    /// Creates a watcher of `socket`, at rest. It keeps the socket from closing by itself.
    ///
    /// # Errors
    /// The system's error, if there is no descriptor left.
    pub fn new(socket: &Socket) -> Result<Watcher> {
        let level = Arc::new(Level::default());
        let fd = level.descriptor()?.as_raw_fd();
        Ok(Watcher {
            socket: socket.clone(),
            level,
            fd,
            watching: AtomicBool::new(false),
        })
    }

    /// The descriptor. Do not read, write or close it.
    pub fn fd(&self) -> RawFd {
        self.fd
    }

    /// From now on, everything that happens to the socket makes the descriptor readable.
    pub fn watch(&self) {
        if self.socket.is_own_process() && !self.watching.swap(true, Ordering::AcqRel) {
            self.socket.signal().watch(self.level.clone());
            self.socket.release_line();
        }
    }

    /// From now on, events do not affect the descriptor.
    pub fn rest(&self) {
        // In a forked child, threads that do not exist there may hold the socket's locks.
        if self.socket.is_own_process() && self.watching.swap(false, Ordering::AcqRel) {
            self.socket.signal().unwatch(&self.level);
        }
    }

    /// Makes the descriptor unreadable until something happens again.
    pub fn clear(&self) {
        // A forked child shares the descriptor with its parent.
        if self.socket.is_own_process() {
            self.level.lower();
        }
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.rest();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use zeroxide_proto::message::Message;
    use zeroxide_proto::socket_type::SocketType;

    use super::*;
    use crate::context::Context;
    use crate::socket::{SocketInternals, Wait};
    use crate::sys::poll::{self, Ready};

    fn is_readable(watcher: &Watcher) -> bool {
        let wanted = Ready {
            readable: true,
            ..Ready::default()
        };
        poll::wait(&[(watcher.fd(), wanted)], Some(Instant::now())).unwrap()[0].readable
    }

    #[test]
    fn is_silent_at_rest_and_speaks_while_it_watches() {
        let context = Context::new();
        let pull = context.socket(SocketType::Pull).unwrap();
        let push = context.socket(SocketType::Push).unwrap();
        pull.bind("inproc://watched").unwrap();
        push.connect("inproc://watched").unwrap();
        let watcher = Watcher::new(&pull).unwrap();
        let message = || Message::single(b"x"[..].into());

        assert!(pull.recv(Wait::Dont).is_err());
        push.send(message(), Wait::Dont).unwrap();
        assert!(!is_readable(&watcher));

        watcher.watch();
        pull.recv(Wait::Dont).unwrap();
        assert!(pull.recv(Wait::Dont).is_err());
        watcher.clear();
        assert!(!is_readable(&watcher));
        push.send(message(), Wait::Dont).unwrap();
        assert!(is_readable(&watcher));

        watcher.rest();
        watcher.clear();
        pull.recv(Wait::Dont).unwrap();
        assert!(pull.recv(Wait::Dont).is_err());
        push.send(message(), Wait::Dont).unwrap();
        assert!(!is_readable(&watcher));
        pull.close(None);
        push.close(None);
        context.term().unwrap();
    }

    #[test]
    fn messages_that_are_returned_come_first() {
        let context = Context::new();
        let pull = context.socket(SocketType::Pull).unwrap();
        let push = context.socket(SocketType::Push).unwrap();
        pull.bind("inproc://returned").unwrap();
        push.connect("inproc://returned").unwrap();
        for text in ["a", "b", "c"] {
            push.send(Message::single(text.into()), Wait::Dont).unwrap();
        }
        let first = pull.recv(Wait::Dont).unwrap();
        let second = pull.recv(Wait::Dont).unwrap();
        pull.give_back(2, vec![(second, None)]);
        pull.give_back(1, vec![(first, None)]);
        let batch = pull.recv_batch(10, Wait::Dont).unwrap();
        let texts: Vec<&[u8]> = batch
            .iter()
            .map(|message| message.head().as_slice())
            .collect();
        assert_eq!(texts, [b"a", b"b", b"c"]);
        pull.close(None);
        push.close(None);
        context.term().unwrap();
    }
}
