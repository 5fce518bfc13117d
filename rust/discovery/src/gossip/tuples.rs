//! The tuples of a node of the gossip network, in the order of their changes.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use crate::wire::Gossip;

/// Tuples that are known, at most, and the bytes of their keys and values.
pub(super) const TUPLES_MAX: usize = 10_000;
pub(super) const BYTES_MAX: usize = 8 * 1024 * 1024;

/// A tuple's value, when it changed, and its place among all changes.
struct Tuple {
    value: Vec<u8>,
    since: Instant,
    is_own: bool,
    serial: u64,
}

#[derive(Default)]
pub(super) struct Tuples {
    by_key: HashMap<Vec<u8>, Tuple>,
    /// The keys by the serial numbers of their tuples.
    by_serial: BTreeMap<u64, Vec<u8>>,
    serial: u64,
    bytes: usize,
}

impl Tuples {
    /// Stores a tuple under the next serial number.
    pub(super) fn store(&mut self, key: &[u8], value: &[u8], is_own: bool, now: Instant) {
        self.remove(key);
        self.serial += 1;
        self.bytes += key.len() + value.len();
        self.by_serial.insert(self.serial, key.to_vec());
        let (value, serial) = (value.to_vec(), self.serial);
        let tuple = Tuple {
            value,
            since: now,
            is_own,
            serial,
        };
        self.by_key.insert(key.to_vec(), tuple);
    }

    /// Forgets a tuple, unless it is this node's own.
    pub(super) fn forget(&mut self, key: &[u8]) {
        if self.by_key.get(key).is_some_and(|tuple| !tuple.is_own) {
            self.remove(key);
        }
    }

    /// Whether a tuple of another node changes what is known, and may do so now.
    pub(super) fn is_news(
        &self,
        key: &[u8],
        value: &[u8],
        now: Instant,
        settled: Duration,
    ) -> bool {
        let Some(known) = self.by_key.get(key) else {
            return true;
        };
        known.value != value && !known.is_own && now >= known.since + settled
    }

    /// Forgets the oldest tuples of other nodes until this one has room. Returns how many were forgotten, and `None` if
    /// there is no room even so.
    pub(super) fn make_room(&mut self, key: &[u8], value: &[u8]) -> Option<u64> {
        let mut evicted = 0;
        while self.by_key.len() >= TUPLES_MAX || self.bytes + key.len() + value.len() > BYTES_MAX {
            let is_own = |key: &Vec<u8>| self.by_key.get(key).is_some_and(|tuple| tuple.is_own);
            let oldest = self.by_serial.values().find(|key| !is_own(key))?.clone();
            self.remove(&oldest);
            evicted += 1;
        }
        Some(evicted)
    }

    /// A tuple of this node itself.
    pub(super) fn own(&self) -> Option<(Vec<u8>, Vec<u8>)> {
        let mut all = self.by_serial.values();
        let key = all.find(|key| self.by_key.get(*key).is_some_and(|tuple| tuple.is_own))?;
        Some((key.clone(), self.by_key.get(key)?.value.clone()))
    }

    /// The first tuple that changed after this serial number: its own number, and the message that publishes it.
    pub(super) fn after(&self, serial: u64) -> Option<(u64, Vec<u8>)> {
        let (_, key) = self.by_serial.range(serial + 1..).next()?;
        self.published(key)
    }

    /// The serial number of a tuple, and the message that publishes it.
    pub(super) fn published(&self, key: &[u8]) -> Option<(u64, Vec<u8>)> {
        let tuple = self.by_key.get(key)?;
        let (key, value) = (key.to_vec(), tuple.value.clone());
        Some((tuple.serial, Gossip::Publish { key, value }.write()))
    }

    fn remove(&mut self, key: &[u8]) {
        if let Some(tuple) = self.by_key.remove(key) {
            self.bytes -= key.len() + tuple.value.len();
            self.by_serial.remove(&tuple.serial);
        }
    }

    #[cfg(test)]
    pub(super) fn all(&self) -> BTreeMap<Vec<u8>, Vec<u8>> {
        let all = self.by_key.iter();
        all.map(|(key, tuple)| (key.clone(), tuple.value.clone()))
            .collect()
    }

    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}
