//! One run: who does what, in which order, and what fails.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use zeroxide_log::LogConfig;
use zeroxide_log::disk::simulated::{self, Dice, Faults, Stop};

use super::makers::Maker;
use super::model::{Model, Name, Wrong, batch_of};
use super::readers::Reader;
use super::sinks::Sink;
use crate::collector::Config;
use crate::collector::simulated::{Answer, Appending, Served, Work};

/// The machine of the collector.
const MACHINE: &str = "collector";

/// Microseconds of a day.
const DAY: u64 = 24 * 3600 * 1_000_000;

/// The number of rounds that all parts have to finish in.
const ROUNDS: usize = 4000;

/// Rows that a program in the process of the collector appends, and waits for.
struct Local {
    rows: Vec<Name>,
    appending: Appending,
}

/// Everything of a run.
pub(super) struct World {
    dice: Dice,
    config: Config,
    served: Option<Served>,
    makers: Vec<Maker>,
    sinks: Vec<Sink>,
    readers: Vec<Reader>,
    locals: Vec<Local>,
    next_local: u64,
    model: Model,
    begin: Instant,
    begin_time: u64,
    /// Which faults the collector's disk has at all.
    has_faults: bool,
    has_full: bool,
    has_trim: bool,
    /// The mean number of steps between stops.
    stops: usize,
    /// Whether all parts finish.
    is_ending: bool,
}

/// Runs a seed.
pub(super) fn run(seed: u64, is_traced: bool) -> Result<u64, Wrong> {
    simulated::begin(seed, is_traced);
    let mut world = World::new(seed);
    let steps = 100 + world.dice.below(400);
    for step in 0..steps {
        world
            .step()
            .map_err(|wrong| format!("step {step}: {wrong}"))?;
    }
    world.finish()?;
    Ok(simulated::digest().1)
}

impl World {
    fn new(seed: u64) -> World {
        let mut dice = Dice::new(seed, 2);
        let mut config = Config::new(PathBuf::from(format!("/{MACHINE}/log/of/rows")));
        config.log = LogConfig {
            segment_bytes: dice.pick(&[1500, 4000, 30_000]),
            ..LogConfig::default()
        };
        config.publish_beside = dice.pick(&[0, 1200, 1 << 20]);
        config.credit.rows = dice.pick(&[3, 20, 1000]);
        // The producers' clocks are right, and the collector waits for its own to be set.
        simulated::set_behind(MACHINE, dice.pick(&[0, 0, 0, 0, 0, 0, 0, 3 * DAY]));
        config.max_waiting = dice.pick(&[3, 1000, 1000, 1000]);
        let makers = (0..=dice.below(3)).map(|number| Maker::new(number, &mut dice));
        let makers = makers.collect();
        let sinks = (0..dice.below(3)).map(|number| Sink::new(number, &mut dice));
        let sinks = sinks.collect();
        World {
            config,
            served: None,
            makers,
            sinks,
            readers: (0..=dice.below(2)).map(Reader::new).collect(),
            locals: Vec::new(),
            next_local: 0,
            model: Model::default(),
            begin: Instant::now(),
            begin_time: simulated::time(),
            has_faults: dice.one_in(2),
            has_full: dice.one_in(4),
            has_trim: dice.one_in(3),
            stops: dice.pick(&[15, 40, 120, 100_000]),
            is_ending: false,
            dice,
        }
    }

    fn now(&self) -> Instant {
        self.begin + Duration::from_micros(simulated::time() - self.begin_time)
    }

    // ---- steps -----------------------------------------------------------------------------------------------------

