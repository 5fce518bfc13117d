//! Readers: programs that fetch all rows once, and commit the positions of their groups.

use bytes::Bytes;
use zeroxide_log::Stored;
use zeroxide_log::disk::simulated::Dice;

use super::model::{Model, Wrong, named};
use crate::collector::simulated::Served;
use crate::wire::{Code, Reply, Request};

/// A reader over the whole run: its position outlives collectors.
pub(super) struct Reader {
    group: String,
    position: u64,
    /// The generation of the row before its position.
    generation: u64,
    /// The greatest position that it has asked to commit.
    committed: u64,
    request: Option<u64>,
    next_request: u64,
}

impl Reader {
    pub fn new(number: usize) -> Reader {
        Reader {
            group: format!("g{number}"),
            position: 0,
            generation: 0,
            committed: 0,
            request: None,
            next_request: 0,
        }
    }

    pub fn position(&self) -> u64 {
        self.position
    }

    /// The collector has stopped, and answers nothing that was asked before.
    pub fn on_collector_stopped(&mut self) {
        self.request = None;
    }

    /// The position that a collector knows after its start is one that was committed.
    pub fn check(&self, served: &mut Served) -> Result<(), Wrong> {
        match served.position(&self.group) {
            Some(position) if position > self.committed => Err(format!(
                "group {} is at {position}, but was committed at {} at most",
                self.group, self.committed
            )),
            _ => Ok(()),
        }
    }

    /// Asks for rows, or commits.
    pub fn turn(&mut self, served: &mut Served, dice: &mut Dice) {
        if self.request.is_some() {
            return;
        }
        self.next_request += 1;
        let request = match dice.one_in(5) {
            true => {
                self.committed = self.committed.max(self.position);
                Request::Commit {
                    group: self.group.clone(),
                    offset: self.position,
                    generation: self.generation,
                }
            }
            false => Request::Fetch {
                start: self.position,
                end: u64::MAX,
                max_bytes: dice.pick(&[600, 2000, 20_000]),
                topics: Vec::new(),
                generation: self.generation,
            },
        };
        self.request = Some(self.next_request);
        served.handle(&self.route(), request.encode(self.next_request));
    }

    fn route(&self) -> Bytes {
        self.group.clone().into()
    }

    /// Takes a reply, if it is for this reader.
    pub fn take_reply(
        &mut self,
        route: &Bytes,
        id: u64,
        reply: &Reply,
        model: &mut Model,
    ) -> Result<bool, Wrong> {
        if self.route() != *route {
            return Ok(false);
        }
        if self.request != Some(id) {
            return Ok(true);
        }
        self.request = None;
        match reply {
            Reply::Fetched {
                next,
                generation,
                frames,
                ..
            } => {
                for frame in frames {
                    let stored = Stored::parse(frame.clone()).map_err(|error| error.to_string())?;
                    let rows = named(&stored)?.into_iter();
                    let start = self.position;
                    for (offset, row) in rows.filter(|(offset, _)| *offset >= start) {
                        if offset != self.position {
                            return Err(format!(
                                "a reader got {row:?} at {offset} instead of {}",
                                self.position
                            ));
                        }
                        model.read(offset, row);
                        self.position += 1;
                    }
                }
                if self.position != *next {
                    return Err(format!(
                        "a reader got rows up to {}, and should go on at {next}",
                        self.position
                    ));
                }
                self.generation = *generation;
                Ok(true)
            }
            Reply::OutOfRange {
                asked,
                earliest,
                others: None,
                ..
            } if asked < earliest => {
                self.position = *earliest;
                self.generation = 0;
                Ok(true)
            }
            Reply::Committed => Ok(true),
            // The disk failed.
            Reply::Refused {
                code: Code::Failed | Code::Full | Code::ReadOnly,
                ..
            } => Ok(true),
            other => Err(format!("a reader at {} got {other:?}", self.position)),
        }
    }
}
