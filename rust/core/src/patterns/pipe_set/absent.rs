//! Messages on disk for peers that are gone, and that have a name by which they are recognised when they return.

use std::collections::BTreeMap;

use crate::spill::Queue;

/// The maximum number of peers that are gone and have messages on disk. Each costs a folder with three files or more, and
/// up to a kilobyte of memory, but no descriptor.
#[cfg(not(test))]
const ABSENT_MAX: usize = 10_000;
/// Tests do not create tens of thousands of files.
#[cfg(test)]
const ABSENT_MAX: usize = 300;

/// A queue for a peer.
pub(super) struct Named {
    /// By what the peer is recognised when it returns; `None` if it is not.
    pub(super) name: Option<Vec<u8>>,
    pub(super) queue: Queue,
}

/// See the module text.
#[derive(Default)]
pub(super) struct Absent {
    /// The queues of each peer, the oldest first. A peer has several after it returned with messages.
    queues: BTreeMap<Vec<u8>, Vec<Queue>>,
}

impl Absent {
    /// Adds a queue of an earlier socket.
    pub(super) fn restore(&mut self, name: Vec<u8>, mut queue: Queue) {
        queue.rest();
        let queues = self.queues.entry(name).or_default();
        let at = queues.partition_point(|other| other.number() < queue.number());
        queues.insert(at, queue);
    }

    /// Adds a queue of a peer that has left. Returns it if it is not kept, or there are too many.
    pub(super) fn add(&mut self, named: Named) -> Option<Queue> {
        let Named { name, queue } = named;
        match name {
            Some(name) if queue.is_kept() && self.has_room(&name) => {
                self.restore(name, queue);
                None
            }
            _ => Some(queue),
        }
    }

    fn has_room(&self, name: &[u8]) -> bool {
        self.queues.len() < ABSENT_MAX || self.queues.contains_key(name)
    }

    /// Takes the queues of a peer.
    pub(super) fn take(&mut self, name: Vec<u8>) -> Vec<Named> {
        let queues = self.queues.remove(&name).unwrap_or_default();
        let named = |queue| Named {
            name: Some(name.clone()),
            queue,
        };
        queues.into_iter().map(named).collect()
    }

    pub(super) fn queues(&self) -> impl Iterator<Item = &Queue> {
        self.queues.values().flatten()
    }

    pub(super) fn into_queues(self) -> impl Iterator<Item = Queue> {
        self.queues.into_values().flatten()
    }
}
