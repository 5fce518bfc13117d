//! The facts about a socket that an observer of the process answers.

use std::cmp::Reverse;

use super::core::Core;
use super::entries::Attached;
use super::stats::{PeerStats, SocketStats};
use crate::json::Json;
use crate::patterns::{Counters, DropReason};

impl Core {
    /// Writes the socket's options and counters, and those of at most `most_peers` of its peers. A socket that was closed
    /// meanwhile writes only that.
    pub(super) fn write_facts(&self, json: &mut Json, most_peers: usize) {
        json.number("id", self.serial);
        json.text("type", self.spec().socket_type.name());
        let Ok(mut state) = self.lock_open() else {
            json.flag("closed", true);
            return;
        };
        let stats = self.stats(&mut state);
        let options = state.options.clone();
        let (bound, connected): (Vec<_>, Vec<_>) = state
            .endpoints
            .places()
            .map(|place| (place.endpoint.to_owned(), place.attached))
            .partition(|(_, attached)| *attached == Attached::Bound);
        // Writing takes longer than counting, and the program may want to send.
        drop(state);
        json.text("routing_id", &label(&options.routing_id));
        json.texts("bound", bound.iter().map(|(endpoint, _)| endpoint.as_str()));
        json.texts(
            "connected",
            connected.iter().map(|(endpoint, _)| endpoint.as_str()),
        );
        json.number("sndhwm", options.sndhwm as u64);
        json.number("rcvhwm", options.rcvhwm as u64);
        write_stats(json, stats, most_peers);
    }
}

fn write_stats(json: &mut Json, mut stats: SocketStats, most_peers: usize) {
    json.number("sent", stats.sent);
    json.number("sent_bytes", stats.sent_bytes);
    json.number("received", stats.received);
    json.number("received_bytes", stats.received_bytes);
    json.number("queued_out", stats.queued_out);
    json.number("queued_in", stats.queued_in);
    json.number("lingering", stats.lingering);
    json.number("spilled", stats.spilled);
    json.number("spilled_bytes", stats.spilled_bytes);
    json.number("connections", stats.connections);
    json.number("reconnects", stats.reconnects);
    json.number("full_out", stats.full_out);
    json.number("full_in", stats.full_in);
    json.number(
        "no_subscriber",
        stats.dropped.dropped(DropReason::NoSubscriber),
    );
    json.number("missed_events", stats.missed_events);
    json.object("dropped", |json| write_dropped(json, &stats.dropped));
    let connected = stats.peers.iter().filter(|peer| peer.connected).count();
    json.number("peers_connected", connected as u64);
    let unlisted = stats.peers.len().saturating_sub(most_peers);
    json.number("peers_unlisted", unlisted as u64);
    if unlisted > 0 {
        stats.peers.sort_by_cached_key(|peer| Reverse(weight(peer)));
        stats.peers.truncate(most_peers);
    }
    json.list("peers", &stats.peers, write_peer);
}

/// Peers with more to see come first: those for which messages wait, then those with more messages.
fn weight(peer: &PeerStats) -> (u64, u64) {
    (peer.queued_out + peer.queued_in, peer.sent + peer.received)
}

fn write_peer(json: &mut Json, peer: &PeerStats) {
    json.number("id", peer.id);
    json.text("endpoint", &peer.endpoint);
    json.text("address", &peer.address);
    json.text("routing_id", &label(&peer.routing_id));
    json.flag("connected", peer.connected);
    json.flag("waiting", peer.waiting);
    json.number("sent", peer.sent);
    json.number("sent_bytes", peer.sent_bytes);
    json.number("received", peer.received);
    json.number("received_bytes", peer.received_bytes);
    json.number("queued_out", peer.queued_out);
    json.number("queued_in", peer.queued_in);
    json.number("spilled", peer.spilled);
    json.number("spilled_bytes", peer.spilled_bytes);
    json.number("reconnects", peer.reconnects);
    json.number("full_out", peer.full_out);
    json.number("full_in", peer.full_in);
    json.object("dropped", |json| write_dropped(json, &peer.dropped));
}

/// The reasons that occurred. Messages without a subscriber are counted on their own, because they are normal.
fn write_dropped(json: &mut Json, dropped: &Counters) {
    for reason in DropReason::ALL {
        let count = dropped.dropped(reason);
        if count > 0 && reason != DropReason::NoSubscriber {
            json.number(reason.name(), count);
        }
    }
}

/// A routing id as text if it is printable, and otherwise in hexadecimal digits.
fn label(id: &[u8]) -> String {
    match std::str::from_utf8(id) {
        Ok(text) if !text.chars().any(char::is_control) => text.to_owned(),
        _ => id.iter().fold("0x".to_owned(), |mut text, byte| {
            text.push_str(&format!("{byte:02x}"));
            text
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peers_with_the_longest_queues_are_listed() {
        let peer = |id, queued_out, sent| PeerStats {
            id,
            queued_out,
            sent,
            ..PeerStats::default()
        };
        let stats = SocketStats {
            peers: vec![peer(1, 0, 9), peer(2, 0, 10), peer(3, 5, 0), peer(4, 0, 1)],
            ..SocketStats::default()
        };
        let text = Json::build(|json| write_stats(json, stats.clone(), 2));
        assert!(
            text.contains(r#""peers_unlisted":2,"peers":[{"id":3,"#),
            "{text}"
        );
        assert!(text.contains(r#"{"id":2,"#), "{text}");
        let text = Json::build(|json| write_stats(json, stats, 4));
        assert!(
            text.contains(r#""peers_unlisted":0,"peers":[{"id":1,"#),
            "{text}"
        );
    }

    #[test]
    fn routing_ids_are_shown_as_text_or_digits() {
        assert_eq!(label(b""), "");
        assert_eq!(label("señor".as_bytes()), "señor");
        assert_eq!(label(b"\0\xff"), "0x00ff");
        assert_eq!(label(b"a\nb"), "0x610a62");
    }
}
