//! Sinks: what was staged becomes part of the log, whole and once.

use std::time::Instant;

use zeroxide_log::Batch;

use super::Writer;
use crate::collector::commit::Waiting;
use crate::collector::ingest::Refusal;
use crate::collector::outbox::Asked;
use crate::collector::stage::{BatchOf, StagedPart};
use crate::wire::Code;

/// The most bytes of a transaction: it is in memory while it is appended.
const TRANSACTION: usize = 1 << 30;

impl Writer {
    /// Publishes a batch of a query: all rows, or none.
    pub fn handle_publish(&mut self, asked: Asked, of: BatchOf, parts: &[StagedPart]) {
        if self.stuck.is_some() {
            return self.outbox.refuse(&asked, self.refusal());
        }
        let now = Instant::now();
        let batches = match read_parts(parts) {
            Ok(batches) => batches,
            Err(refusal) => {
                self.stats.failures.add(1);
                return self.outbox.refuse(&asked, refusal);
            }
        };
        let time = self.receive_time();
        let Some(log) = &mut self.log else { return };
        match log.append_published(&of.query, of.batch, time, &batches) {
            Ok(publication) => {
                let (range, already) = (publication.range, publication.already);
                let end = log.next();
                if already {
                    self.stats.published_again.add(1);
                } else {
                    let rows = range.end - range.start;
                    let bytes: usize = batches.iter().map(Batch::size).sum();
                    self.stats.published.add(1);
                    self.stats.published_rows.add(rows);
                    self.stats.rows.add(rows);
                    self.stats.bytes.add(bytes as u64);
                    self.commits.on_appended(rows.max(1), now);
                }
                self.tell_when_durable(
                    end,
                    Waiting::Published {
                        asked,
                        of,
                        range,
                        already,
                    },
                );
            }
            Err(error) => {
                let refusal = self.refuse_for(&error, now);
                self.outbox.refuse(&asked, refusal);
            }
        }
    }
}

fn read_parts(parts: &[StagedPart]) -> Result<Vec<Batch>, Refusal> {
    let size: usize = parts.iter().map(StagedPart::size).sum();
    if size > TRANSACTION {
        let text = format!(
            "a batch of {size} bytes cannot be published at once, {TRANSACTION} is the most: let the query take smaller ones (maxOffsetsPerTrigger)"
        );
        return Err(Refusal::new(Code::TooBig, TRANSACTION as u64, text));
    }
    let batches = parts.iter().map(|part| {
        let rows = part
            .read()
            .map_err(|error| Refusal::new(Code::Corrupt, 0, error.to_string()))?;
        Batch::decode(rows).map_err(|error| Refusal::new(Code::Corrupt, 0, error.to_string()))
    });
    batches.collect()
}
