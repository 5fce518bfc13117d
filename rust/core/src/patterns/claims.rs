//! Peers of a ROUTER that are called like somebody else: connected, not read from, and next in line for the name.

use std::collections::{HashMap, VecDeque};

use bytes::Bytes;

use crate::pipe::PipeId;

/// How many may wait at a socket. They cost what other peers do; but those are there to be served.
const WAITING_MAX: usize = 1000;

/// Who waits for which name, the longest waiting first.
#[derive(Default)]
pub(super) struct Claims {
    waiting: HashMap<Bytes, VecDeque<PipeId>>,
    names: HashMap<PipeId, Bytes>,
}

impl Claims {
    /// Puts a peer at the end of the line for `name`. False if too many wait already.
    pub(super) fn add(&mut self, name: &Bytes, id: PipeId) -> bool {
        self.remove(id);
        if self.names.len() >= WAITING_MAX {
            return false;
        }
        self.waiting.entry(name.clone()).or_default().push_back(id);
        self.names.insert(id, name.clone());
        true
    }

    /// Whether this peer waits.
    pub(super) fn contains(&self, id: PipeId) -> bool {
        self.names.contains_key(&id)
    }

    /// The peer waits no more. True if it did.
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

    /// Those that wait for `name`.
    pub(super) fn of(&self, name: &[u8]) -> Vec<PipeId> {
        let line = self.waiting.get(name);
        line.map_or_else(Vec::new, |line| line.iter().copied().collect())
    }

    /// Whether nobody waits for anything.
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
        // Whoever changes the line stands at the end, and in one only.
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
