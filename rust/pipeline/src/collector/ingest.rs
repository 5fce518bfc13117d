//! Which rows of which producer may be appended: epochs, sequence numbers, credit. No sockets and no files in here.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use zeroxide_log::EPOCH_END;

use crate::wire::{Code, Credit, EPOCH_STEP};

/// How long a producer may be silent before its session can be given to another one.
const IDLE: Duration = Duration::from_secs(60);

/// Looking for idle sessions takes a pass over all of them: not for every HELLO of a flood.
const SWEEP_EVERY: Duration = Duration::from_secs(1);

/// How far ahead of this machine's clock the epoch of a producer may be, in microseconds: a day, for clocks that are not
/// set well. What is beyond would shut out every run whose clock is right.
const AHEAD: u64 = 24 * 3600 * 1_000_000;

/// What may be on its way in all sessions together, and how many there may be.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub sessions: usize,
    pub credit: Credit,
}

/// Why something is refused: for programs, a number that goes with it, for people.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    pub code: Code,
    pub detail: u64,
    pub text: String,
}

impl Refusal {
    pub fn new(code: Code, detail: u64, text: impl Into<String>) -> Refusal {
        Refusal {
            code,
            detail,
            text: text.into(),
        }
    }
}

/// What to do with a batch.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Admission {
    /// Append what comes behind the first `skip` rows, which are there already.
    Fresh { producer: Arc<str>, skip: usize },
    /// All of it is there already.
    Duplicate,
}

/// One run of one producer.
#[derive(Debug)]
pub(super) struct Session {
    pub epoch: u64,
    /// The sequence number that comes next.
    next: u64,
    /// Whether the log has, or had, rows before that.
    has_rows: bool,
    /// Where its last message came from.
    pub route: Bytes,
    /// It was told to stop.
    pub stalled: bool,
    heard: Instant,
}

impl Session {
    /// The sequence number of the last row in the log.
    pub fn last(&self) -> Option<u64> {
        self.next.checked_sub(1).filter(|_| self.has_rows)
    }
}

/// The producers that have said HELLO to this process.
pub(super) struct Sessions {
    limits: Limits,
    by_name: HashMap<Arc<str>, Session>,
    swept: Option<Instant>,
}

impl Sessions {
    pub fn new(limits: Limits) -> Sessions {
        Sessions {
            limits,
            by_name: HashMap::new(),
            swept: None,
        }
    }

    pub fn len(&self) -> usize {
        self.by_name.len()
    }

    pub fn get_mut(&mut self, producer: &str) -> Option<&mut Session> {
        self.by_name.get_mut(producer)
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = (&Arc<str>, &mut Session)> {
        self.by_name.iter_mut()
    }

    /// What each producer may have on its way. There is always enough for one row: a producer with any credit may have
    /// one batch on its way, however large it is.
    pub fn credit(&self) -> Credit {
        let share = |total: u64| (total / self.by_name.len().max(1) as u64).max(1);
        Credit {
            rows: share(self.limits.credit.rows),
            bytes: share(self.limits.credit.bytes),
        }
    }

    /// A run of a producer begins, or has come back. `logged` is the epoch and the sequence number of its last row, `wall`
    /// the time in microseconds since 1970.
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
        // A log of earlier versions may have an epoch that no clock gives, and that nothing could follow.
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
        // What was appended but may not be in what the log tells counts as well.
        let last = known.max(logged.and_then(|(_, seq)| seq));
        // Everything below `next_seq` was acknowledged to the producer, by this log or by another one that this one
        // replaces: it does not have those rows any more, and asking for them would not bring them back.
        let next = last
            .map_or(0, |last| last.saturating_add(1))
            .max(hello.next_seq);
        let session = Session {
            epoch: hello.epoch,
            next: last.map_or(hello.next_seq, |_| next),
            has_rows: last.is_some(),
            route: hello.route,
            stalled: false,
            heard: now,
        };
        self.by_name.insert(producer.into(), session);
        Ok(())
    }

    /// Says what of a batch may be appended.
    pub fn admit(
        &mut self,
        producer: &str,
        epoch: u64,
        rows: Rows,
        route: &Bytes,
        now: Instant,
    ) -> Result<Admission, Refusal> {
        let Some((name, session)) = self.by_name.get_key_value(producer) else {
            let text = format!("producer {producer:?} has not said HELLO to this collector");
            return Err(Refusal::new(Code::HelloFirst, 0, text));
        };
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
            if session.route != *route {
                session.route = route.clone();
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

    /// The rows below `end` were appended.
    pub fn on_appended(&mut self, producer: &str, end: u64) {
        if let Some(session) = self.by_name.get_mut(producer) {
            session.next = end;
            session.has_rows = true;
        }
    }

    /// Rows that had been appended may be gone: only what the log still has counts. A producer of whose rows it has
    /// none begins where it did: with a HELLO.
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
    }

    fn sweep(&mut self, now: Instant) {
        let is_due = |swept: Instant| now.saturating_duration_since(swept) >= SWEEP_EVERY;
        if self.swept.is_none_or(is_due) {
            self.swept = Some(now);
            self.by_name
                .retain(|_, session| now.saturating_duration_since(session.heard) < IDLE);
        }
    }
}

/// What a HELLO says.
#[derive(Debug)]
pub(super) struct Hello {
    pub epoch: u64,
    pub next_seq: u64,
    pub route: Bytes,
}

/// Consecutive sequence numbers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rows {
    pub first: u64,
    pub count: usize,
}

/// Not of a clock that is right. Who has not begun yet takes an epoch that follows `follow`, which is below its own: that
/// tells this from being fenced.
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
            credit: Credit {
                rows: 1000,
                bytes: 10_000,
            },
        })
    }

    /// A clock of 2026.
    const WALL: u64 = 1_790_000_000_000_000;

    fn hello(epoch: u64, next_seq: u64) -> Hello {
        Hello {
            epoch,
            next_seq,
            route: Bytes::from_static(b"r"),
        }
    }

    fn admit(
        sessions: &mut Sessions,
        epoch: u64,
        first: u64,
        count: usize,
    ) -> Result<Admission, Code> {
        let route = Bytes::from_static(b"r");
        let rows = Rows { first, count };
        sessions
            .admit("p", epoch, rows, &route, Instant::now())
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
    fn a_producer_goes_on_where_it_was_acknowledged_elsewhere() {
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
        // An older log, as from a backup: what it misses is gone.
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
    fn what_was_rolled_back_is_expected_again() {
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
    fn an_epoch_that_no_clock_gives_shuts_nobody_out() {
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

        // From a log of earlier versions.
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
