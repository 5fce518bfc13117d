//! Readers that have read everything and wait for the next row.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::{Duration, Instant};

use bytes::Bytes;

use crate::collector::fetch::Job;
use crate::collector::outbox::Asked;
use crate::collector::refusal::Refusal;
use crate::wire::Code;

/// The maximum number of waiting requests, per client and in total.
const PER_CLIENT: usize = 16;
const ALL: usize = 16_384;

/// The pause before requests that can be answered, but had to wait, are passed on.
const PAUSE: Duration = Duration::from_millis(10);

/// See the module text.
#[derive(Debug, Default)]
pub(super) struct Followers {
    /// Ordered by deadline; the number distinguishes requests with the same deadline.
    waiting: BTreeMap<(Instant, u64), Job>,
    /// Those that can be answered now, and wait for room among the requests for rows.
    ready: VecDeque<Job>,
    /// When to pass them on.
    ready_at: Option<Instant>,
    by_client: HashMap<Bytes, usize>,
    number: u64,
    /// The offset of the row for which all of them wait.
    offset: u64,
}

impl Followers {
    /// Keeps a request for rows from `offset` on, which is the end of the log, until a point in time.
    pub fn push(&mut self, job: Job, offset: u64, until: Instant) -> Result<(), (Asked, Refusal)> {
        let client = job.asked.route.clone();
        let own = self.by_client.get(&client).copied().unwrap_or_default();
        if own >= PER_CLIENT || self.len() >= ALL {
            let text = format!(
                "too many followers are waiting: {own} of this client, {} of all",
                self.len()
            );
            return Err((job.asked, Refusal::new(Code::TooMany, 0, text)));
        }
        self.by_client.insert(client, own + 1);
        self.number += 1;
        self.offset = offset;
        self.waiting.insert((until, self.number), job);
        Ok(())
    }

    /// The requests to answer now, `most` at a time: all of them if the log has grown beyond their offset, otherwise
    /// those whose deadline has passed.
    pub fn take(&mut self, end: u64, now: Instant, most: usize) -> Vec<Job> {
        if end != self.offset {
            self.offset = end;
            let grown = std::mem::take(&mut self.waiting);
            self.ready.extend(grown.into_values());
        }
        while let Some(first) = self.waiting.first_entry()
            && first.key().0 <= now
        {
            self.ready.push_back(first.remove());
        }
        let due: Vec<Job> = self.ready.drain(..most.min(self.ready.len())).collect();
        for job in &due {
            if let Some(own) = self.by_client.get_mut(&job.asked.route) {
                *own -= 1;
                if *own == 0 {
                    self.by_client.remove(&job.asked.route);
                }
            }
        }
        self.ready_at = (!self.ready.is_empty()).then(|| now + PAUSE);
        due
    }

    /// Drops the requests of clients that have disconnected.
    pub fn retain(&mut self, is_here: impl Fn(&Bytes) -> bool) {
        self.by_client.retain(|client, _| is_here(client));
        let by_client = &self.by_client;
        self.waiting
            .retain(|_, job| by_client.contains_key(&job.asked.route));
        self.ready
            .retain(|job| by_client.contains_key(&job.asked.route));
    }

    /// When to take the next ones.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let deadline = self.waiting.keys().next().map(|(until, _)| *until);
        [deadline, self.ready_at].into_iter().flatten().min()
    }

    pub fn len(&self) -> usize {
        self.waiting.len() + self.ready.len()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::collector::fetch::What;

    fn job(client: &'static str) -> Job {
        Job {
            asked: Asked {
                route: Bytes::from_static(client.as_bytes()),
                id: 1,
                key: None,
            },
            what: What::Fetch {
                start: 5,
                end: u64::MAX,
                max_bytes: 1,
                topics: Vec::new(),
                generation: 0,
            },
        }
    }

    #[test]
    fn a_new_row_is_for_all_and_time_for_each() {
        let now = Instant::now();
        let soon = now + Duration::from_secs(1);
        let mut followers = Followers::default();
        assert_eq!(followers.poll_timeout(), None);
        followers.push(job("a"), 5, soon).unwrap();
        followers.push(job("b"), 5, now).unwrap();
        followers.push(job("c"), 5, soon).unwrap();
        assert_eq!(followers.poll_timeout(), Some(now));
        let due = followers.take(5, now, ALL);
        assert_eq!(due.len(), 1);
        assert_eq!(&due[0].asked.route[..], b"b");
        assert_eq!(followers.take(5, now, ALL).len(), 0);
        assert_eq!(followers.take(6, now, ALL).len(), 2);
        assert_eq!(followers.len(), 0);
    }

    #[test]
    fn more_followers_than_there_is_room_for_are_answered_in_turns() {
        let now = Instant::now();
        let soon = now + Duration::from_secs(1);
        let mut followers = Followers::default();
        for client in ["a", "b", "c"] {
            followers.push(job(client), 5, soon).unwrap();
        }
        assert_eq!(followers.take(6, now, 2).len(), 2);
        // A later one waits for a later row, and does not delay the third.
        followers.push(job("d"), 6, soon).unwrap();
        assert!(followers.poll_timeout().is_some_and(|due| due < soon));
        assert_eq!(followers.take(6, now, 0).len(), 0);
        let due = followers.take(6, now, 2);
        assert_eq!(due.len(), 1);
        assert_eq!(&due[0].asked.route[..], b"c");
        assert_eq!((followers.len(), followers.poll_timeout()), (1, Some(soon)));
    }

    #[test]
    fn requests_end_with_their_clients() {
        let now = Instant::now();
        let mut followers = Followers::default();
        for _ in 0..PER_CLIENT {
            followers.push(job("a"), 5, now).unwrap();
            followers.push(job("b"), 5, now).unwrap();
        }
        followers.retain(|client| &client[..] == b"b");
        assert_eq!(followers.len(), PER_CLIENT);
        // A client of that name that comes anew has all its places.
        followers.push(job("a"), 5, now).unwrap();
        assert!(followers.push(job("b"), 5, now).is_err());
        let due = followers.take(5, now, ALL);
        assert_eq!(due.len(), PER_CLIENT + 1);
    }

    #[test]
    fn one_client_cannot_take_all_places() {
        let now = Instant::now();
        let mut followers = Followers::default();
        for _ in 0..PER_CLIENT {
            followers.push(job("a"), 5, now).unwrap();
        }
        let (_, refusal) = followers.push(job("a"), 5, now).unwrap_err();
        assert_eq!(refusal.code, Code::TooMany);
        followers.push(job("b"), 5, now).unwrap();
        assert_eq!(followers.take(5, now, ALL).len(), PER_CLIENT + 1);
        followers.push(job("a"), 5, now).unwrap();
    }
}
