//! Peers of a ROUTER whose name another peer has: they are connected, not read from, and next in line for the name.

use std::collections::{HashMap, VecDeque};

use bytes::Bytes;

use crate::pipe::PipeId;

/// The maximum number of waiting peers of a socket, because each costs as much as a peer that is served.
const WAITING_MAX: usize = 1000;

/// The peers that wait for each name, in the order of their arrival.
#[derive(Default)]
pub(super) struct Claims {
    waiting: HashMap<Bytes, VecDeque<PipeId>>,
    names: HashMap<PipeId, Bytes>,
}

impl Claims {
    /// Adds a peer to the line for `name`. Returns false if too many wait already.
    pub(super) fn add(&mut self, name: &Bytes, id: PipeId) -> bool {
        self.remove(id);
        if self.names.len() >= WAITING_MAX {
            return false;
        }
        self.waiting.entry(name.clone()).or_default().push_back(id);
        self.names.insert(id, name.clone());
        true
    }

    /// Whether this peer is waiting.
    pub(super) fn contains(&self, id: PipeId) -> bool {
        self.names.contains_key(&id)
    }

    /// Removes the peer. Returns whether it was waiting.
    pub(super) fn remove(&mut self, id: PipeId) -> bool {
        let Some(name) = self.names.remove(&id) else {
            return false;
        };
        if let Some(line) = self.waiting.get_mut(&name) {
            line.retain(|other| *other != id);
            if line.is_empty() {
                self.waiting.remove(&name);
            }
        }
        true
    }

    /// The peers that wait for `name`.
    pub(super) fn of(&self, name: &[u8]) -> Vec<PipeId> {
        let line = self.waiting.get(name);
        line.map_or_else(Vec::new, |line| line.iter().copied().collect())
    }

    /// Whether no peer is waiting.
    pub(super) fn is_empty(&self) -> bool {
        self.names.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_kept_in_order_and_within_bounds() {
        let mut claims = Claims::default();
        let (a, b) = (Bytes::from_static(b"a"), Bytes::from_static(b"b"));
        for n in 0..3 {
            assert!(claims.add(&a, PipeId(n)));
        }
        // A peer that changes lines goes to the end, and is only in one.
        assert!(claims.add(&b, PipeId(0)) && claims.add(&a, PipeId(1)));
        assert_eq!(claims.of(&a), [PipeId(2), PipeId(1)]);
        assert_eq!(claims.of(&b), [PipeId(0)]);
        assert!(claims.remove(PipeId(0)) && !claims.remove(PipeId(0)));
        assert!(claims.of(&b).is_empty() && !claims.waiting.contains_key(&b));
        let mut more = 10..;
        while claims.add(&b, PipeId(more.next().unwrap())) {}
        assert_eq!(claims.names.len(), WAITING_MAX);
        assert!(claims.remove(PipeId(1)) && claims.add(&a, PipeId(3)));
    }
}
