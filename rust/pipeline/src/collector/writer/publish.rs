//! Sinks: what was staged becomes part of the log, whole and once.

use std::time::Instant;

use zeroxide_log::{Batch, LogError};

use super::Writer;
use crate::collector::commit::Waiting;
use crate::collector::ingest::Refusal;
use crate::collector::outbox::Asked;
use crate::collector::stage::{BatchOf, StagedPart};
use crate::wire::Code;

/// The most bytes of a transaction: all of it goes into one segment, and nothing else is written meanwhile.
const TRANSACTION: usize = 1 << 30;

/// Why a transaction is not in the log.
enum Unpublished {
    Log(LogError),
    /// Staged rows are not what they were.
    Part(Refusal),
}

impl From<LogError> for Unpublished {
    fn from(error: LogError) -> Unpublished {
        Unpublished::Log(error)
    }
}

impl Writer {
    /// Publishes a batch of a query: all rows, or none.
    pub fn handle_publish(&mut self, asked: Asked, of: BatchOf, parts: &[StagedPart]) {
        if self.stuck.is_some() {
            return self.outbox.refuse(&asked, self.refusal());
        }
        let now = Instant::now();
        let size: usize = parts.iter().map(StagedPart::size).sum();
        if size > TRANSACTION {
            let text = format!(
                "a batch of {size} bytes cannot be published at once, {TRANSACTION} is the most: let the query take smaller ones (maxOffsetsPerTrigger)"
            );
            let refusal = Refusal::new(Code::TooBig, TRANSACTION as u64, text);
            return self.outbox.refuse(&asked, refusal);
        }
        let time = self.receive_time();
        let Some(log) = &mut self.log else { return };
        let batches = parts
            .iter()
            .map(|part| read(part).map_err(Unpublished::Part));
        match log.append_published_from(&of.query, of.batch, time, batches) {
            Ok(publication) => {
                let (range, already) = (publication.range, publication.already);
                if already {
                    self.stats.published_again.add(1);
                } else {
                    let rows = range.end - range.start;
                    self.stats.published.add(1);
                    self.stats.published_rows.add(rows);
                    self.stats.rows.add(rows);
                    self.stats.bytes.add(size as u64);
                    self.commits.on_appended(rows, now);
                }
                self.tell_when_durable(Waiting::Published {
                    asked,
                    of,
                    range,
                    already,
                });
            }
            Err(Unpublished::Part(refusal)) => {
                self.stats.failures.add(1);
                self.outbox.refuse(&asked, refusal);
            }
            Err(Unpublished::Log(error)) => {
                let refusal = self.refuse_for(&error, now);
                self.outbox.refuse(&asked, refusal);
            }
        }
    }
}

fn read(part: &StagedPart) -> Result<Batch, Refusal> {
    let corrupt = |text: String| Refusal::new(Code::Corrupt, 0, text);
    let rows = part.read().map_err(|error| corrupt(error.to_string()))?;
    Batch::decode(rows).map_err(|error| corrupt(error.to_string()))
}
