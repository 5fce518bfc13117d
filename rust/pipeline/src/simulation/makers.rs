//! Producers: programs that push rows, on machines of their own, with connections that break.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::time::Instant;

use bytes::Bytes;
use zeroxide::Message;
use zeroxide_log::disk::simulated::{self, Dice, Stop};

use super::model::{Model, Name, Wrong, timed_batch_of};
use crate::collector::simulated::Served;
use crate::link::Change;
use crate::producer::Failure;
use crate::producer::simulated::{Sending, Wire};
use crate::wire::Reply;

/// The state of a row, as its producer knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fate {
    /// It may be lost.
    Open,
    /// It is in the spool, and survives the process.
    Spooled,
    /// It is in the spool, and survives a loss of power.
    Synced,
    /// It was acknowledged.
    Acknowledged,
}

/// A connection that was given up, with what may still arrive.
type Late = (Bytes, VecDeque<Message>);

/// A producer over all its runs.
pub(super) struct Maker {
    pub name: String,
    pub machine: String,
    /// Its spool.
    dir: Option<PathBuf>,
    is_synced: bool,
    /// Whether its disk fails now and then.
    pub has_faults: bool,
    sending: Option<Sending>,
    wire: Wire,
    route: Option<Bytes>,
    late: Vec<Late>,
    fates: Vec<Fate>,
    /// The numbers of the rows of this run.
    run: Vec<u64>,
    /// Rows that were pushed and may not be in the spool.
    pushed: Vec<u64>,
    /// The number of connections so far.
    connections: u64,
}

impl Maker {
    pub fn new(number: usize, dice: &mut Dice) -> Maker {
        let name = format!("p{number}");
        let machine = format!("m{number}");
        let dir = PathBuf::from(format!("/{machine}/spool/of/{name}"));
        Maker {
            dir: (!dice.one_in(4)).then_some(dir),
            is_synced: !dice.one_in(4),
            has_faults: dice.one_in(2),
            name,
            machine,
            sending: None,
            wire: Wire::default(),
            route: None,
            late: Vec::new(),
            fates: Vec::new(),
            run: Vec::new(),
            pushed: Vec::new(),
            connections: 0,
        }
    }

    pub fn is_running(&self) -> bool {
        self.sending.is_some()
    }

    pub fn is_connected(&self) -> bool {
        self.route.is_some()
    }

    /// Begins a run.
    pub fn start(&mut self, now: Instant, stop: Option<(u64, Stop)>) -> Result<(), Wrong> {
        simulated::enter(&self.machine);
        simulated::restart(&self.machine);
        if let Some((after, stop)) = stop {
            simulated::stop_after(&self.machine, after, stop);
        }
        self.wire = Wire::default();
        let dir = self.dir.as_deref();
        let opened = Sending::open(&self.name, dir, self.is_synced, self.wire.clone(), now);
        if simulated::stopped(&self.machine).is_some() {
            drop(opened);
            self.on_stopped();
            return Ok(());
        }
        let sending = match opened {
            Ok(sending) => sending,
            Err(failure) => {
                return match failure {
                    Failure::Spool(_) if self.has_faults => Ok(()),
                    other => Err(format!("{} cannot start: {other}", self.name)),
                };
            }
        };
        self.run.clear();
        for value in &sending.left {
            let name = value.as_deref().and_then(Name::parse);
            let Some(name) = name.filter(|name| name.of == self.name) else {
                return Err(format!("the spool of {} has damaged rows", self.name));
            };
            if self.run.last().is_some_and(|last| *last >= name.number) {
                return Err(format!(
                    "the spool has {name:?} after {:?}",
                    self.run.last()
                ));
            }
            self.run.push(name.number);
        }
        self.pushed.clear();
        simulated::trace(|| format!("{} starts with {:?}", self.name, self.run));
        self.sending = Some(sending);
        Ok(())
    }

    /// Pushes rows.
    pub fn push(&mut self, dice: &mut Dice) {
        let Some(sending) = &mut self.sending else {
            return;
        };
        let mut values = Vec::new();
        for _ in 0..=dice.below(4) {
            let number = self.fates.len() as u64;
            self.fates.push(Fate::Open);
            self.run.push(number);
            self.pushed.push(number);
            let length = if dice.one_in(6) { 700 } else { 10 };
            values.push(Name::row(&self.name, number).value(length));
        }
        simulated::trace(|| format!("{} pushes up to {:?}", self.name, self.run.last()));
        let time = dice.one_in(2).then(|| simulated::time().cast_signed());
        sending.push(&timed_batch_of(&values, time));
    }

