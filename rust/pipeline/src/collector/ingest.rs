//! Decides which rows of which producer may be appended, by epochs and sequence numbers, and how much credit each
//! producer gets. It uses neither sockets nor files.
//!
//! Credit is an agreement, and is not enforced: a producer that sends more is served. The rows themselves are in the page
//! cache as soon as they were appended. A producer that ignores its credit makes two other things grow: its requests that
//! were not read yet, which the socket's high-water mark bounds, and one entry per batch, of about 200 bytes, until the
//! next sync has ended, which `commit` bounds. Shares shrink when producers join, so at any time honest producers may have more in transit than their
//! credit, and a refusal would hit them.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use zeroxide_log::EPOCH_END;

use crate::collector::outbox::Asked;
use crate::collector::refusal::Refusal;
use crate::wire::{Code, Credit, EPOCH_STEP};

/// The time after which the session of a silent producer may be dropped to make room.
const IDLE: Duration = Duration::from_secs(60);

/// The same for a producer that has sent no row since its HELLO.
const SILENT: Duration = Duration::from_secs(5);

/// The minimum interval between searches for idle sessions, because a search visits all of them and a flood of HELLOs
/// would repeat it.
const SWEEP_EVERY: Duration = Duration::from_secs(1);

/// How far the epoch of a producer may be ahead of this machine's clock, in microseconds: one day, to tolerate
/// inaccurate clocks. A greater epoch would exclude every run whose clock is correct.
const AHEAD: u64 = 24 * 3600 * 1_000_000;

/// The credit that all sessions share, and limits for the number of sessions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub sessions: usize,
    /// The maximum number of sessions on one connection.
    pub per_route: usize,
    pub credit: Credit,
}

/// The decision about a batch.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Admission {
    /// Append the rows after the first `skip`, which are in the log already.
    Fresh { producer: Arc<str>, skip: usize },
    /// All rows are in the log already.
    Duplicate,
}

/// One run of a producer.
#[derive(Debug)]
pub(super) struct Session {
    pub epoch: u64,
    /// The next expected sequence number.
    next: u64,
    /// Whether the log has, or had, rows before that.
    has_rows: bool,
    /// The connection of its last message.
    pub route: Bytes,
    /// The key that owns it, if keys are required.
    key: Option<Arc<str>>,
    /// The time of its first HELLO, until it has sent rows.
    silent_since: Option<Instant>,
    /// Whether it was told to stop sending.
    pub stalled: bool,
    pub heard: Instant,
}

impl Session {
    /// The sequence number of the last row in the log.
    pub fn last(&self) -> Option<u64> {
        self.next.checked_sub(1).filter(|_| self.has_rows)
    }
}

/// The producers that have sent HELLO to this process.
pub(super) struct Sessions {
    limits: Limits,
    by_name: HashMap<Arc<str>, Session>,
    /// The number of sessions on each connection.
    by_route: HashMap<Bytes, usize>,
    /// The number of sessions that were dropped to make room.
    dropped: u64,
    swept: Option<Instant>,
}

impl Sessions {
    pub fn new(limits: Limits) -> Sessions {
        Sessions {
            limits,
            by_name: HashMap::new(),
            by_route: HashMap::new(),
            dropped: 0,
            swept: None,
        }
    }

    pub fn len(&self) -> usize {
        self.by_name.len()
    }

