//! The counters of a collector, and its producers and topics.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use zeroxide::{DropReason, Socket};
use zeroxide_log::disk;

use crate::collector::ingest::{Session, Sessions};
use crate::collector::routes::{Routes, routes};
use crate::collector::serve::Server;
use crate::collector::stats::Json;

/// The most producers that are listed.
const LISTED: usize = 100;

/// The most groups that are listed.
const GROUPS: usize = 1000;

impl Server {
    /// All counters, as JSON.
    pub fn describe(&mut self) -> String {
        self.door.look();
        if let Some(gatherer) = &self.gatherer {
            let counts = gatherer.sockets.iter().map(too_large);
            // Closed sockets have no counters any more.
            self.plain_too_large = self.plain_too_large.max(counts.sum());
        }
        let router = self.router.stats().unwrap_or_default();
        let routes = routes(&router);
        self.forget_gone(&routes);
        let (earliest, durable) = self.reader.bounds();
        let id: String = self
            .reader
            .id()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        let (state, reason) = match self.writer.obstacle() {
            Some((code, text)) => (code.name(), text.to_owned()),
            None => ("fine", String::new()),
        };
        let ahead = self.writer.clock_ahead();
        let numbers = [
            ("earliest", earliest),
            ("durable", durable),
            ("log_bytes", self.reader.bytes()),
            ("connected_producers", self.writer.sessions().len() as u64),
            ("dropped_producers", self.writer.sessions().dropped()),
            ("waiting_for_sync", self.writer.commits().waiting() as u64),
            ("sync_crowds", self.writer.commits().crowds()),
            ("waiting_fetches", self.fetcher.waiting() as u64),
            ("followers", self.followers.len() as u64),
            ("unread_bytes", self.fetcher.unread().bytes()),
            ("unread_other_bytes", self.fetcher.unread().other_bytes()),
            ("credit_rows", self.writer.credit().rows),
            ("credit_bytes", self.writer.credit().bytes),
            ("uptime_seconds", self.started.elapsed().as_secs()),
            ("clock_ahead_seconds", ahead.as_secs()),
            ("too_large", router.dropped.dropped(DropReason::TooLarge)),
            ("plain_too_large", self.plain_too_large),
            ("max_batch_bytes", self.config.max_batch_bytes as u64),
        ];
        let plain = self
            .gatherer
            .as_ref()
            .map(|gatherer| gatherer.endpoints.join(" "));
        let segments = count_segments(&self.config.dir);
        let log = self.writer.log().map(|log| {
            let (known, forgotten) = log.producers();
            (log.next(), known, forgotten, furthest_behind(log.groups()))
        });
        Json::build(|json| {
            json.text("log_id", &id);
            json.text("endpoint", &self.endpoint);
            json.text("advertise", &self.advertise);
            json.text("plain", &plain.unwrap_or_default());
            json.text("state", state);
            json.text("reason", &reason);
            for (name, value) in numbers {
                json.number(name, value);
            }
            let (next, known, forgotten, (groups, unlisted)) = log.unwrap_or_default();
            let next = next.max(durable);
            json.number("next", next);
            json.number("segments", segments);
            json.number("known_producers", known as u64);
            json.number("forgotten_producers", forgotten as u64);
            json.object("groups", |json| {
                for (group, offset) in &groups {
                    json.number(group, *offset);
                }
            });
            json.number("groups_unlisted", unlisted as u64);
            write_producers(json, self.writer.sessions(), &routes);
            self.writer.topics().write(json);
            self.door.write(json);
            self.stats.write(json);
        })
    }

    /// The same for a peer: it may have been made a moment ago.
    pub fn description(&mut self) -> Bytes {
        let began = Instant::now();
        self.described.get(began).unwrap_or_else(|| {
            let text = Bytes::from(self.describe());
            self.described.keep(text.clone(), began, Instant::now());
            text
        })
    }

    /// Drops the followers whose connections have ended.
    pub fn forget_gone(&mut self, routes: &Routes<'_>) {
        self.followers.retain(|client| routes.contains(client));
    }
}

/// The groups that are furthest behind, which hold rows back and need attention, by name. Returns them and how many
/// others there are.
fn furthest_behind(groups: &BTreeMap<String, u64>) -> (Vec<(String, u64)>, usize) {
    let mut all: Vec<(&String, &u64)> = groups.iter().collect();
    let listed = all.len().min(GROUPS);
    if listed < all.len() {
        all.select_nth_unstable_by_key(listed, |(name, offset)| (**offset, *name));
    }
    let unlisted = all.len() - listed;
    all.truncate(listed);
    all.sort_unstable();
    let named = all
        .into_iter()
        .map(|(name, offset)| (name.clone(), *offset));
    (named.collect(), unlisted)
}

/// Lists producers: connected ones first, then by the time of their last message.
fn write_producers(json: &mut Json, sessions: &Sessions, routes: &Routes<'_>) {
    let is_connected = |session: &Session| routes.contains(&session.route);
    let mut all: Vec<(&Arc<str>, &Session)> = sessions.iter().collect();
    let rank = |(_, session): &(&Arc<str>, &Session)| {
        (Reverse(is_connected(session)), Reverse(session.heard))
    };
    let listed = all.len().min(LISTED);
    if listed < all.len() {
        // There may be very many: only those that are listed are put in order.
        all.select_nth_unstable_by_key(listed, rank);
    }
    let unlisted = all.len() - listed;
    all.truncate(listed);
    all.sort_by_key(rank);
    json.list("producers", all, |json, (name, session)| {
        json.text("name", name);
        json.flag("connected", is_connected(session));
        json.flag("stopped", session.stalled);
        let last = session
            .last()
            .map_or("null".to_owned(), |last| last.to_string());
        json.raw("last_seq", &last);
        json.number("silent_seconds", session.heard.elapsed().as_secs());
    });
    json.number("producers_unlisted", unlisted as u64);
}

/// The number of connections that ended because a message was too large.
fn too_large(socket: &Socket) -> u64 {
    socket
        .stats()
        .map_or(0, |stats| stats.dropped.dropped(DropReason::TooLarge))
}

/// The number of files of the log.
fn count_segments(dir: &Path) -> u64 {
    // An unreadable folder is reported by every other operation.
    let entries = disk::read_dir(dir).into_iter().flatten();
    entries
        .flatten()
        .filter(|entry| {
            entry
                .path()
                .extension()
                .is_some_and(|extension| extension == "zlog")
        })
        .count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_groups_that_are_furthest_behind_are_listed() {
        let groups =
            |count: u64| (0..count).map(move |number| (format!("g{number:04}"), count - number));
        let few: BTreeMap<String, u64> = groups(GROUPS as u64).collect();
        let (listed, unlisted) = furthest_behind(&few);
        assert_eq!((listed, unlisted), (few.into_iter().collect(), 0));
        let many: BTreeMap<String, u64> = groups(GROUPS as u64 + 7).collect();
        let (listed, unlisted) = furthest_behind(&many);
        assert_eq!((listed.len(), unlisted), (GROUPS, 7));
        assert_eq!(listed[0], ("g0007".to_owned(), GROUPS as u64));
        assert!(listed.is_sorted());
    }
}
