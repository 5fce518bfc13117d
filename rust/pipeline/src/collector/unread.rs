//! Limits the bytes that readers requested and have not taken, per reader and in total.
//!
//! A reply counts until its last frame has been sent or its connection has ended. Three quarters of the limit serve
//! readers in order of arrival. The rest serves readers with nothing unread, in small replies, so that a few readers
//! that do not read cannot exclude the others.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

/// The maximum number of bytes that one reader may leave unread, in addition to one reply.
const EACH: u64 = 64 << 20;

/// The maximum size of a reply when room is short.
const SMALL: u64 = 512;

/// See the module text.
#[derive(Debug)]
pub(super) struct Unread {
    most: u64,
    counts: Mutex<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    all: u64,
    /// Room for replies that are being read.
    reserved: u64,
    by_client: HashMap<Bytes, u64>,
}

/// A reply that has not been sent completely.
#[derive(Debug)]
struct Answer {
    unread: Arc<Unread>,
    client: Bytes,
    size: u64,
}

/// Room for a reply that is being read. Without it, several threads would give the same room away, and the replies to
/// readers that do not read would fill the part that is kept for the others.
#[derive(Debug)]
pub(super) struct Room {
    unread: Arc<Unread>,
    size: u64,
}

impl Room {
    /// The maximum size of the reply, unless one row is larger.
    pub fn size(&self) -> usize {
        usize::try_from(self.size).unwrap_or(usize::MAX)
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        self.unread.counts().reserved -= self.size;
    }
}

/// One frame of a reply.
struct Lent {
    bytes: Bytes,
    _answer: Arc<Answer>,
}

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        let mut counts = self.unread.counts();
        counts.all -= self.size;
        if let Some(own) = counts.by_client.get_mut(&self.client) {
            *own -= self.size;
            if *own == 0 {
                counts.by_client.remove(&self.client);
            }
        }
    }
}

impl Unread {
    pub fn new(most: u64) -> Arc<Unread> {
        Arc::new(Unread {
            most,
            counts: Mutex::default(),
        })
    }

    /// The number of unread bytes.
    pub fn bytes(&self) -> u64 {
        self.counts().all
    }

    /// Reserves room for a reply of at most `wanted` bytes to a client; None if it has to wait.
    pub fn reserve(self: &Arc<Unread>, client: &Bytes, wanted: usize) -> Option<Room> {
        let mut counts = self.counts();
        let common = self.most / 4 * 3;
        let own = counts.by_client.get(client).copied().unwrap_or_default();
        let room = match (own, counts.all + counts.reserved) {
            (own, all) if all < common && own < EACH => common - all,
            (0, all) if all < self.most => (self.most / SMALL).max(1),
            _ => return None,
        };
        let size = room.min(wanted as u64);
        counts.reserved += size;
        Some(Room {
            unread: self.clone(),
            size,
        })
    }

    /// Counts the frames of a reply until they are dropped.
    pub fn lend(self: &Arc<Unread>, client: &Bytes, frames: Vec<Bytes>) -> Vec<Bytes> {
        let size = frames.iter().map(|frame| frame.len() as u64).sum();
        let mut counts = self.counts();
        counts.all += size;
        *counts.by_client.entry(client.clone()).or_default() += size;
        drop(counts);
        let answer = Arc::new(Answer {
            unread: self.clone(),
            client: client.clone(),
            size,
        });
        let lent = frames.into_iter().map(|bytes| {
            Bytes::from_owner(Lent {
                bytes,
                _answer: answer.clone(),
            })
        });
        lent.collect()
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        // The sums are changed in one step each, so a panic leaves them consistent.
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_has_room_when_others_do_not_read() {
        let unread = Unread::new(4096);
        let (mute, reader) = (Bytes::from_static(b"m"), Bytes::from_static(b"r"));
        let room = |client| Some(unread.reserve(client, usize::MAX)?.size());
        assert_eq!(room(&mute), Some(3072));
        let answer = |client, size: usize| unread.lend(client, vec![Bytes::from(vec![0; size]); 2]);
        let first = answer(&mute, 1000);
        assert_eq!(room(&mute), Some(1072));
        let second = answer(&mute, 600);
        assert_eq!((unread.bytes(), room(&mute)), (3200, None));
        assert_eq!(room(&reader), Some(8), "in small pieces");
        drop(answer(&reader, 4));
        assert_eq!(room(&reader), Some(8));
        let kept = first[1].slice(..1);
        drop(first);
        assert_eq!(unread.bytes(), 3200, "a part of it is still there");
        drop(kept);
        assert_eq!(room(&mute), Some(3072 - 1200));
        drop(second);
        assert_eq!(unread.bytes(), 0);
        assert!(unread.counts().by_client.is_empty());
    }

    #[test]
    fn replies_that_are_being_read_take_room() {
        let unread = Unread::new(4096);
        let (mute, reader) = (Bytes::from_static(b"m"), Bytes::from_static(b"r"));
        let reserve = |client, wanted| unread.reserve(client, wanted);
        let first = reserve(&mute, 3000).unwrap();
        let second = reserve(&mute, 3000).unwrap();
        assert_eq!((first.size(), second.size()), (3000, 72));
        assert_eq!(reserve(&reader, 3000).unwrap().size(), 8, "in small pieces");
        drop(first);
        assert_eq!(reserve(&mute, 3000).unwrap().size(), 3000);
    }
}