    /// The number of sessions that were dropped to make room for others.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    pub fn get_mut(&mut self, producer: &str) -> Option<&mut Session> {
        self.by_name.get_mut(producer)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&Arc<str>, &Session)> {
        self.by_name.iter()
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = (&Arc<str>, &mut Session)> {
        self.by_name.iter_mut()
    }

    /// The credit of each producer. One row is always possible: with any credit, a producer may have one batch in
    /// transit, however large it is.
    pub fn credit(&self) -> Credit {
        let share = |total: u64| (total / self.by_name.len().max(1) as u64).max(1);
        Credit {
            rows: share(self.limits.credit.rows),
            bytes: share(self.limits.credit.bytes),
        }
    }

    /// Handles the HELLO of a new or returning run. `logged` is the epoch and the sequence number of the producer's
    /// last row, `wall` the time in microseconds since 1970.
    pub fn handle_hello(
        &mut self,
        producer: &str,
        hello: Hello,
        logged: Option<(u64, Option<u64>)>,
        wall: u64,
        now: Instant,
    ) -> Result<(), Refusal> {
        let (current, known) = match self.by_name.get(producer) {
            Some(session) => (Some(session.epoch), session.last()),
            None => (None, None),
        };
        // A log of an earlier version may have an impossibly great epoch, which no later run could follow.
        let logged_epoch = logged.map(|(epoch, _)| epoch);
        let newest = current.max(logged_epoch.filter(|epoch| *epoch < EPOCH_END));
        if let Some(newest) = newest.filter(|newest| hello.epoch < *newest) {
            return Err(fenced(producer, hello.epoch, newest));
        }
        let follow = newest.unwrap_or_default();
        let most = wall
            .saturating_add(AHEAD)
            .max(follow.saturating_add(EPOCH_STEP));
        if hello.epoch > most.min(EPOCH_END - 1) {
            return Err(too_far_ahead(producer, hello.epoch, follow.max(wall)));
        }
        let is_here = |session: &Session| session.route == hello.route;
        if !self.by_name.get(producer).is_some_and(is_here) {
            let own = self.by_route.get(&hello.route).copied();
            if own.unwrap_or_default() >= self.limits.per_route {
                let text = format!(
                    "{} producers have said HELLO over this connection already, the most that may share one: connect anew \
                     for more, or raise --max-names-per-connection of the collector",
                    self.limits.per_route
                );
                return Err(Refusal::new(Code::TooMany, 0, text));
            }
        }
        if current.is_none() && self.by_name.len() >= self.limits.sessions {
            self.sweep(now);
            if self.by_name.len() >= self.limits.sessions {
                let text = format!(
                    "{} producers are connected already, the most that this collector serves at a time",
                    self.by_name.len()
                );
                return Err(Refusal::new(Code::TooMany, 0, text));
            }
        }
        if i64::try_from(hello.next_seq).is_err() {
            let text = "sequence numbers end at 2^63";
            return Err(Refusal::new(Code::Invalid, 0, text));
        }
        // Rows that were appended but are not in the log's records yet count as well.
        let last = known.max(logged.and_then(|(_, seq)| seq));
        // Everything below `next_seq` was acknowledged to the producer, by this log or by one that this log replaces.
        // The producer does not have those rows any more, so requesting them would be useless.
        let next = last
            .map_or(0, |last| last.saturating_add(1))
            .max(hello.next_seq);
        // Repeated HELLOs do not prolong a session.
        let before = self.by_name.get(producer);
        let silent_since = before.map_or(Some(now), |session| session.silent_since);
        let session = Session {
            epoch: hello.epoch,
            next,
            has_rows: last.is_some(),
            route: hello.route,
            key: hello.key,
            silent_since,
            stalled: false,
            heard: now,
        };
        *self.by_route.entry(session.route.clone()).or_default() += 1;
        if let Some(before) = self.by_name.insert(producer.into(), session) {
            leave(&mut self.by_route, &before.route);
        }
        Ok(())
    }

    /// Decides which rows of a batch may be appended.
    pub fn admit(
        &mut self,
        producer: &str,
        epoch: u64,
        rows: Rows,
        asked: &Asked,
        now: Instant,
    ) -> Result<Admission, Refusal> {
        let Some((name, session)) = self.by_name.get_key_value(producer) else {
            let text = format!("producer {producer:?} has not said HELLO to this collector");
            return Err(Refusal::new(Code::HelloFirst, 0, text));
        };
        if session.key != asked.key {
            let text = format!(
                "producer {producer:?} belongs to another key than the one that sent its rows"
            );
            return Err(Refusal::new(Code::Denied, 0, text));
        }
        let (name, newest) = (name.clone(), session.epoch);
        if epoch < newest {
            return Err(fenced(producer, epoch, newest));
        }
        if epoch > newest {
            let text = format!("producer {producer:?} has not said HELLO in epoch {epoch}");
            return Err(Refusal::new(Code::HelloFirst, 0, text));
        }
        let expected = session.next;
        let end = rows.first.checked_add(rows.count as u64);
        let Some(end) = end.filter(|end| rows.count > 0 && i64::try_from(*end).is_ok()) else {
            let text = "a batch has at least one row, and sequence numbers end at 2^63";
            return Err(Refusal::new(Code::Invalid, 0, text));
        };
        if rows.first > expected {
            let text = format!(
                "producer {producer:?} sent rows from {}, but {expected} is the next one that is expected",
                rows.first
            );
            return Err(Refusal::new(Code::Gap, expected, text));
        }
        if let Some(session) = self.by_name.get_mut(producer) {
            session.heard = now;
            if session.route != asked.route {
                leave(&mut self.by_route, &session.route);
                session.route = asked.route.clone();
                *self.by_route.entry(session.route.clone()).or_default() += 1;
            }
        }
        if end <= expected {
            return Ok(Admission::Duplicate);
        }
        Ok(Admission::Fresh {
            producer: name,
            skip: (expected - rows.first) as usize,
        })
    }

    /// Records that the rows below `end` were appended.
    pub fn on_appended(&mut self, producer: &str, end: u64) {
        if let Some(session) = self.by_name.get_mut(producer) {
            session.next = end;
            session.has_rows = true;
            session.silent_since = None;
        }
    }

    /// Appended rows may be lost after a failure; only those that the log still has count. A producer without rows in
    /// the log must begin again with a HELLO.
    pub fn on_rolled_back(&mut self, logged: impl Fn(&str) -> Option<u64>) {
        self.by_name
            .retain(|producer, session| match logged(producer) {
                Some(last) => {
                    session.next = last.saturating_add(1);
                    session.has_rows = true;
                    true
                }
                None => !session.has_rows,
            });
        self.count_routes();
    }

    fn sweep(&mut self, now: Instant) {
        let is_due = |swept: Instant| now.saturating_duration_since(swept) >= SWEEP_EVERY;
        if self.swept.is_none_or(is_due) {
            self.swept = Some(now);
            let before = self.by_name.len();
            let for_less = |since: Instant, limit| now.saturating_duration_since(since) < limit;
            self.by_name.retain(|_, session| {
                let is_new = |since| for_less(since, SILENT);
                for_less(session.heard, IDLE) && session.silent_since.is_none_or(is_new)
            });
            self.dropped += (before - self.by_name.len()) as u64;
            self.count_routes();
        }
    }

    fn count_routes(&mut self) {
        self.by_route.clear();
        for session in self.by_name.values() {
            *self.by_route.entry(session.route.clone()).or_default() += 1;
        }
    }
}

