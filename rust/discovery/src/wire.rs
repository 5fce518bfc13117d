//! The bytes of ZRE: its messages, its beacons, and the gossip that replaces beacons.

mod beacon;
mod fields;
mod gossip;
mod zre;

pub(crate) use beacon::{BEACON_PORT, BEACON_SIZE, read_beacon, write_beacon};
pub(crate) use fields::SHORT_MAX;
pub(crate) use gossip::{Gossip, MAX_FRAME};
pub(crate) use zre::{Body, Hello, MAX_GROUPS, MAX_HEADERS, MAX_HELLO, Packet};

#[cfg(test)]
mod transcript;
