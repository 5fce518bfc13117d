//! Reports of the messages that a shutdown could not deliver, and of their peers.

use std::collections::BTreeMap;
use std::fmt;

use bytes::Bytes;
use zeroxide_proto::engine::PeerInfo;

/// Maximum number of peers in a report. What further peers did not get is counted together.
const PEERS_MAX: usize = 1000;

/// The messages that a socket or a context had accepted and could not deliver before it was closed. Messages that the
/// kernel has taken count as delivered, unless their connection broke or, over TCP, the peer's kernel has not taken them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Undelivered {
    /// The peers that did not get everything, in the order of their endpoints.
    pub peers: Vec<UndeliveredPeer>,
}

/// The messages that one peer did not get.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UndeliveredPeer {
    /// The endpoint that the socket bound or connected to. It is empty for what is left of a thousand other peers.
    pub endpoint: String,
    /// The peer's address, if it was connected and the transport knows it.
    pub address: String,
    /// The routing id that the peer announced.
    pub routing_id: Bytes,
    /// The number of messages.
    pub messages: u64,
    /// The size of these messages in bytes. Messages that were already encoded count as they would have been transmitted.
    pub bytes: u64,
}

impl Undelivered {
    /// The number of messages, for all peers.
    pub fn messages(&self) -> u64 {
        self.peers.iter().map(|peer| peer.messages).sum()
    }

    /// The size of these messages in bytes.
    pub fn bytes(&self) -> u64 {
        self.peers.iter().map(|peer| peer.bytes).sum()
    }

    /// Whether everything was delivered.
    pub fn is_empty(&self) -> bool {
        self.peers.is_empty()
    }
}

impl UndeliveredPeer {
    /// The messages that a peer at an endpoint did not get.
    pub(crate) fn new(endpoint: &str, peer: Option<&PeerInfo>, messages: u64, bytes: u64) -> Self {
        UndeliveredPeer {
            endpoint: endpoint.to_owned(),
            address: peer.map(address_of).unwrap_or_default(),
            routing_id: peer.map(|peer| peer.routing_id.clone()).unwrap_or_default(),
            messages,
            bytes,
        }
    }
}

/// Adds what objects still hold to what they have given up.
pub(crate) fn together(
    given_up: impl Fn() -> Undelivered,
    held: impl Fn() -> Undelivered,
) -> Undelivered {
    let mut before = given_up();
    let held = loop {
        let held = held();
        let now = given_up();
        // An object that gave up meanwhile would count twice, or not at all.
        if now == before {
            break held;
        }
        before = now;
    };
    let mut tally = Tally::default();
    for peer in before.peers.iter().chain(&held.peers) {
        tally.add(peer);
    }
    tally.report()
}

/// The peer's address without its port; empty if it is not known.
pub(crate) fn address_of(peer: &PeerInfo) -> String {
    let mut properties = peer.properties.iter();
    let address = properties.find(|(name, _)| name == "Peer-Address");
    address
        .map(|(_, value)| String::from_utf8_lossy(value).into_owned())
        .unwrap_or_default()
}

impl fmt::Display for Undelivered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("everything was delivered");
        }
        let (messages, bytes) = (self.messages(), self.bytes());
        let (noun, verb) = if messages == 1 {
            ("message", "was")
        } else {
            ("messages", "were")
        };
        write!(f, "{messages} {noun} ({bytes} bytes) {verb} not delivered")?;
        for (index, peer) in self.peers.iter().enumerate() {
            let before = if index == 0 { ": " } else { ", " };
            write!(f, "{before}{} to {peer}", peer.messages)?;
        }
        Ok(())
    }
}

impl fmt::Display for UndeliveredPeer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&*self.endpoint, &*self.address) {
            ("", _) => f.write_str("other peers"),
            (endpoint, "") => f.write_str(endpoint),
            (endpoint, address) => write!(f, "{address} at {endpoint}"),
        }
    }
}

/// Collects undelivered messages by peer.
#[derive(Default)]
pub(crate) struct Tally(BTreeMap<(String, String, Bytes), (u64, u64)>);

impl Tally {
    pub(crate) fn add(&mut self, peer: &UndeliveredPeer) {
        if peer.messages == 0 {
            return;
        }
        let mut key = (
            peer.endpoint.clone(),
            peer.address.clone(),
            peer.routing_id.clone(),
        );
        if self.0.len() >= PEERS_MAX && !self.0.contains_key(&key) {
            key = Default::default();
        }
        let (messages, bytes) = self.0.entry(key).or_default();
        *messages += peer.messages;
        *bytes += peer.bytes;
    }

    pub(crate) fn report(&self) -> Undelivered {
        let peer = |(key, counts): (&(String, String, Bytes), &(u64, u64))| UndeliveredPeer {
            endpoint: key.0.clone(),
            address: key.1.clone(),
            routing_id: key.2.clone(),
            messages: counts.0,
            bytes: counts.1,
        };
        Undelivered {
            peers: self.0.iter().map(peer).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(endpoint: &str, address: &str, messages: u64) -> UndeliveredPeer {
        UndeliveredPeer {
            endpoint: endpoint.to_owned(),
            address: address.to_owned(),
            messages,
            bytes: 10 * messages,
            ..UndeliveredPeer::default()
        }
    }

    #[test]
    fn the_messages_of_a_peer_are_added_up() {
        let mut tally = Tally::default();
        tally.add(&peer("tcp://b", "", 0));
        assert!(tally.report().is_empty());
        tally.add(&peer("tcp://b", "1.2.3.4:5", 2));
        tally.add(&peer("tcp://a", "", 1));
        tally.add(&peer("tcp://b", "1.2.3.4:5", 3));
        let report = tally.report();
        assert_eq!(
            report.peers,
            [peer("tcp://a", "", 1), peer("tcp://b", "1.2.3.4:5", 5)]
        );
        assert_eq!((report.messages(), report.bytes()), (6, 60));
        assert_eq!(
            report.to_string(),
            "6 messages (60 bytes) were not delivered: 1 to tcp://a, 5 to 1.2.3.4:5 at tcp://b"
        );
        let mut single = Tally::default();
        single.add(&peer("tcp://a", "", 1));
        assert_eq!(
            single.report().to_string(),
            "1 message (10 bytes) was not delivered: 1 to tcp://a"
        );
        assert_eq!(
            Undelivered::default().to_string(),
            "everything was delivered"
        );
    }

    #[test]
    fn a_report_of_many_peers_is_bounded() {
        let mut tally = Tally::default();
        for number in 0..PEERS_MAX as u64 + 50 {
            tally.add(&peer(&format!("tcp://{number}"), "", 1));
        }
        tally.add(&peer("tcp://0", "", 1));
        let report = tally.report();
        assert_eq!(report.peers.len(), PEERS_MAX + 1);
        assert_eq!(report.peers[0], peer("", "", 50));
        assert_eq!(report.messages(), PEERS_MAX as u64 + 51);
        assert!(report.to_string().contains("50 to other peers"));
    }
}
