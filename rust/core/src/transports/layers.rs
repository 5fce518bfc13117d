//! Layers: protocols between a connection's descriptor and ZMTP, such as the conversation with a SOCKS proxy.
//!
//! A [`Layer`] is a value without I/O. It may end after its handshake, or transform every byte until the connection
//! ends, as encryption does. [`Layers`] moves bytes through a connection's layers. Because a layer may hold bytes that
//! the kernel does not have any more, readiness is never decided by the kernel alone: [`Layers::has_more`].

pub(super) mod outgoing;

use std::fmt;
use std::io::{self, ErrorKind, IoSlice};
use std::os::fd::BorrowedFd;

use crate::error::{Error, Result};
use crate::sys::stream;

/// The bytes that are read from the kernel at a time.
const READ_SIZE: usize = 16 * 1024;
/// The memory that a layer usually takes, which counts for MEMORY_BUDGET.
const LAYER: u64 = 16 << 10;
/// Reads in a row that may bring nothing for above, or not complete the handshake. A peer may send such bytes without
/// end.
const FRUITLESS_READS: usize = 8;
/// The room that is made for received bytes in a full buffer.
const SMALL_ROOM: usize = 4096;

/// The state of a layer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Phase {
    /// It shakes hands. Bytes from above have to wait.
    Opening,
    /// It carries bytes in both directions.
    Open,
    /// It has finished, and is removed. The bytes that it still holds are for above, and further ones pass unchanged.
    Over,
}

/// A protocol that carries the bytes of another one. "Above" is ZMTP or the next layer, "below" is the kernel or the
/// layer before.
pub(crate) trait Layer: fmt::Debug + Send {
    /// Its state.
    fn phase(&self) -> Phase;

    /// Takes bytes from below. Called only while it has no bytes for above, which bounds what it has to hold.
    ///
    /// # Errors
    /// If the peer does not follow the protocol, or refuses.
    fn handle_input(&mut self, bytes: &[u8]) -> Result<()>;

    /// The connection below has ended, or broke with an error.
    ///
    /// # Errors
    /// If that is too early for this protocol.
    fn handle_end(&mut self, error: Option<io::Error>) -> Result<()>;

    /// Whether it has bytes for above.
    fn has_input(&self) -> bool;

    /// Appends bytes for above to `buffer`, up to its capacity.
    ///
    /// # Errors
    /// As for `handle_input`, about bytes that it holds.
    fn poll_input(&mut self, buffer: &mut Vec<u8>) -> Result<()>;

    /// Whether its protocol has ended, so that nothing more comes for above than what it holds.
    fn has_ended(&self) -> bool {
        false
    }

