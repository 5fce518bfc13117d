//! The routing ids of ROUTER and STREAM, and the numbers of SERVER and PEER.

use std::collections::HashMap;

use bytes::Bytes;
use zeroxide_proto::frame::Frame;

use crate::error::{Error, ErrorKind, Result};
use crate::patterns::pipe_set::slot_index;
use crate::pipe::PipeId;
use crate::sys::chance;

/// The maximum length of a routing id.
const LONGEST: usize = 255;

/// Maps routing ids to pipes, and vice versa.
///
/// A pipe keeps its id for messages received from it, even if the id no longer leads to it because the peer has left or
/// another peer has taken the id over.
pub(super) struct RouterTable {
    routes: HashMap<Bytes, PipeId>,
    names: Vec<Option<Name>>,
    first_automatic: u32,
    next_automatic: u32,
    /// The id that the application chose for the peer of its next connect.
    reserved: Option<Bytes>,
}

struct Name {
    pipe: PipeId,
    /// The id as a frame, to be put in front of received messages.
    frame: Frame,
    given: Given,
}

/// The origin of an id.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Given {
    /// Generated, because the peer announced none.
    Automatic,
    /// The peer announced it.
    Announced,
    /// The application chose it (CONNECT_ROUTING_ID).
    Chosen,
}

impl RouterTable {
    /// An empty table. Generated ids start at a random number, so that ids of an earlier run are invalid.
    pub(super) fn new() -> RouterTable {
        let first_automatic = chance::number() as u32;
        RouterTable {
            routes: HashMap::new(),
            names: Vec::new(),
            first_automatic,
            next_automatic: first_automatic,
            reserved: None,
        }
    }

    /// The pipe with this id.
    #[inline]
    pub(super) fn route(&self, id: &[u8]) -> Option<PipeId> {
        self.routes.get(id).copied()
    }

    /// The id of a pipe's peer, as the frame to put in front of its messages.
    #[inline]
    pub(super) fn name(&self, pipe: PipeId) -> Option<&Frame> {
        self.entry(pipe).map(|name| &name.frame)
    }

    /// The origin of the id of the pipe's peer, if it has one.
    pub(super) fn given(&self, pipe: PipeId) -> Option<Given> {
        self.entry(pipe).map(|name| name.given)
    }

    #[inline]
    fn entry(&self, pipe: PipeId) -> Option<&Name> {
        self.names
            .get(slot_index(pipe))?
            .as_ref()
            .filter(|name| name.pipe == pipe)
    }

    /// Gives the id `id`, which must be free, to the pipe's peer.
    pub(super) fn insert(&mut self, pipe: PipeId, id: Bytes, given: Given) {
        let index = slot_index(pipe);
        if index >= self.names.len() {
            self.names.resize_with(index + 1, || None);
        }
        self.names[index] = Some(Name {
            pipe,
            frame: Frame::from_bytes(id.clone()),
            given,
        });
        self.routes.insert(id, pipe);
    }

    /// Gives the next generated id to the pipe's peer: a zero byte and a number.
    pub(super) fn insert_automatic(&mut self, pipe: PipeId) {
        self.insert_generated(pipe, 0);
    }

    /// Gives the next number, which is never 0, to the pipe's peer.
    pub(super) fn insert_number(&mut self, pipe: PipeId) {
        self.insert_generated(pipe, 1);
    }

    fn insert_generated(&mut self, pipe: PipeId, lowest: u32) {
        let id = loop {
            let number = self.next_automatic.max(lowest);
            self.next_automatic = number.wrapping_add(1);
            let id = generated(number);
            // A peer may have announced it, and after 2^32 connections, the first one may still exist.
            if !self.routes.contains_key(&id[..]) {
                break id;
            }
        };
        self.insert(pipe, Bytes::copy_from_slice(&id), Given::Automatic);
    }

    /// The pipe of the peer with this number.
    #[inline]
    pub(super) fn numbered(&self, number: u32) -> Option<PipeId> {
        self.route(&generated(number))
    }

    /// The number of a pipe's peer.
    #[inline]
    pub(super) fn number(&self, pipe: PipeId) -> Option<u32> {
        let (zero, number) = self.name(pipe)?.split_first()?;
        debug_assert_eq!(*zero, 0, "a generated id");
        Some(u32::from_be_bytes(number.try_into().ok()?))
    }

    /// Frees the pipe's id; messages received from it still have the id. Returns the id if it led to this pipe.
    pub(super) fn unroute(&mut self, pipe: PipeId) -> Option<Bytes> {
        let id = self.entry(pipe)?.frame.clone();
        if self.routes.get(id.as_slice()) != Some(&pipe) {
            return None;
        }
        self.routes.remove(id.as_slice());
        Some(id.into_bytes())
    }

    /// Whether the id of the pipe's peer leads to this pipe.
    pub(super) fn is_routed(&self, pipe: PipeId) -> bool {
        self.name(pipe)
            .is_some_and(|id| self.route(id) == Some(pipe))
    }

    /// Removes the pipe.
    pub(super) fn remove(&mut self, pipe: PipeId) {
        if self.entry(pipe).is_some() {
            self.unroute(pipe);
            self.names[slot_index(pipe)] = None;
        }
    }

    /// Reserves an id for the peer of the next connect.
    ///
    /// # Errors
    /// `Invalid` for an invalid routing id, `AddressInUse` if a peer has it.
    pub(super) fn reserve(&mut self, id: &Bytes) -> Result<()> {
        if id.is_empty() || id.len() > LONGEST {
            let text = format!("a routing id has 1 to {LONGEST} bytes, not {}", id.len());
            return Err(Error::with(ErrorKind::Invalid, text));
        }
        if self.has_generated(id) {
            let text = format!("\"{}\" was generated for another peer", id.escape_ascii());
            return Err(Error::with(ErrorKind::Invalid, text));
        }
        if self.routes.contains_key(id) {
            let text = format!("a peer is already called \"{}\"", id.escape_ascii());
            return Err(Error::with(ErrorKind::AddressInUse, text));
        }
        self.reserved = Some(id.clone());
        Ok(())
    }

