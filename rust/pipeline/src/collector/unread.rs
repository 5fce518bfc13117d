//! Limits the replies that clients have not taken, per client and in total.
//!
//! A reply counts until its last frame has been sent or its connection has ended. Three quarters of the limit serve
//! clients in order of arrival. The rest serves readers with nothing unread, in small replies, so that a few readers
//! that do not read cannot exclude the others. Replies without rows have a quarter whatever rows take, and another quarter
//! beyond the limit serves clients with little unread.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use zeroxide::{Frame, Message};

/// The maximum number of bytes that one reader may leave unread, in addition to one reply.
const EACH: u64 = 64 << 20;

/// The maximum size of a reply with rows when room is short.
const SMALL: u64 = 512;

/// The maximum size of other replies that one client may leave unread when room is short.
const LITTLE: u64 = 64 << 10;

/// The bytes that a reply without rows counts in addition to its own: its place in the queue, and the allocations around it.
const REPLY: usize = 512;

/// See the module text.
#[derive(Debug)]
pub(super) struct Unread {
    most: u64,
    counts: Mutex<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    rows: u64,
    others: u64,
    /// Other replies beyond the limit.
    little: u64,
    /// Room for replies that are being read.
    reserved: u64,
    by_client: HashMap<Bytes, Own>,
}

/// The replies that one client has not taken.
#[derive(Debug, Default)]
struct Own {
    rows: u64,
    others: u64,
    little: u64,
}

/// The kind of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Rows,
    Other,
    Little,
}

/// A reply that has not been sent completely.
#[derive(Debug)]
struct Answer {
    unread: Arc<Unread>,
    client: Bytes,
    kind: Kind,
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
        *counts.of(self.kind) -= self.size;
        if let Some(own) = counts.by_client.get_mut(&self.client) {
            *own.of(self.kind) -= self.size;
            if own.rows + own.others + own.little == 0 {
                counts.by_client.remove(&self.client);
            }
        }
    }
}

impl Counts {
    fn of(&mut self, kind: Kind) -> &mut u64 {
        match kind {
            Kind::Rows => &mut self.rows,
            Kind::Other => &mut self.others,
            Kind::Little => &mut self.little,
        }
    }

    fn all(&self) -> u64 {
        self.rows + self.others + self.reserved
    }

    fn add(&mut self, client: &Bytes, kind: Kind, size: u64) {
        *self.of(kind) += size;
        *self.by_client.entry(client.clone()).or_default().of(kind) += size;
    }
}

impl Own {
    fn of(&mut self, kind: Kind) -> &mut u64 {
        match kind {
            Kind::Rows => &mut self.rows,
            Kind::Other => &mut self.others,
            Kind::Little => &mut self.little,
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

    /// The number of unread bytes with rows.
    pub fn bytes(&self) -> u64 {
        self.counts().rows
    }

    /// The number of bytes that other unread replies count.
    pub fn other_bytes(&self) -> u64 {
        let counts = self.counts();
        counts.others + counts.little
    }

    /// Reserves room for a reply of at most `wanted` bytes to a client; None if it has to wait.
    pub fn reserve(self: &Arc<Unread>, client: &Bytes, wanted: usize) -> Option<Room> {
        let mut counts = self.counts();
        let common = self.most / 4 * 3;
        let own = counts.by_client.get(client).map_or(0, |own| own.rows);
        let room = match (own, counts.all()) {
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
        self.counts().add(client, Kind::Rows, size);
        self.answer(client, Kind::Rows, size, frames).collect()
    }

    /// Counts another reply until it is dropped; None if there is no room for it.
    pub fn count(self: &Arc<Unread>, client: &Bytes, message: Message) -> Option<Message> {
        let bytes: usize = message.iter().map(Frame::len).sum();
        let size = (REPLY + bytes) as u64;
        let mut counts = self.counts();
        let own = counts.by_client.get(client);
        let (own, little) = own.map_or((0, 0), |own| (own.others, own.little));
        // Rows leave them a quarter.
        let fits = counts.all() + size <= self.most / 4 * 3;
        let has_room = fits || counts.others + size <= self.most / 4;
        let kind = if has_room && own < EACH {
            Kind::Other
        } else if little + size <= LITTLE && counts.little + size <= self.most / 4 {
            Kind::Little
        } else {
            return None;
        };
        counts.add(client, kind, size);
        drop(counts);
        let frames = message.into_iter().map(Frame::into_bytes);
        let lent = self.answer(client, kind, size, frames);
        Some(Message::from_frames(lent.map(Frame::shared)))
    }

    /// The frames of a reply that was counted.
    fn answer(
        self: &Arc<Unread>,
        client: &Bytes,
        kind: Kind,
        size: u64,
        frames: impl IntoIterator<Item = Bytes>,
    ) -> impl Iterator<Item = Bytes> {
        let answer = Arc::new(Answer {
            unread: self.clone(),
            client: client.clone(),
            kind,
            size,
        });
        frames.into_iter().map(move |bytes| {
            Bytes::from_owner(Lent {
                bytes,
                _answer: answer.clone(),
            })
        })
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
    fn other_replies_have_a_limit_over_all_clients() {
        let unread = Unread::new(1 << 20);
        let client = |number: u32| Bytes::copy_from_slice(&number.to_le_bytes());
        let reply = |size| Message::from(vec![0; size]);
        // Small replies are stored in their frames, and count nevertheless.
        let kept: Vec<Message> = (0..1_000_000)
            .map_while(|number| unread.count(&client(number % 100), reply(40)))
            .collect();
        let one = (REPLY + 40) as u64;
        assert_eq!(unread.other_bytes(), kept.len() as u64 * one);
        assert!(unread.other_bytes() <= 1 << 20);
        assert!(unread.other_bytes() + one > (1 << 20) / 4 * 3);
        assert_eq!(unread.bytes(), 0);
        let before = unread.other_bytes();
        drop(kept);
        assert_eq!(unread.other_bytes(), 0, "{before}");
        assert!(unread.counts().by_client.is_empty());

        let mute: Vec<Message> = (0..1_000_000)
            .map_while(|_| unread.count(&client(0), reply(1000)))
            .collect();
        assert!(unread.count(&client(0), reply(40)).is_none());
        let answer = unread.count(&client(1), reply(1000));
        assert!(answer.is_some(), "a client that reads has room");
        assert!(unread.count(&client(1), reply(1 << 17)).is_none());
        let rows = unread.reserve(&client(1), 1 << 20).unwrap().size();
        assert!((1..=2048).contains(&rows), "in small pieces: {rows}");
        // Rows that fill the limit leave room for other replies.
        let rows = unread.lend(&client(2), vec![Bytes::from(vec![0; 1 << 20])]);
        let other = unread.count(&client(3), reply(1000));
        assert!(other.is_some() && unread.reserve(&client(3), 1).is_none());
        drop((mute, answer, rows, other));
        assert!(unread.count(&client(1), reply(1 << 17)).is_some());
    }

    #[test]
    fn rows_that_are_not_read_take_no_room_of_other_replies() {
        let unread = Unread::new(64 << 20);
        let (mute, producer) = (Bytes::from_static(b"m"), Bytes::from_static(b"p"));
        let _rows = unread.lend(&mute, vec![Bytes::from(vec![0; 60 << 20])]);
        let _being_read = unread.reserve(&producer, 1 << 20);
        let acks: Vec<Message> = (0..20_000)
            .map_while(|_| unread.count(&producer, Message::from(vec![0; 40])))
            .collect();
        assert_eq!(acks.len(), 20_000, "of one burst");
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