    /// Takes bytes from above and returns how many; 0 if it has no room until others were transmitted.
    fn handle_output(&mut self, slices: &[IoSlice<'_>]) -> usize;

    /// The bytes to send below now.
    fn poll_transmit(&self) -> &[u8];

    /// Records that `count` of these bytes were sent.
    fn transmitted(&mut self, count: usize);

    /// The number of bytes to send, without those of the layer's own that follow the last byte from above.
    fn held(&self) -> usize {
        self.poll_transmit().len()
    }

    /// No more bytes come from above: the last chance to send the peer a farewell.
    fn finish(&mut self) {}

    /// Whether it talks to the peer, and not to a proxy on the way.
    fn is_at_peer(&self) -> bool {
        true
    }

    /// Whether only the peer can read what it sends.
    fn is_private(&self) -> bool {
        false
    }

    /// Whether a message may arrive in pieces from it; see `Mapping::Pieces`.
    fn sends_pieces(&self) -> bool {
        false
    }

    /// Whether it has pings of its own, which every peer answers.
    fn has_pings(&self) -> bool {
        false
    }

    /// Sends such a ping, unless the peer does not read.
    fn ping(&mut self) {}

    /// Whether a ping waits to be sent.
    fn owes_ping(&self) -> bool {
        false
    }

    /// Whether the peer has sent something for this layer only since the last call or the last bytes for above.
    fn take_sign_of_life(&mut self) -> bool {
        false
    }
}

/// The layers of one connection.
#[derive(Debug, Default)]
pub(crate) struct Layers {
    /// The one next to the kernel first.
    stack: Vec<Box<dyn Layer>>,
    /// Bytes for ZMTP of a layer that is over.
    left: Vec<u8>,
    scratch: Vec<u8>,
    /// The last [`recv`](Self::recv) has asked the kernel, and taken all that it had.
    drained: bool,
    /// The kernel or a layer has reported the end of the stream.
    ended: bool,
    /// Why a layer has ended the connection.
    failure: Option<Error>,
}

/// Why a connection with layers has failed.
enum Fault {
    /// The kernel has no more bytes now, or reports an error.
    Kernel(io::Error),
    Layer(Error),
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Fault {
        Fault::Kernel(error)
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Fault {
        Fault::Layer(error)
    }
}

impl Layers {
    /// Puts a layer on top of the others.
    pub(super) fn push(&mut self, layer: Box<dyn Layer>) {
        self.stack.push(layer);
    }

    /// The memory that they usually take.
    pub(super) fn size(&self) -> u64 {
        LAYER * self.stack.len() as u64
    }

    /// Whether nothing is left to do for them.
    pub(super) fn are_over(&self) -> bool {
        self.stack.is_empty() && self.left.is_empty()
    }

    /// Whether a layer shakes hands.
    pub(super) fn is_opening(&self) -> bool {
        let phases = self.stack.iter().map(|layer| layer.phase());
        phases.into_iter().any(|phase| phase == Phase::Opening)
    }

    /// Whether the first layer that shakes hands does so with the peer.
    pub(super) fn are_at_peer(&self) -> bool {
        let mut stack = self.stack.iter();
        let opening = stack.find(|layer| layer.phase() == Phase::Opening);
        opening.is_some_and(|layer| layer.is_at_peer())
    }

    /// Whether only the peer can read what is sent.
    pub(super) fn are_private(&self) -> bool {
        self.stack.iter().any(|layer| layer.is_private())
    }

    /// Whether a message may arrive in pieces.
    pub(super) fn send_pieces(&self) -> bool {
        self.stack.last().is_some_and(|layer| layer.sends_pieces())
    }

    /// Whether the layer next to ZMTP has pings of its own.
    pub(super) fn have_pings(&self) -> bool {
        self.stack.last().is_some_and(|layer| layer.has_pings())
    }

    /// See [`Layer::owes_ping`].
    pub(super) fn owe_ping(&self) -> bool {
        self.stack.last().is_some_and(|layer| layer.owes_ping())
    }

    /// See [`Layer::ping`].
    pub(super) fn ping(&mut self) {
        if let Some(top) = self.stack.last_mut() {
            top.ping();
        }
    }

    /// See [`Layer::take_sign_of_life`].
    pub(super) fn take_sign_of_life(&mut self) -> bool {
        let top = self.stack.last_mut();
        top.is_some_and(|layer| layer.take_sign_of_life())
    }

    /// Why a layer has ended the connection, if one has.
    pub(super) fn failure(&self) -> Option<&Error> {
        self.failure.as_ref()
    }

    /// Whether a read may return something, bytes or the end, of which the kernel will not notify.
    pub(super) fn has_more(&self) -> bool {
        self.is_unread() || self.ended || self.has_input() || self.end().is_some()
    }

    /// Whether the kernel may have bytes of which it will not notify, because the last call did not take all.
    pub(super) fn is_unread(&self) -> bool {
        !self.drained
    }

    /// Whether there are bytes that the kernel has not taken yet.
    pub(super) fn has_unsent(&self) -> bool {
        let mut held_back = false;
        self.stack.iter().any(|layer| {
            // A layer that shakes hands takes nothing from above.
            let waits = !held_back && !layer.poll_transmit().is_empty();
            held_back |= layer.phase() == Phase::Opening;
            waits
        })
    }

    /// The number of bytes from above that the kernel has not taken yet, as the layers wrap them.
    pub(super) fn held(&self) -> usize {
        self.stack.iter().map(|layer| layer.held()).sum()
    }

    /// Goes on with the handshakes as far as possible, or for some reads: [`is_unread`](Self::is_unread). Returns whether
    /// they are complete.
    ///
    /// # Errors
    /// The reason why they will never be complete.
    pub(super) fn advance(&mut self, fd: BorrowedFd<'_>) -> Result<bool> {
        match self.try_advance(fd) {
            Ok(done) => Ok(done),
            Err(Fault::Kernel(error)) if error.kind() == ErrorKind::WouldBlock => Ok(false),
            Err(Fault::Kernel(error)) => self.broken(Some(error)),
            Err(Fault::Layer(error)) => Err(self.failed(fd, error)),
        }
    }

    fn try_advance(&mut self, fd: BorrowedFd<'_>) -> std::result::Result<bool, Fault> {
        let mut reads = 0;
        loop {
            self.rise()?;
            self.flush(fd, false)?;
            if !self.is_opening() {
                return Ok(true);
            }
            if reads == FRUITLESS_READS {
                self.drained = false;
                return Ok(false);
            }
            reads += 1;
            match self.receive(fd)? {
                0 => return Ok(self.broken(None)?),
                _ => self.handle_received()?,
            }
        }
    }

    /// A layer has ended the connection. It may have a last word for the peer.
    fn failed(&mut self, fd: BorrowedFd<'_>, error: Error) -> Error {
        let _ = self.flush(fd, false);
        self.failure = Some(error.clone());
        error
    }

    /// The connection ended during a handshake.
    fn broken(&mut self, error: Option<io::Error>) -> Result<bool> {
        let opening = |layer: &&mut Box<dyn Layer>| layer.phase() == Phase::Opening;
        if let Some(layer) = self.stack.iter_mut().find(opening) {
            layer.handle_end(error)?;
        }
        Err(io::Error::from(ErrorKind::UnexpectedEof).into())
    }

    /// Appends bytes for ZMTP to the buffer, up to its capacity. 0 means the end of the stream. After some reads without
    /// such bytes, it would block although there [may be more](Self::has_more).
    pub(super) fn recv(&mut self, fd: BorrowedFd<'_>, buffer: &mut Vec<u8>) -> io::Result<usize> {
        match self.try_recv(fd, buffer) {
            Ok(count) => Ok(count),
            Err(Fault::Kernel(error)) => Err(error),
            Err(Fault::Layer(error)) => Err(self.failed(fd, error).into()),
        }
    }

    fn try_recv(
        &mut self,
        fd: BorrowedFd<'_>,
        buffer: &mut Vec<u8>,
    ) -> std::result::Result<usize, Fault> {
        if buffer.capacity() == buffer.len() {
            buffer
                .try_reserve(SMALL_ROOM)
                .map_err(|_| io::Error::from(ErrorKind::OutOfMemory))?;
        }
        let before = buffer.len();
        // More may have arrived since, and the caller no longer knows.
        self.drained = false;
        let mut reads = 0;
        loop {
            self.rise()?;
            self.take(buffer)?;
            if buffer.len() > before {
                return Ok(buffer.len() - before);
            }
            if self.has_input() {
                continue;
            }
            if self.ended {
                return Ok(0);
            }
            if let Some(above) = self.end() {
                self.ended = true;
                for layer in &mut self.stack[above..] {
                    layer.handle_end(None)?;
                }
                continue;
            }
            if reads == FRUITLESS_READS {
                self.drained = false;
                return Err(io::Error::from(ErrorKind::WouldBlock).into());
            }
            reads += 1;
            if self.receive(fd)? > 0 {
                self.handle_received()?;
                continue;
            }
            self.ended = true;
            for layer in &mut self.stack {
                layer.handle_end(None)?;
            }
        }
    }

    /// The place above the layer whose protocol has ended, if one has.
    fn end(&self) -> Option<usize> {
        let mut stack = self.stack.iter();
        stack.position(|layer| layer.has_ended()).map(|at| at + 1)
    }

    /// Sends bytes of ZMTP, as far as the layers and the kernel take them now. Without bytes, only sends what the layers
    /// hold.
    pub(super) fn send(
        &mut self,
        fd: BorrowedFd<'_>,
        slices: &[IoSlice<'_>],
        more: bool,
    ) -> io::Result<usize> {
        self.rise()?;
        if !self.flush(fd, more)? {
            return Err(ErrorKind::WouldBlock.into());
        }
        let Some(top) = self.stack.last_mut() else {
            return stream::send(fd, slices, more);
        };
        let taken = top.handle_output(slices);
        if taken == 0 && slices.iter().any(|slice| !slice.is_empty()) {
            return Err(ErrorKind::WouldBlock.into());
        }
        // The layers keep the bytes that the kernel does not take now.
        self.flush(fd, more)?;
        Ok(taken)
    }

    /// No more bytes of ZMTP follow.
    pub(super) fn finish(&mut self, fd: BorrowedFd<'_>) {
        for at in (0..self.stack.len()).rev() {
            self.stack[at].finish();
            // Nothing can be done about a kernel that is full or a connection that is gone.
            let _ = self.flush(fd, false);
        }
    }

    /// Reads from the kernel.
    fn receive(&mut self, fd: BorrowedFd<'_>) -> io::Result<usize> {
        self.scratch.clear();
        self.scratch
            .try_reserve_exact(READ_SIZE)
            .map_err(|_| ErrorKind::OutOfMemory)?;
        let count = match stream::recv(fd, &mut self.scratch) {
            Ok(count) => count,
            Err(error) => {
                self.drained |= error.kind() == ErrorKind::WouldBlock;
                // A silent peer costs no buffer.
                self.scratch = Vec::new();
                return Err(error);
            }
        };
        self.drained = count < self.scratch.capacity();
        Ok(count)
    }

    /// Hands what was read to the first layer.
    fn handle_received(&mut self) -> Result<()> {
        match self.stack.first_mut() {
            Some(first) => first.handle_input(&self.scratch),
            None => {
                self.left.extend_from_slice(&self.scratch);
                Ok(())
            }
        }
    }

    fn has_input(&self) -> bool {
        !self.left.is_empty() || self.stack.iter().any(|layer| layer.has_input())
    }

    /// Moves received bytes up through the layers, and removes those that are over.
    fn rise(&mut self) -> Result<()> {
        let mut at = 0;
        while at < self.stack.len() {
            let is_over =
                self.stack[at].phase() == Phase::Over && self.stack[at].poll_transmit().is_empty();
            if at + 1 < self.stack.len() || is_over {
                self.lift(at)?;
            }
            match is_over {
                true => drop(self.stack.remove(at)),
                false => at += 1,
            }
        }
        Ok(())
    }

    /// Hands what a layer has for above to the next one, as long as that takes it.
    fn lift(&mut self, at: usize) -> Result<()> {
        let (below, above) = self.stack.split_at_mut(at + 1);
        let layer = &mut below[at];
        while layer.has_input() {
            match above.first_mut() {
                None => {
                    self.left.reserve(READ_SIZE);
                    layer.poll_input(&mut self.left)?;
                }
                // Only a layer that stays can wait for the one above.
                Some(next) if next.has_input() && layer.phase() != Phase::Over => break,
                Some(next) => {
                    self.scratch.clear();
                    self.scratch.reserve(READ_SIZE);
                    layer.poll_input(&mut self.scratch)?;
                    next.handle_input(&self.scratch)?;
                }
            }
        }
        Ok(())
    }

    /// Takes bytes for ZMTP out of the top.
    fn take(&mut self, buffer: &mut Vec<u8>) -> Result<()> {
        if !self.left.is_empty() {
            let room = buffer.capacity() - buffer.len();
            let count = self.left.len().min(room);
            buffer.extend(self.left.drain(..count));
        } else if let Some(top) = self.stack.last_mut() {
            top.poll_input(buffer)?;
        }
        Ok(())
    }

    /// Sends what the layers hold. Returns false if the kernel is full before that.
    fn flush(&mut self, fd: BorrowedFd<'_>, more: bool) -> io::Result<bool> {
        loop {
            self.sink();
            let Some(first) = self.stack.first_mut() else {
                return Ok(true);
            };
            let bytes = first.poll_transmit();
            if bytes.is_empty() {
                return Ok(true);
            }
            match stream::send(fd, &[IoSlice::new(bytes)], more) {
                Ok(count) => first.transmitted(count),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            }
        }
    }

    /// Moves bytes to be sent down through the layers.
    fn sink(&mut self) {
        for at in (1..self.stack.len()).rev() {
            let (below, above) = self.stack.split_at_mut(at);
            let (below, layer) = (&mut below[at - 1], &mut above[0]);
            let bytes = layer.poll_transmit();
            if !bytes.is_empty() && below.phase() == Phase::Open {
                let taken = below.handle_output(&[IoSlice::new(bytes)]);
                layer.transmitted(taken);
            }
        }
    }
}

#[cfg(test)]
pub(crate) mod late;
#[cfg(test)]
mod tests;
