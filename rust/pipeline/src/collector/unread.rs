//! What readers asked for and have not taken: bounded for each of them, and for all together.
//!
//! An answer counts until its last frame has left, or the connection is gone. Three quarters are for whoever comes first. The
//! rest is for those that left nothing unread, in small answers, so that a few who do not read do not keep out those who do.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

/// What one reader may leave unread, beside one answer.
const EACH: u64 = 64 << 20;

/// Where room is short, an answer has so much of it.
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
    by_client: HashMap<Bytes, u64>,
}

/// An answer that has not left yet.
#[derive(Debug)]
struct Answer {
    unread: Arc<Unread>,
    client: Bytes,
    size: u64,
}

/// A frame of one.
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

    /// How much there is of it.
    pub fn bytes(&self) -> u64 {
        self.counts().all
    }

    /// How large an answer to a client may be now, unless one row is larger; none = it has to wait.
    pub fn room(&self, client: &Bytes) -> Option<usize> {
        let counts = self.counts();
        let common = self.most / 4 * 3;
        let own = counts.by_client.get(client).copied().unwrap_or_default();
        let room = match (own, counts.all) {
            (own, all) if all < common && own < EACH => common - all,
            (0, all) if all < self.most => (self.most / SMALL).max(1),
            _ => return None,
        };
        Some(usize::try_from(room).unwrap_or(usize::MAX))
    }

    /// Counts the frames of an answer until they are gone.
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
        // Sums that are changed in one step each.
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_reads_has_room_when_others_do_not_read() {
        let unread = Unread::new(4096);
        let (mute, reader) = (Bytes::from_static(b"m"), Bytes::from_static(b"r"));
        assert_eq!(unread.room(&mute), Some(3072));
        let answer = |client, size: usize| unread.lend(client, vec![Bytes::from(vec![0; size]); 2]);
        let first = answer(&mute, 1000);
        assert_eq!(unread.room(&mute), Some(1072));
        let second = answer(&mute, 600);
        assert_eq!((unread.bytes(), unread.room(&mute)), (3200, None));
        assert_eq!(unread.room(&reader), Some(8), "in small pieces");
        drop(answer(&reader, 4));
        assert_eq!(unread.room(&reader), Some(8));
        let kept = first[1].slice(..1);
        drop(first);
        assert_eq!(unread.bytes(), 3200, "a part of it is still there");
        drop(kept);
        assert_eq!(unread.room(&mute), Some(3072 - 1200));
        drop(second);
        assert_eq!(unread.bytes(), 0);
        assert!(unread.counts().by_client.is_empty());
    }
}