    fn step(&mut self) -> Result<(), Wrong> {
        let pause = match self.dice.below(40) {
            0 => 3_000_000,
            1..4 => 100_000,
            _ => 1 + self.dice.below(3000),
        };
        simulated::pass(pause as u64);
        if self.dice.one_in(self.stops) {
            self.plan_stop();
        }
        if self.dice.one_in(25) {
            self.change_faults();
        }
        if self.dice.one_in(80) {
            simulated::set_behind(MACHINE, 0);
        }
        if self.served.is_none() && self.dice.one_in(4) {
            self.start_collector()?;
        }
        match self.dice.below(16) {
            0..6 => self.step_maker()?,
            6..8 => self.step_sink()?,
            8 => self.step_reader()?,
            9 => self.step_local()?,
            10..15 => {
                let work = self.dice.pick(&Work::ALL);
                self.work(work)?;
            }
            _ => match self.dice.below(12) {
                0 => self.close_collector()?,
                1 if self.has_trim => self.trim()?,
                _ => self.work(Work::Sync)?,
            },
        }
        Ok(())
    }

    /// A machine stops now or a little later.
    fn plan_stop(&mut self) {
        let which = self.dice.below(self.makers.len() + 2);
        let stop = self.dice.pick(&[Stop::Kill, Stop::Power, Stop::Power]);
        let after = match self.dice.one_in(4) {
            true => 0,
            false => self.dice.below(30) as u64,
        };
        let machine = match which.checked_sub(2) {
            None => MACHINE.to_owned(),
            Some(at) => self.makers[at].machine.clone(),
        };
        simulated::trace(|| format!("{machine} stops after {after}: {stop:?}"));
        simulated::stop_after(&machine, after, stop);
    }

    fn change_faults(&mut self) {
        let which = self.dice.below(self.makers.len() + 2);
        let mut faults = Faults {
            one_in: self.dice.pick(&[0, 0, 4, 20, 100]),
            is_full: false,
        };
        match which.checked_sub(2) {
            None => {
                if !self.has_faults {
                    faults.one_in = 0;
                }
                faults.is_full = self.has_full && self.dice.one_in(3);
                simulated::set_faults(MACHINE, faults);
                simulated::trace(|| format!("{MACHINE}: {faults:?}"));
            }
            Some(at) => {
                let maker = &self.makers[at];
                if !maker.has_faults {
                    faults.one_in = 0;
                }
                faults.is_full = maker.has_faults && self.dice.one_in(6);
                simulated::set_faults(&maker.machine, faults);
                simulated::trace(|| format!("{}: {faults:?}", maker.machine));
            }
        }
    }

    fn step_maker(&mut self) -> Result<(), Wrong> {
        let now = self.now();
        let at = self.dice.below(self.makers.len());
        let maker = &mut self.makers[at];
        if !maker.is_running() {
            if self.dice.one_in(3) {
                let stop = self.early_stop();
                self.makers[at].start(now, stop)?;
            }
            return Ok(());
        }
        if !maker.is_connected() {
            if self.served.is_some() {
                maker.connect();
            }
        } else if self.dice.one_in(40) {
            maker.disconnect(self.dice.one_in(2));
        } else if self.dice.one_in(60) {
            maker.close();
            return Ok(());
        }
        let maker = &mut self.makers[at];
        match self.dice.below(4) {
            0 => maker.push(&mut self.dice),
            1 => {
                if let Some(served) = &mut self.served {
                    simulated::enter(MACHINE);
                    maker.deliver(served, &mut self.dice);
                    return self.after_collector();
                }
            }
            _ => {}
        }
        self.makers[at].turn(now, &mut self.model)
    }

    fn step_sink(&mut self) -> Result<(), Wrong> {
        let Some(served) = &mut self.served else {
            return Ok(());
        };
        if !self.sinks.is_empty() {
            simulated::enter(MACHINE);
            let at = self.dice.below(self.sinks.len());
            self.sinks[at].turn(served, &mut self.dice);
        }
        self.after_collector()
    }

    fn step_reader(&mut self) -> Result<(), Wrong> {
        let Some(served) = &mut self.served else {
            return Ok(());
        };
        simulated::enter(MACHINE);
        let at = self.dice.below(self.readers.len());
        self.readers[at].turn(served, &mut self.dice);
        self.after_collector()
    }

