//! Telling another event loop that something happened to a socket.
//!
//! A socket's own descriptor is level-true and belongs to whoever asked for it. A [`Watcher`] has one of its own, which
//! is silent unless somebody waits, and stays out of the way of everybody else's.

use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::Result;
use crate::signal::Signal;
use crate::socket::Socket;

/// A descriptor that becomes readable when something happens to a socket, between [`watch`](Self::watch) and
/// [`rest`](Self::rest).
///
/// The descriptor says that it is worth looking, not what there is: [`clear`](Self::clear) it, then look. Also after
/// `watch`: what happened before is not told.
pub struct Watcher {
    socket: Socket,
    signal: Arc<Signal>,
    fd: RawFd,
    watching: AtomicBool,
}

impl Watcher {
    /// A watcher of `socket`, at rest. It keeps the socket from closing by itself.
    ///
    /// # Errors
    /// What the system says when there is no descriptor left.
    pub fn new(socket: &Socket) -> Result<Watcher> {
        let signal = Arc::new(Signal::new());
        let fd = signal.descriptor()?.as_raw_fd();
        Ok(Watcher {
            socket: socket.clone(),
            signal,
            fd,
            watching: AtomicBool::new(false),
        })
    }

    /// The descriptor. Do not read, write or close it.
    pub fn fd(&self) -> RawFd {
        self.fd
    }

    /// From now on everything that happens to the socket makes the descriptor readable.
    pub fn watch(&self) {
        if self.socket.is_own_process() && !self.watching.swap(true, Ordering::AcqRel) {
            self.socket.signal().watch(self.signal.clone());
            self.socket.release_line();
        }
    }

    /// From now on nothing does.
    pub fn rest(&self) {
        // In a forked child the socket's locks may be held by threads that are not there.
        if self.socket.is_own_process() && self.watching.swap(false, Ordering::AcqRel) {
            self.socket.signal().unwatch(&self.signal);
        }
    }

    /// Makes the descriptor unreadable until something happens again.
    pub fn clear(&self) {
        // The descriptor of a forked child is its parent's, too.
        if self.socket.is_own_process() {
            self.signal.lower();
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
    use crate::socket::Wait;
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
    fn what_is_given_back_comes_first() {
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
