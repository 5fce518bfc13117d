//! Publishes batches of sinks: all staged rows become part of the log, once.

use std::time::Instant;

use zeroxide_log::{LogError, Prepared, Publication};

use super::Writer;
use crate::collector::commit::Waiting;
use crate::collector::outbox::Asked;
use crate::collector::refusal::Refusal;
use crate::collector::stage::{BatchOf, StagedPart};
use crate::collector::topics::Topics;

/// The reason why a transaction is not in the log.
enum Unpublished {
    Log(LogError),
    /// Staged rows have changed or cannot be read.
    Part(Refusal),
}

impl From<LogError> for Unpublished {
    fn from(error: LogError) -> Unpublished {
        Unpublished::Log(error)
    }
}

impl Writer {
    /// Publishes a small batch of a query: all rows, or none. Other writers wait meanwhile.
    pub fn handle_publish(&mut self, asked: Asked, of: BatchOf, parts: &[StagedPart]) {
        if self.obstacle().is_some() {
            return self.outbox.refuse(&asked, self.refusal());
        }
        let size: usize = parts.iter().map(StagedPart::size).sum();
        let time = self.receive_time();
        let Some(log) = &mut self.log else { return };
        let mut topics = Topics::default();
        let batches = parts.iter().map(|part| {
            let batch = part.decode().map_err(Unpublished::Part)?;
            topics.add(&batch);
            Ok(batch)
        });
        match log.append_published_from(&of.query, of.batch, time, batches) {
            Ok(publication) => {
                self.count(&publication, size as u64, &topics);
                self.tell_published(asked, of, publication);
            }
            Err(Unpublished::Part(refusal)) => {
                self.stats.failures.add(1);
                self.outbox.refuse(&asked, refusal);
            }
            Err(Unpublished::Log(error)) => {
                let refusal = self.refuse_for(&error, Instant::now());
                self.outbox.refuse(&asked, refusal);
            }
        }
    }

    /// Publishes a large batch, whose rows are already on disk in a segment of their own. Each request comes with whether it
    /// joined another one's.
    pub fn handle_prepared(
        &mut self,
        askers: Vec<(Asked, bool)>,
        of: &BatchOf,
        prepared: Result<(Prepared, Topics), Refusal>,
    ) {
        let result = match (prepared, &mut self.log) {
            (Ok(_), _) if self.stuck.is_some() => Err(self.refusal()),
            (Ok(_), None) => Err(self.refusal()),
            (Ok((prepared, topics)), Some(log)) => {
                let bytes = prepared.bytes();
                let adopted = log.adopt(prepared);
                match adopted {
                    Ok(publication) => {
                        self.count(&publication, bytes, &topics);
                        Ok(publication)
                    }
                    Err(error) => Err(self.refuse_for(&error, Instant::now())),
                }
            }
            (Err(refusal), _) => {
                self.stats.failures.add(1);
                Err(refusal)
            }
        };
        for (asked, has_joined) in askers {
            match &result {
                Ok(publication) => {
                    let mut publication = publication.clone();
                    publication.already |= has_joined;
                    self.tell_published(asked, of.clone(), publication);
                }
                Err(refusal) => self.outbox.refuse(&asked, refusal.clone()),
            }
        }
    }

    fn count(&mut self, publication: &Publication, bytes: u64, topics: &Topics) {
        if publication.already {
            self.stats.published_again.add(1);
            return;
        }
        let rows = publication.range.end - publication.range.start;
        self.stats.published.add(1);
        self.stats.published_rows.add(rows);
        self.stats.rows.add(rows);
        self.stats.bytes.add(bytes);
        self.topics.merge(topics);
        self.commits.on_appended(rows, Instant::now());
    }

    fn tell_published(&mut self, asked: Asked, of: BatchOf, publication: Publication) {
        self.tell_when_durable(Waiting::Published {
            asked,
            of,
            range: publication.range,
            already: publication.already,
        });
    }
}