    fn step_local(&mut self) -> Result<(), Wrong> {
        let Some(served) = &mut self.served else {
            return Ok(());
        };
        if self.dice.one_in(3) {
            simulated::enter(MACHINE);
            let count = self.dice.below(3) as u64 + 1;
            let numbers = self.next_local..self.next_local + count;
            self.next_local = numbers.end;
            let rows: Vec<Name> = numbers.map(|number| Name::row("local", number)).collect();
            let values: Vec<_> = rows.iter().map(|row| row.value(10)).collect();
            let appending = served.append(vec![batch_of(&values)]);
            self.locals.push(Local { rows, appending });
        }
        self.after_collector()
    }

    fn work(&mut self, work: Work) -> Result<(), Wrong> {
        let Some(served) = &mut self.served else {
            return Ok(());
        };
        simulated::trace(|| format!("collector: {work:?}"));
        simulated::enter(MACHINE);
        served.work(work);
        if work == Work::Retry && simulated::stopped(MACHINE).is_none() {
            self.model.verify(served)?;
        }
        self.after_collector()
    }

    fn trim(&mut self) -> Result<(), Wrong> {
        // Not beyond what readers have.
        let before = self.readers.iter().map(Reader::position).min();
        let before = before.unwrap_or(0);
        simulated::trace(|| format!("trim below {before}"));
        if let Some(served) = &mut self.served {
            simulated::enter(MACHINE);
            self.model.trim(before);
            served.trim(before);
        }
        self.after_collector()
    }

    /// A stop while a process starts.
    fn early_stop(&mut self) -> Option<(u64, Stop)> {
        let is_stopping = !self.is_ending && self.stops < 1000 && self.dice.one_in(4);
        let stop = self.dice.pick(&[Stop::Kill, Stop::Power]);
        is_stopping.then(|| (self.dice.below(20) as u64, stop))
    }

    // ---- the collector ---------------------------------------------------------------------------------------------

    fn start_collector(&mut self) -> Result<(), Wrong> {
        simulated::enter(MACHINE);
        simulated::restart(MACHINE);
        if let Some((after, stop)) = self.early_stop() {
            simulated::stop_after(MACHINE, after, stop);
        }
        simulated::trace(|| "the collector starts".to_owned());
        let opened = Served::open(self.config.clone());
        if simulated::stopped(MACHINE).is_some() {
            return Ok(());
        }
        let mut served = match opened {
            Ok(served) => served,
            Err(_) if self.has_faults || self.has_full => return Ok(()),
            Err(error) => return Err(format!("the collector cannot start: {error}")),
        };
        if let Some(damage) = served.damage() {
            return Err(format!("the log is damaged: {damage}"));
        }
        for reader in &self.readers {
            reader.check(&mut served)?;
        }
        self.model.verify(&served)?;
        self.served = Some(served);
        Ok(())
    }

    fn close_collector(&mut self) -> Result<(), Wrong> {
        let Some(served) = self.served.take() else {
            return Ok(());
        };
        simulated::trace(|| "the collector closes".to_owned());
        simulated::enter(MACHINE);
        served.close();
        self.on_collector_stopped();
        Ok(())
    }

    /// Takes what the collector has said, and sees whether its machine has stopped.
    fn after_collector(&mut self) -> Result<(), Wrong> {
        let Some(served) = &mut self.served else {
            return Ok(());
        };
        for (route, id, reply) in served.replies() {
            simulated::trace(|| format!("  to {route:?}: {id} {reply:?}"));
            self.take_reply(&route, id, &reply)?;
        }
        let Some(served) = &mut self.served else {
            return Ok(());
        };
        let is_alive = simulated::stopped(MACHINE).is_none();
        let mut answered = Vec::new();
        self.locals.retain(|local| match local.appending.poll() {
            Answer::Appended(range) => {
                answered.push((local.rows.clone(), range));
                false
            }
            Answer::Unknown => false,
            Answer::Waiting => true,
        });
        if is_alive {
            for (rows, range) in answered {
                for (row, offset) in rows.into_iter().zip(range) {
                    self.model.claim(row, Some(offset), "appended");
                }
            }
            return self.model.observe(served);
        }
        simulated::trace(|| "the collector has stopped".to_owned());
        drop(self.served.take());
        self.on_collector_stopped();
        Ok(())
    }

