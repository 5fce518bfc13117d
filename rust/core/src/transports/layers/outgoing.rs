//! [`Outgoing`]: what a layer has to send below.

/// A layer takes no bytes from above while this many wait to be sent.
pub(in crate::transports) const WAITING_MAX: usize = 64 * 1024;
/// A larger empty buffer is released, because a connection may be idle for long.
pub(in crate::transports) const SPARE_MAX: usize = 4096;

/// Bytes to send below, and how many of them were sent.
#[derive(Debug, Default)]
pub(in crate::transports) struct Outgoing {
    bytes: Vec<u8>,
    sent: usize,
}

impl Outgoing {
    pub(in crate::transports) fn new(bytes: Vec<u8>) -> Outgoing {
        Outgoing { bytes, sent: 0 }
    }

    /// The buffer, to add bytes to.
    pub(in crate::transports) fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// The bytes that wait.
    pub(in crate::transports) fn waiting(&self) -> &[u8] {
        &self.bytes[self.sent..]
    }

    /// Records that `count` of the bytes that wait were sent.
    pub(in crate::transports) fn transmitted(&mut self, count: usize) {
        self.sent += count;
        if self.sent >= self.bytes.len() {
            self.sent = 0;
            match self.bytes.capacity() > SPARE_MAX {
                true => self.bytes = Vec::new(),
                false => self.bytes.clear(),
            }
        }
    }
}