/// Counts one session fewer on a connection.
fn leave(by_route: &mut HashMap<Bytes, usize>, route: &Bytes) {
    if let Some(count) = by_route.get_mut(route) {
        *count -= 1;
        if *count == 0 {
            by_route.remove(route);
        }
    }
}

/// The contents of a HELLO.
#[derive(Debug)]
pub(super) struct Hello {
    pub epoch: u64,
    pub next_seq: u64,
    pub route: Bytes,
    pub key: Option<Arc<str>>,
}

/// Consecutive sequence numbers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rows {
    pub first: u64,
    pub count: usize,
}

/// The refusal of an epoch that no correct clock produces. A run that has not begun yet should take an epoch after
/// `follow`. Because that is below its own epoch, it can be distinguished from being fenced.
fn too_far_ahead(producer: &str, epoch: u64, follow: u64) -> Refusal {
    let text = format!(
        "epoch {epoch} of producer {producer:?} lies more than a day ahead of the collector's clock, at {follow}: set the \
         clocks of both machines, and start the producer again"
    );
    Refusal::new(Code::Fenced, follow, text)
}

fn fenced(producer: &str, epoch: u64, newest: u64) -> Refusal {
    let text = format!(
        "epoch {epoch} of producer {producer:?} is over: another process has taken over its name with epoch {newest}"
    );
    Refusal::new(Code::Fenced, newest, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sessions(most: usize) -> Sessions {
        Sessions::new(Limits {
            sessions: most,
            per_route: 3,
            credit: Credit {
                rows: 1000,
                bytes: 10_000,
            },
        })
    }

    /// A time in 2026.
    const WALL: u64 = 1_790_000_000_000_000;

    fn hello(epoch: u64, next_seq: u64) -> Hello {
        Hello {
            epoch,
            next_seq,
            route: Bytes::from_static(b"r"),
            key: None,
        }
    }

    fn asked(key: Option<&str>) -> Asked {
        Asked {
            route: Bytes::from_static(b"r"),
            id: 1,
            key: key.map(Arc::from),
        }
    }

    fn admit(
        sessions: &mut Sessions,
        epoch: u64,
        first: u64,
        count: usize,
    ) -> Result<Admission, Code> {
        let rows = Rows { first, count };
        sessions
            .admit("p", epoch, rows, &asked(None), Instant::now())
            .map_err(|refusal| refusal.code)
    }

    fn fresh(skip: usize) -> Result<Admission, Code> {
        Ok(Admission::Fresh {
            producer: "p".into(),
            skip,
        })
    }

    #[test]
    fn rows_follow_each_other() {
        let mut sessions = sessions(10);
        assert_eq!(admit(&mut sessions, 1, 0, 5), Err(Code::HelloFirst));
        sessions
            .handle_hello("p", hello(1, 0), None, WALL, Instant::now())
            .unwrap();
        assert_eq!(admit(&mut sessions, 1, 0, 5), fresh(0));
        assert_eq!(
            admit(&mut sessions, 1, 5, 5),
            Err(Code::Gap),
            "nothing was appended yet"
        );
        sessions.on_appended("p", 5);
        assert_eq!(admit(&mut sessions, 1, 0, 5), Ok(Admission::Duplicate));
        assert_eq!(admit(&mut sessions, 1, 3, 5), fresh(2));
        assert_eq!(admit(&mut sessions, 1, 5, 5), fresh(0));
        assert_eq!(admit(&mut sessions, 1, 5, 0), Err(Code::Invalid));
        assert_eq!(admit(&mut sessions, 1, u64::MAX, 2), Err(Code::Invalid));
        assert_eq!(admit(&mut sessions, 2, 5, 5), Err(Code::HelloFirst));
    }

    #[test]
    fn a_newer_epoch_fences_the_older_one() {
        let mut sessions = sessions(10);
        sessions
            .handle_hello("p", hello(3, 0), Some((2, Some(7))), WALL, Instant::now())
            .unwrap();
        assert_eq!(admit(&mut sessions, 2, 8, 1), Err(Code::Fenced));
        assert_eq!(admit(&mut sessions, 3, 8, 1), fresh(0));
        let refusal = sessions
            .handle_hello("p", hello(2, 0), None, WALL, Instant::now())
            .unwrap_err();
        assert_eq!((refusal.code, refusal.detail), (Code::Fenced, 3));
        let refusal =
            sessions.handle_hello("q", hello(4, 0), Some((5, None)), WALL, Instant::now());
        assert_eq!(refusal.unwrap_err().code, Code::Fenced, "after a restart");
    }

    #[test]
    fn a_producer_continues_after_rows_that_another_log_acknowledged() {
        let mut sessions = sessions(10);
        sessions
            .handle_hello("p", hello(1, 500), None, WALL, Instant::now())
            .unwrap();
        assert_eq!(admit(&mut sessions, 1, 501, 1), Err(Code::Gap));
        assert_eq!(admit(&mut sessions, 1, 500, 1), fresh(0));
        assert_eq!(
            sessions.get_mut("p").and_then(|session| session.last()),
            None
        );
        // An older log, for example from a backup, without the latest rows.
        sessions
            .handle_hello("p", hello(2, 500), Some((1, Some(9))), WALL, Instant::now())
            .unwrap();
        assert_eq!(admit(&mut sessions, 2, 500, 1), fresh(0));
    }

    #[test]
    fn credit_is_shared_and_sessions_are_bounded() {
        let mut sessions = sessions(2);
        let start = Instant::now();
        let later = start + IDLE;
        sessions
            .handle_hello("a", hello(1, 0), None, WALL, start)
            .unwrap();
        sessions
            .handle_hello("b", hello(1, 0), None, WALL, later)
            .unwrap();
        assert_eq!(
            sessions.credit(),
            Credit {
                rows: 500,
                bytes: 5000
            }
        );
        sessions
            .handle_hello("b", hello(2, 0), None, WALL, later)
            .unwrap();
        sessions
            .handle_hello("c", hello(1, 0), None, WALL, later)
            .unwrap();
        assert!(sessions.get_mut("a").is_none(), "was idle for longest");
        let refusal = sessions.handle_hello("d", hello(1, 0), None, WALL, later);
        assert_eq!(refusal.unwrap_err().code, Code::TooMany);
    }

    #[test]
    fn names_on_a_connection_are_limited() {
        let mut sessions = sessions(10);
        let now = Instant::now();
        let mut say = |name: &str, route: &'static [u8]| {
            let hello = Hello {
                route: Bytes::from_static(route),
                ..hello(1, 0)
            };
            let said = sessions.handle_hello(name, hello, None, WALL, now);
            said.map_err(|refusal| refusal.code)
        };
        for name in ["a", "b", "c", "a", "b", "c"] {
            assert_eq!(say(name, b"1"), Ok(()));
        }
        assert_eq!(say("d", b"1"), Err(Code::TooMany));
        assert_eq!(say("d", b"2"), Ok(()), "another connection");
        assert_eq!(say("a", b"2"), Ok(()), "it has come back over that one");
        assert_eq!(say("e", b"1"), Ok(()), "which makes room");
        assert_eq!(say("d", b"1"), Err(Code::TooMany));
    }

    #[test]
    fn producers_that_only_said_hello_are_dropped_first() {
        let mut sessions = sessions(3);
        let start = Instant::now();
        for name in ["p", "mute"] {
            sessions
                .handle_hello(name, hello(1, 0), None, WALL, start)
                .unwrap();
        }
        sessions.on_appended("p", 5);
        let later = start + SILENT;
        // Repeating it has no effect.
        sessions
            .handle_hello("mute", hello(2, 0), None, WALL, later)
            .unwrap();
        for name in ["q", "r"] {
            let hello = Hello {
                route: Bytes::from_static(b"else"),
                ..hello(1, 0)
            };
            sessions
                .handle_hello(name, hello, None, WALL, later)
                .unwrap();
        }
        assert!(sessions.get_mut("p").is_some() && sessions.get_mut("mute").is_none());
        assert_eq!(sessions.dropped(), 1);
    }

    #[test]
    fn rows_come_from_the_key_that_said_hello() {
        let mut sessions = sessions(3);
        let now = Instant::now();
        let hello = Hello {
            key: Some("A".into()),
            ..hello(1, 0)
        };
        sessions.handle_hello("p", hello, None, WALL, now).unwrap();
        let rows = Rows { first: 0, count: 1 };
        let refusal = sessions
            .admit("p", 1, rows, &asked(Some("B")), now)
            .unwrap_err();
        assert_eq!(refusal.code, Code::Denied);
        assert!(sessions.admit("p", 1, rows, &asked(Some("A")), now).is_ok());
    }

    #[test]
    fn rows_that_were_rolled_back_are_expected_again() {
        let mut sessions = sessions(10);
        let now = Instant::now();
        sessions
            .handle_hello("p", hello(1, 0), None, WALL, now)
            .unwrap();
        sessions.on_appended("p", 10);
        sessions.on_rolled_back(|_| Some(3));
        assert_eq!(admit(&mut sessions, 1, 10, 1), Err(Code::Gap));
        assert_eq!(admit(&mut sessions, 1, 4, 1), fresh(0));
        sessions.on_rolled_back(|_| None);
        assert_eq!(admit(&mut sessions, 1, 4, 1), Err(Code::HelloFirst));
    }

    #[test]
    fn an_impossible_epoch_does_not_exclude_later_runs() {
        let mut sessions = sessions(10);
        let now = Instant::now();
        let years = 10 * 365 * AHEAD;
        let mut say = |epoch, logged| {
            sessions
                .handle_hello("p", hello(epoch, 0), logged, WALL, now)
                .map_err(|refusal| (refusal.code, refusal.detail))
        };
        for epoch in [u64::MAX, EPOCH_END, WALL + years, WALL + AHEAD + 1] {
            assert_eq!(say(epoch, None), Err((Code::Fenced, WALL)));
        }
        assert_eq!(say(WALL, None), Ok(()));
        assert_eq!(say(u64::MAX, None), Err((Code::Fenced, WALL)));
        assert_eq!(say(WALL + AHEAD, None), Ok(()), "a clock set badly");
        assert_eq!(say(WALL, None), Err((Code::Fenced, WALL + AHEAD)));
        assert_eq!(say(WALL + AHEAD + EPOCH_STEP, None), Ok(()), "follows it");
        assert_eq!(say(WALL + AHEAD + EPOCH_STEP, None), Ok(()), "is back");

        // From a log of an earlier version.
        let mut say = |name, epoch, logged| {
            sessions
                .handle_hello(name, hello(epoch, 0), Some((logged, Some(4))), WALL, now)
                .map_err(|refusal| (refusal.code, refusal.detail))
        };
        assert_eq!(say("q", WALL, u64::MAX), Ok(()));
        assert_eq!(say("q", u64::MAX, u64::MAX), Err((Code::Fenced, WALL)));
        let future = WALL + years;
        assert_eq!(say("r", WALL, future), Err((Code::Fenced, future)));
        assert_eq!(say("r", future + EPOCH_STEP, future), Ok(()));
    }
}