    fn take_reply(
        &mut self,
        route: &bytes::Bytes,
        id: u64,
        reply: &crate::wire::Reply,
    ) -> Result<(), Wrong> {
        let Some(served) = &self.served else {
            return Ok(());
        };
        for sink in &mut self.sinks {
            if sink.take_reply(route, id, reply, served, &mut self.model, &mut self.dice)? {
                return Ok(());
            }
        }
        for reader in &mut self.readers {
            if reader.take_reply(route, id, reply, &mut self.model)? {
                return Ok(());
            }
        }
        let mut makers = self.makers.iter_mut();
        makers.any(|maker| maker.take_reply(route, id, reply));
        Ok(())
    }

    fn on_collector_stopped(&mut self) {
        self.locals.clear();
        for maker in &mut self.makers {
            maker.on_collector_stopped();
        }
        for sink in &mut self.sinks {
            sink.on_collector_stopped();
        }
        for reader in &mut self.readers {
            reader.on_collector_stopped();
        }
    }

    // ---- the end ---------------------------------------------------------------------------------------------------

    /// Lets all parts finish without faults, and checks what must hold then.
    fn finish(&mut self) -> Result<(), Wrong> {
        simulated::trace(|| "no more faults".to_owned());
        self.has_faults = false;
        self.has_full = false;
        self.is_ending = true;
        self.calm(MACHINE.to_owned());
        simulated::set_behind(MACHINE, 0);
        for at in 0..self.makers.len() {
            self.calm(self.makers[at].machine.clone());
            self.makers[at].has_faults |= self.makers[at].is_running();
        }
        for sink in &mut self.sinks {
            sink.is_last = true;
        }
        for round in 0..ROUNDS {
            simulated::pass(20_000);
            if self.served.is_none() {
                self.start_collector()?;
            }
            for work in Work::ALL {
                self.work(work)?;
            }
            for at in 0..self.makers.len() {
                let now = self.now();
                let maker = &mut self.makers[at];
                if !maker.is_running() {
                    maker.start(now, None)?;
                    maker.has_faults = false;
                }
                maker.connect();
                maker.turn(now, &mut self.model)?;
                if let Some(served) = &mut self.served {
                    simulated::enter(MACHINE);
                    self.makers[at].deliver(served, &mut self.dice);
                }
                self.after_collector()?;
            }
            for _ in 0..self.sinks.len() {
                self.step_sink()?;
            }
            self.step_reader()?;
            if round > 3 && self.is_settled() {
                return self.check_all();
            }
        }
        Err(format!(
            "nothing moves any more: makers {:?}, sinks {:?}, readers {:?} of {}, {:?}",
            self.makers
                .iter()
                .map(Maker::is_settled)
                .collect::<Vec<_>>(),
            self.sinks.iter().map(Sink::is_settled).collect::<Vec<_>>(),
            self.readers
                .iter()
                .map(Reader::position)
                .collect::<Vec<_>>(),
            self.model.end(),
            self.served.as_ref().and_then(Served::obstacle),
        ))
    }

    fn calm(&mut self, machine: String) {
        simulated::set_faults(&machine, Faults::default());
        simulated::stop_after(&machine, u64::MAX, Stop::Kill);
    }

    fn is_settled(&self) -> bool {
        let end = self.model.end();
        self.makers.iter().all(Maker::is_settled)
            && self.sinks.iter().all(Sink::is_settled)
            && self.readers.iter().all(|reader| reader.position() == end)
            && self.locals.is_empty()
    }

    fn check_all(&mut self) -> Result<(), Wrong> {
        for maker in &self.makers {
            maker.check(&self.model)?;
        }
        // The files that are there now survive the next loss of power.
        simulated::stop(MACHINE, Stop::Power);
        drop(self.served.take());
        self.on_collector_stopped();
        self.start_collector()?;
        for maker in &self.makers {
            maker.check(&self.model)?;
        }
        Ok(())
    }
}
