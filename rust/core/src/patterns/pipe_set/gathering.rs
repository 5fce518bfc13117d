//! Encodes consecutive messages for many receivers once, and passes them on as one run.
//!
//! A message to a hundred subscribers costs a hundred writes to pipes, and as many reads. When the readers are behind,
//! messages need not be written to their pipes one by one. They are gathered until a reader has time and asks for them
//! ([`Pipe::ask`](crate::pipe::Pipe::ask)). The higher the load, the longer the runs.

use zeroxide_proto::frame::Frame;
use zeroxide_proto::message::Message;
use zeroxide_proto::run::Run;

use super::PipeSet;
use crate::pace::{AUDIENCE_MIN, GATHERED_MAX, GATHERED_RUN_MAX, GATHERING_PAUSE};
use crate::patterns::drops::DropReason;
use crate::pipe::PipeId;

/// Messages for the same pipes.
#[derive(Default)]
pub(super) struct Gathering {
    audience: Vec<PipeId>,
    run: Run,
    /// The number of further messages for which all pipes have room.
    room: u64,
    /// Whether it has grown during this call of the application.
    grown: bool,
    /// Whether a reader was notified to ask for it.
    announced: bool,
}

impl PipeSet {
    /// Gathers a message for all of `audience` if they are behind and all have room. Returns false if the message must
    /// be written in the ordinary way.
    #[inline]
    pub(in crate::patterns) fn gather(&mut self, audience: &[PipeId], message: &Message) -> bool {
        let gathers = self.gathering.as_ref().is_some_and(|some| !some.is_empty());
        if !gathers && self.pause > 0 {
            self.pause -= 1;
            return false;
        }
        (self.behind || gathers) && self.try_gather(audience, message)
    }

    fn try_gather(&mut self, audience: &[PipeId], message: &Message) -> bool {
        let fits = Gathering::is_for(message);
        let gathering = self.gathering.as_ref().filter(|some| !some.is_empty());
        if !gathering.is_some_and(|some| fits && some.is_to(audience)) {
            self.publish_gathered();
            let room = if fits { self.room_for_run(audience) } else { 0 };
            if room == 0 {
                self.pause = if fits { GATHERING_PAUSE } else { 0 };
                return false;
            }
            self.gathering.get_or_insert_default().begin(audience, room);
        }
        if self
            .gathering
            .as_mut()
            .is_some_and(|some| some.push(message))
        {
            self.publish_gathered();
        }
        true
    }

    /// The number of messages for which all pipes have room; 0 unless most readers are awake and will look.
    fn room_for_run(&mut self, audience: &[PipeId]) -> u64 {
        if audience.len() < AUDIENCE_MIN {
            return 0;
        }
        let (mut room, mut asleep) = (u64::MAX, 0);
        for id in audience {
            let Some(pipe) = self.get(*id) else { return 0 };
            room = room.min(pipe.room_for_run());
            if room == 0 {
                return 0;
            }
            asleep += usize::from(pipe.is_far_asleep());
        }
        if asleep * 2 < audience.len() { room } else { 0 }
    }

    /// Ends a call of the application: a run that has grown in it may stay if a reader will ask for it.
    #[inline(never)]
    pub(super) fn tend_gathering(&mut self) {
        let Some(mut gathering) = self.gathering.take() else {
            return;
        };
        if std::mem::take(&mut gathering.grown) && self.announce(&gathering) {
            gathering.announced = true;
        } else {
            self.publish(&mut gathering);
        }
        self.gathering = Some(gathering);
    }

    /// Notifies a reader to ask for the run. Returns false if no reader is left.
    fn announce(&mut self, gathering: &Gathering) -> bool {
        gathering.announced
            || gathering.audience.iter().any(|id| {
                let pipe = self.get(*id).filter(|pipe| !pipe.is_far_closed());
                pipe.inspect(|pipe| pipe.announce_gathering()).is_some()
            })
    }

    /// Publishes the gathered messages.
    #[inline]
    pub fn publish_gathered(&mut self) {
        if let Some(mut gathering) = self.gathering.take() {
            self.publish(&mut gathering);
            self.gathering = Some(gathering);
        }
    }

    fn publish(&mut self, gathering: &mut Gathering) {
        if gathering.is_empty() {
            return;
        }
        let (run, audience) = gathering.take();
        gathering.grown = false;
        let messages = run.load().messages;
        for id in &audience {
            match self.entry(*id) {
                Some(entry) if !entry.pipe.is_far_closed() => {
                    entry.pipe.write_run(run.clone());
                    if !entry.dirty {
                        entry.dirty = true;
                        self.dirty.push(*id);
                    }
                }
                Some(entry) => entry.count_drops(DropReason::PeerGone, u64::from(messages)),
                None => self.counters.add(DropReason::PeerGone, u64::from(messages)),
            }
        }
        gathering.reuse(audience);
        self.flush_dirty();
        // After a single message, the readers keep up.
        self.behind = messages > 1;
    }
}

impl Gathering {
    /// Whether the message is short enough.
    fn is_for(message: &Message) -> bool {
        message.size() <= GATHERED_MAX
    }

    #[inline]
    fn is_empty(&self) -> bool {
        self.run.is_empty()
    }

    /// Whether the run is for exactly these pipes.
    fn is_to(&self, audience: &[PipeId]) -> bool {
        self.audience == audience
    }

    /// Begins a run for pipes that have room for `room` messages.
    fn begin(&mut self, audience: &[PipeId], room: u64) {
        self.audience.clear();
        self.audience.extend_from_slice(audience);
        self.room = room;
        self.announced = false;
    }

    /// Adds a message. Returns true if there is no room for more.
    fn push(&mut self, message: &Message) -> bool {
        self.run.push(message);
        self.grown = true;
        self.room -= 1;
        self.room == 0 || self.run.len() >= GATHERED_RUN_MAX
    }

    /// Takes the run and its pipes; the list goes back to [`reuse`](Self::reuse).
    fn take(&mut self) -> (Frame, Vec<PipeId>) {
        (self.run.take(), std::mem::take(&mut self.audience))
    }

    /// Keeps the memory of the list for the next run.
    fn reuse(&mut self, audience: Vec<PipeId>) {
        self.audience = audience;
    }
}
