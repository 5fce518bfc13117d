//! Messages for many that follow each other closely are encoded once for all, and handed over as one.
//!
//! What a message for a hundred subscribers costs is a hundred times writing it to a pipe, and reading it there. When
//! those who read are behind anyway, messages need not lie in their pipes one by one: they are gathered until one of them has
//! time, which they ask for ([`Pipe::ask`](crate::pipe::Pipe::ask)). The more there is to do, the longer the runs.

use zeroxide_proto::frame::Frame;
use zeroxide_proto::message::Message;
use zeroxide_proto::run::Run;

use super::{DropReason, PipeSet};
use crate::pipe::PipeId;

/// From so many receivers on.
pub(super) const AUDIENCE_MIN: usize = 4;
/// Longer messages are shared as they are: copying them is not worth it.
const MESSAGE_MAX: usize = 8 * 1024;
/// Longer runs are not made: it is time to begin with them.
const RUN_MAX: usize = 64 * 1024;
/// Where one of the pipes has no room for a run, or takes none, so many further messages go without another look.
const PAUSE: u8 = 15;

/// Messages that go to the same pipes.
#[derive(Default)]
pub(super) struct Gathering {
    audience: Vec<PipeId>,
    run: Run,
    /// How many more each of the pipes has room for.
    room: u64,
    /// It has grown in this call of the application's.
    grown: bool,
    /// Somebody was told to ask for it.
    announced: bool,
}

impl PipeSet {
    /// Gathers a message for all of `audience`, if they are behind and all have room. False: it is to be written as any other.
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
                self.pause = if fits { PAUSE } else { 0 };
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

    /// How many messages each of them has room for; none unless most of them are awake and will look.
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

    /// A call of the application's ends: what has grown in it may stay, if somebody will ask for it.
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

    /// Has somebody ask for what is being gathered. False when nobody is left.
    fn announce(&mut self, gathering: &Gathering) -> bool {
        gathering.announced
            || gathering.audience.iter().any(|id| {
                let pipe = self.get(*id).filter(|pipe| !pipe.is_far_closed());
                pipe.inspect(|pipe| pipe.announce_gathering()).is_some()
            })
    }

    /// Publishes what is being gathered.
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
                Some(entry) => entry
                    .counters
                    .add(DropReason::PeerGone, u64::from(messages)),
                None => self.counters.add(DropReason::PeerGone, u64::from(messages)),
            }
        }
        gathering.reuse(audience);
        self.flush_dirty();
        // One message alone: they keep up.
        self.behind = messages > 1;
    }
}

impl Gathering {
    /// Whether this is short enough.
    fn is_for(message: &Message) -> bool {
        message.size() <= MESSAGE_MAX
    }

    #[inline]
    fn is_empty(&self) -> bool {
        self.run.is_empty()
    }

    /// Whether those and nobody else get what is in it.
    fn is_to(&self, audience: &[PipeId]) -> bool {
        self.audience == audience
    }

    /// Begins with a message for pipes that have room for so many.
    fn begin(&mut self, audience: &[PipeId], room: u64) {
        self.audience.clear();
        self.audience.extend_from_slice(audience);
        self.room = room;
        self.announced = false;
    }

    /// Adds a message. True when there is no room for more.
    fn push(&mut self, message: &Message) -> bool {
        self.run.push(message);
        self.grown = true;
        self.room -= 1;
        self.room == 0 || self.run.len() >= RUN_MAX
    }

    /// The run, and whom it goes to, to be given back to [`reuse`](Self::reuse).
    fn take(&mut self) -> (Frame, Vec<PipeId>) {
        (self.run.take(), std::mem::take(&mut self.audience))
    }

    /// Its memory serves the next one.
    fn reuse(&mut self, audience: Vec<PipeId>) {
        self.audience = audience;
    }
}
