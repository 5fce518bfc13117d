//! Counts rejected peers by reason. A peer that fails its handshake never gets to send a request.

use zeroxide::{EventKind, EventStream, MonitorEvent, Socket, Wait};

use crate::collector::stats::Json;
use crate::link::{CRYPTOGRAPHIC, MECHANISM_MISMATCH};

/// The monitored events.
const WANTED: [EventKind; 3] = [
    EventKind::HandshakeFailedAuth,
    EventKind::HandshakeFailedProtocol,
    EventKind::HandshakeFailedNoDetail,
];

/// The counters, in the order of [`Why`].
const NAMES: [&str; 4] = ["key", "mechanism", "server-key", "other"];

#[derive(Clone, Copy)]
enum Why {
    /// The peer's key is not accepted.
    Key,
    /// The peer uses CURVE and the collector does not, or vice versa.
    Mechanism,
    /// The peer encrypted for another key than the collector's.
    ServerKey,
    /// The peer disconnected, timed out, or does not speak ZMTP.
    Other,
}

/// Failed handshakes.
pub(super) struct Door {
    streams: Vec<EventStream>,
    counts: [u64; NAMES.len()],
    /// The last peer that was rejected because of its keys, in words.
    last: String,
}

impl Door {
    pub fn new<'a>(sockets: impl Iterator<Item = &'a Socket>) -> zeroxide::Result<Door> {
        let mask = WANTED.iter().map(|kind| u32::from(*kind as u16)).sum();
        let streams = sockets.map(|socket| socket.event_stream(mask));
        Ok(Door {
            streams: streams.collect::<Result<_, _>>()?,
            counts: [0; NAMES.len()],
            last: String::new(),
        })
    }

    /// Counts the events since the last call.
    pub fn look(&mut self) {
        for stream in &self.streams {
            while let Ok(Some(event)) = stream.next(Wait::Dont) {
                let why = why(&event);
                // Events that found no room in the stream have an unknown reason.
                self.counts[Why::Other as usize] += event.missed;
                self.counts[why as usize] += 1;
                if !matches!(why, Why::Other) {
                    let reason = event.reason.as_deref().unwrap_or("no reason given");
                    self.last = format!("{} at {}: {reason}", event.party.address, event.endpoint);
                }
            }
        }
    }

    pub fn write(&self, json: &mut Json) {
        json.object("turned_away", |json| {
            for (name, count) in NAMES.iter().zip(self.counts) {
                json.number(name, count);
            }
        });
        json.text("turned_away_last", &self.last);
    }
}

fn why(event: &MonitorEvent) -> Why {
    match event.kind {
        EventKind::HandshakeFailedAuth => Why::Key,
        EventKind::HandshakeFailedProtocol => match u32::try_from(event.value) {
            Ok(MECHANISM_MISMATCH) => Why::Mechanism,
            Ok(CRYPTOGRAPHIC) => Why::ServerKey,
            _ => Why::Other,
        },
        _ => Why::Other,
    }
}