    /// Gives the producer a turn.
    pub fn turn(&mut self, now: Instant, model: &mut Model) -> Result<(), Wrong> {
        let Some(sending) = &mut self.sending else {
            return Ok(());
        };
        simulated::enter(&self.machine);
        let is_kept = sending.keep(now);
        let notices = sending.converse(now);
        let failure = sending.failure();
        if simulated::stopped(&self.machine).is_some() {
            self.on_stopped();
            return Ok(());
        }
        if is_kept && self.dir.is_some() {
            let fate = match (self.is_synced, self.has_faults) {
                (true, _) => Fate::Synced,
                (false, false) => Fate::Spooled,
                // A failed sync may take rows from the page cache.
                (false, true) => Fate::Open,
            };
            for number in self.pushed.drain(..) {
                let known = &mut self.fates[number as usize];
                *known = fate.max(*known);
            }
        }
        for notice in notices {
            simulated::trace(|| format!("{} gets {notice:?}", self.name));
            if let Some(why) = notice.lost {
                return Err(format!("{} gives up rows: {why}", self.name));
            }
            for at in 0..notice.rows {
                let number = self.run[(notice.first_row + at) as usize];
                self.fates[number as usize] = Fate::Acknowledged;
                let offset = notice.offset.map(|offset| offset + at);
                model.claim(Name::row(&self.name, number), offset, "acknowledged");
            }
        }
        let is_reopened = std::mem::take(&mut self.wire.ends().is_reopened);
        if is_reopened {
            self.forget_connection(true);
        }
        match failure {
            None => Ok(()),
            Some(Failure::Spool(_)) if self.has_faults => {
                // The user closes the producer.
                self.close();
                Ok(())
            }
            Some(failure) => Err(format!("{} failed: {failure}", self.name)),
        }
    }

    /// Ends the run in an orderly way.
    pub fn close(&mut self) {
        if let Some(sending) = self.sending.take() {
            simulated::enter(&self.machine);
            sending.close();
            self.on_stopped();
        }
    }

    /// The machine has stopped, or the process has ended.
    pub fn on_stopped(&mut self) {
        simulated::enter(&self.machine);
        if simulated::stopped(&self.machine) == Some(Stop::Power) {
            for fate in &mut self.fates {
                if *fate == Fate::Spooled {
                    *fate = Fate::Open;
                }
            }
        }
        drop(self.sending.take());
        self.forget_connection(true);
    }

    // ---- the connection --------------------------------------------------------------------------------------------

    pub fn connect(&mut self) {
        if self.sending.is_some() && self.route.is_none() {
            self.connections += 1;
            self.route = Some(format!("{}/{}", self.name, self.connections).into());
            self.wire.ends().changes.push_back(Change::Up);
        }
    }

    /// The connection breaks. Requests that the producer has sent may still arrive.
    pub fn disconnect(&mut self, is_late: bool) {
        if self.route.is_some() {
            self.forget_connection(is_late);
            self.wire.ends().changes.push_back(Change::Down);
        }
    }

    fn forget_connection(&mut self, is_late: bool) {
        let mut ends = self.wire.ends();
        ends.to_producer.clear();
        let messages = std::mem::take(&mut ends.to_collector);
        if let Some(route) = self.route.take()
            && is_late
            && !messages.is_empty()
        {
            self.late.push((route, messages));
        }
    }

    /// The collector's machine has stopped, with everything that was in transit to it.
    pub fn on_collector_stopped(&mut self) {
        self.late.clear();
        self.disconnect(false);
    }

    /// Brings a message to the collector.
    pub fn deliver(&mut self, served: &mut Served, dice: &mut Dice) {
        if !self.late.is_empty() && dice.one_in(2) {
            let at = dice.below(self.late.len());
            let (route, messages) = &mut self.late[at];
            if let Some(message) = messages.pop_front() {
                served.handle(route, message);
            }
            // The rest is lost at any time.
            if messages.is_empty() || dice.one_in(4) {
                self.late.remove(at);
            }
            return;
        }
        if let Some(route) = &self.route {
            let message = self.wire.ends().to_collector.pop_front();
            if let Some(message) = message {
                served.handle(route, message);
            }
        }
    }

    /// Takes a reply, if it came over this connection.
    pub fn take_reply(&mut self, route: &Bytes, id: u64, reply: &Reply) -> bool {
        if self.route.as_ref() != Some(route) {
            return false;
        }
        let message = reply.clone().encode(id);
        self.wire.ends().to_producer.push_back(message);
        true
    }

    // ---- the end ---------------------------------------------------------------------------------------------------

    /// Whether all rows of this run are acknowledged.
    pub fn is_settled(&self) -> bool {
        self.sending
            .as_ref()
            .is_some_and(|sending| sending.waiting() == 0)
    }

    /// Every row that was kept is in the log.
    pub fn check(&self, model: &Model) -> Result<(), Wrong> {
        for (number, fate) in self.fates.iter().enumerate() {
            let name = Name::row(&self.name, number as u64);
            if *fate > Fate::Open && model.offset_of(&name).is_none() {
                return Err(format!("{name:?} was {fate:?}, and never arrived"));
            }
        }
        Ok(())
    }
}
