//! Sinks: programs that stage the rows of a batch, and publish them once.

use bytes::Bytes;
use zeroxide_log::disk::simulated::Dice;

use super::model::{Model, Name, Wrong, batch_of};
use crate::collector::simulated::Served;
use crate::producer::encoded;
use crate::wire::{Attempt, Code, Reply, Request, Won};

/// The reply that a sink waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Staging,
    Publishing,
    Aborting,
}

/// A part of a batch: one partition writes it.
struct Part {
    rows: Vec<Name>,
    is_staged: bool,
    request: Option<u64>,
}

/// A sink over all its batches.
pub(super) struct Sink {
    query: String,
    batch: u64,
    attempt: u64,
    parts: Vec<Part>,
    phase: Phase,
    /// The request to publish or to abort that was not answered.
    request: Option<u64>,
    next_request: u64,
    pub is_last: bool,
}

impl Sink {
    pub fn new(number: usize, dice: &mut Dice) -> Sink {
        let mut sink = Sink {
            query: format!("q{number}"),
            batch: 0,
            attempt: 0,
            parts: Vec::new(),
            phase: Phase::Staging,
            request: None,
            next_request: 0,
            is_last: false,
        };
        sink.begin(dice);
        sink
    }

    /// Begins a batch.
    fn begin(&mut self, dice: &mut Dice) {
        self.batch += 1;
        let counts: Vec<u64> = (0..=dice.below(3))
            .map(|_| dice.below(4) as u64 + 1)
            .collect();
        let all = counts.iter().sum();
        let mut row = 0;
        self.parts = counts
            .into_iter()
            .map(|count| {
                let rows = (row..row + count).map(|row| Name {
                    of: self.query.clone(),
                    number: self.batch,
                    part: Some((row, all, self.attempt)),
                });
                row += count;
                Part {
                    rows: rows.collect(),
                    is_staged: false,
                    request: None,
                }
            })
            .collect();
        self.phase = Phase::Staging;
    }

    /// Begins the same batch again, as another attempt.
    fn begin_again(&mut self) {
        self.attempt += 1;
        for part in &mut self.parts {
            part.is_staged = false;
            part.request = None;
            for row in &mut part.rows {
                row.part = row.part.map(|(row, all, _)| (row, all, self.attempt));
            }
        }
        self.phase = Phase::Staging;
    }

    /// Whether it has nothing more to do.
    pub fn is_settled(&self) -> bool {
        self.is_last
            && self.phase == Phase::Staging
            && self
                .parts
                .iter()
                .all(|part| !part.is_staged && part.request.is_none())
    }

    /// The collector has stopped, and answers nothing that was asked before.
    pub fn on_collector_stopped(&mut self) {
        self.request = None;
        for part in &mut self.parts {
            part.request = None;
        }
    }

    /// Asks for the next thing.
    pub fn turn(&mut self, served: &mut Served, dice: &mut Dice) {
        if self.is_settled() {
            return;
        }
        match self.phase {
            Phase::Staging if dice.one_in(30) && !self.is_last => {
                self.phase = Phase::Aborting;
            }
            Phase::Staging => self.stage(served, dice),
            Phase::Publishing if self.request.is_none() => {
                let won = (0..self.parts.len()).map(|partition| Won {
                    attempt: self.attempt_of(partition),
                    parts: 1,
                });
                let request = Request::Publish {
                    query: self.query.clone(),
                    batch: self.batch,
                    won: won.collect(),
                };
                self.request = Some(self.ask(served, request));
            }
            Phase::Aborting if self.request.is_none() => {
                let request = Request::Abort {
                    query: self.query.clone(),
                    batch: self.batch,
                    attempts: Vec::new(),
                };
                self.request = Some(self.ask(served, request));
            }
            _ => {}
        }
    }

    fn stage(&mut self, served: &mut Served, dice: &mut Dice) {
        let missing: Vec<usize> = (0..self.parts.len())
            .filter(|at| !self.parts[*at].is_staged && self.parts[*at].request.is_none())
            .collect();
        if missing.is_empty() {
            if self.parts.iter().all(|part| part.is_staged) {
                self.phase = Phase::Publishing;
            }
            return;
        }
        let at = dice.pick(&missing);
        let values: Vec<Vec<u8>> = self.parts[at]
            .rows
            .iter()
            .map(|row| row.value(if dice.one_in(4) { 700 } else { 10 }))
            .collect();
        let request = Request::Stage {
            query: self.query.clone(),
            batch: self.batch,
            attempt: self.attempt_of(at),
            part: 0,
            rows: encoded(&batch_of(&values)),
        };
        self.parts[at].request = Some(self.ask(served, request));
    }

    fn attempt_of(&self, partition: usize) -> Attempt {
        Attempt {
            partition: partition as u32,
            attempt: self.attempt,
        }
    }

    fn route(&self) -> Bytes {
        self.query.clone().into()
    }

    fn ask(&mut self, served: &mut Served, request: Request) -> u64 {
        self.next_request += 1;
        served.handle(&self.route(), request.encode(self.next_request));
        self.next_request
    }

    /// Takes a reply, if it is for this sink.
    pub fn take_reply(
        &mut self,
        route: &Bytes,
        id: u64,
        reply: &Reply,
        served: &Served,
        model: &mut Model,
        dice: &mut Dice,
    ) -> Result<bool, Wrong> {
        if self.route() != *route {
            return Ok(false);
        }
        let part = self.parts.iter_mut().find(|part| part.request == Some(id));
        if let Some(part) = part {
            part.request = None;
            match reply {
                Reply::Staged => part.is_staged = true,
                Reply::Refused {
                    code: Code::Failed, ..
                } if dice.one_in(2) => {
                    // Parts that were staged before could not be told from those that were not.
                    self.phase = Phase::Aborting;
                }
                Reply::Refused { .. } => {}
                other => return Err(format!("{other:?} is no reply to a part")),
            }
            return Ok(true);
        }
        if self.request != Some(id) || matches!(reply, Reply::Publishing) {
            return Ok(true);
        }
        self.request = None;
        match (self.phase, reply) {
            (
                Phase::Publishing,
                Reply::Published {
                    first,
                    end,
                    already: _,
                },
            ) => {
                let rows = self.parts.iter().flat_map(|part| &part.rows);
                let count = rows.clone().count() as u64;
                if end - first != count {
                    return Err(format!("{} rows were published as {first} to {end}", count));
                }
                for (at, row) in rows.enumerate() {
                    model.claim(row.clone(), Some(first + at as u64), "published");
                }
                self.begin(dice);
            }
            (
                Phase::Publishing,
                Reply::Refused {
                    code: Code::NotStaged,
                    text,
                    ..
                },
            ) => {
                let mut attempts = (0..self.parts.len()).map(|at| self.attempt_of(at));
                let is_aside = |attempt| served.is_aside(&self.query, self.batch, attempt);
                if !text.contains("could not be used") || !attempts.any(is_aside) {
                    return Err(format!("parts that were staged are gone: {text}"));
                }
                self.begin_again();
            }
            (
                Phase::Publishing,
                Reply::Refused {
                    code: Code::Corrupt,
                    text,
                    ..
                },
            ) if !text.contains("os error 5") => {
                return Err(format!("parts that were staged are damaged: {text}"));
            }
            (Phase::Aborting, Reply::Aborted) => self.begin_again(),
            (_, Reply::Refused { .. }) => {}
            (phase, other) => return Err(format!("{other:?} is no reply in {phase:?}")),
        }
        Ok(true)
    }
}