    /// Whether a peer may announce this id. Those that were generated here belong to other peers, even if these have left.
    pub(super) fn is_allowed(&self, id: &[u8]) -> bool {
        !id.is_empty() && id.len() <= LONGEST && !self.has_generated(id)
    }

    fn has_generated(&self, id: &[u8]) -> bool {
        let number = match id {
            &[0, a, b, c, d] => u32::from_be_bytes([a, b, c, d]),
            _ => return false,
        };
        let so_far = self.next_automatic.wrapping_sub(self.first_automatic);
        number.wrapping_sub(self.first_automatic) < so_far
    }

    /// The reserved id, once.
    pub(super) fn take_reserved(&mut self) -> Option<Bytes> {
        self.reserved.take()
    }

    /// Whether `id` is reserved for another peer.
    pub(super) fn is_reserved(&self, id: &[u8]) -> bool {
        self.reserved.as_deref() == Some(id)
    }
}

/// The generated id with this number.
fn generated(number: u32) -> [u8; 5] {
    let [a, b, c, d] = number.to_be_bytes();
    [0, a, b, c, d]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pipe(n: u64) -> PipeId {
        PipeId(1 << 32 | n)
    }

    #[test]
    fn automatic_ids_count_up_from_somewhere() {
        let mut table = RouterTable::new();
        table.next_automatic = u32::MAX;
        table.insert_automatic(pipe(0));
        table.insert_automatic(pipe(1));
        assert_eq!(&table.name(pipe(0)).unwrap()[..], b"\0\xff\xff\xff\xff");
        assert_eq!(&table.name(pipe(1)).unwrap()[..], b"\0\0\0\0\0");
        // After an overflow, numbers in use are skipped.
        table.next_automatic = u32::MAX;
        table.insert_automatic(pipe(2));
        assert_eq!(&table.name(pipe(2)).unwrap()[..], b"\0\0\0\0\x01");
        assert_ne!(
            RouterTable::new().next_automatic,
            RouterTable::new().next_automatic
        );
    }

    #[test]
    fn generated_ids_belong_to_the_peers_that_got_them() {
        let mut table = RouterTable::new();
        (table.first_automatic, table.next_automatic) = (u32::MAX, u32::MAX);
        let [first, second, third] = [&b"\0\xff\xff\xff\xff"[..], &[0; 5], b"\0\0\0\0\x01"];
        assert!(table.is_allowed(first));
        // A peer announces the id that would be generated as the second one.
        table.insert(pipe(0), Bytes::copy_from_slice(second), Given::Announced);
        table.insert_automatic(pipe(1));
        table.insert_automatic(pipe(2));
        assert_eq!(&table.name(pipe(1)).unwrap()[..], first);
        assert_eq!(&table.name(pipe(2)).unwrap()[..], third);
        table.remove(pipe(1));
        for generated in [first, third] {
            assert!(!table.is_allowed(generated));
            let reserved = table.reserve(&Bytes::copy_from_slice(generated));
            assert_eq!(reserved.unwrap_err().kind(), ErrorKind::Invalid);
        }
        for other in [&b"\0"[..], b"\0\0", b"\0\0\0\0\x02", &[0; 6]] {
            assert!(table.is_allowed(other));
        }
    }

    #[test]
    fn numbers_increase_and_skip_zero() {
        let mut table = RouterTable::new();
        table.next_automatic = u32::MAX;
        for n in 0..3 {
            table.insert_number(pipe(n));
        }
        let numbers = [0, 1, 2].map(|n| table.number(pipe(n)));
        assert_eq!(numbers, [Some(u32::MAX), Some(1), Some(2)]);
        assert_eq!(table.numbered(1), Some(pipe(1)));
        assert_eq!(table.numbered(0), None);
        table.unroute(pipe(1));
        assert_eq!((table.numbered(1), table.number(pipe(1))), (None, Some(1)));
    }

    #[test]
    fn an_unrouted_pipe_keeps_its_name_and_does_not_disturb_its_successor() {
        let mut table = RouterTable::new();
        let id = Bytes::from_static(b"x");
        table.insert(pipe(0), id.clone(), Given::Announced);
        table.unroute(pipe(0));
        assert_eq!(table.route(b"x"), None);
        assert_eq!(&table.name(pipe(0)).unwrap()[..], b"x");
        table.insert(pipe(1), id, Given::Announced);
        table.remove(pipe(0));
        assert_eq!(table.route(b"x"), Some(pipe(1)));
        assert!(table.name(pipe(0)).is_none());
    }

    #[test]
    fn reserved_ids_are_checked() {
        let mut table = RouterTable::new();
        table.insert(pipe(0), Bytes::from_static(b"x"), Given::Announced);
        let mut reserve = |id: &[u8]| {
            let result = table.reserve(&Bytes::copy_from_slice(id));
            result.map_err(|error| error.kind())
        };
        assert_eq!(reserve(b""), Err(ErrorKind::Invalid));
        assert_eq!(reserve(&[1; 256]), Err(ErrorKind::Invalid));
        assert_eq!(reserve(b"x"), Err(ErrorKind::AddressInUse));
        assert_eq!(reserve(b"\0x"), Ok(()));
        assert_eq!(reserve(&[1; 255]), Ok(()));
        assert!(table.is_reserved(&[1; 255]));
        assert!(table.take_reserved().is_some());
        assert!(table.take_reserved().is_none());
    }
}
