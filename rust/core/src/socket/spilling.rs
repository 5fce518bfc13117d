//! The thread that returns the messages of one socket from disk to memory, and the folder's opening and closing.
//!
//! The thread exists while the socket has a SPILL_DIR. It sleeps until a peer has come or has made room, takes the
//! socket's lock, and reads up to [`BLOCK`](crate::spill::BLOCK) bytes. I/O threads only wake it, so a slow disk delays no
//! other socket.

use std::path::Path;
use std::time::{Duration, Instant};

use super::close::set_linger;
use super::core::{Core, State};
use super::spiller::{Closing, Spiller};
use crate::error::{Error, ErrorKind, Result};
use crate::options::{Options, Value, ids};
use crate::patterns::{self, DropReason, Next, Overflow, Pattern, PatternSpec, PipeSet};
use crate::pipe::PipeId;
use crate::spill::Folder;
use crate::sys::clock;
use crate::sys::sync::{Arc, Weak};
use crate::sys::thread::{self, ThreadSettings};
use crate::undelivered::UndeliveredPeer;

/// The time after which a disk that has failed is read again.
const RETRY: Duration = Duration::from_secs(1);

impl Core {
    /// Opens SPILL_DIR for a bind or connect to `endpoint`, unless it is open.
    pub(super) fn open_spill(&self, endpoint: &str) -> Result<()> {
        let mut state = self.lock_open()?;
        if state.options.spill_dir.is_empty() || self.spiller.get().is_some() {
            return Ok(());
        }
        let (dir, keep) = (state.options.spill_dir.clone(), state.options.spill_keep);
        let (limit, style) = (state.options.spill_bytes, self.spec().spills);
        let opened = Folder::open(Path::new(&dir), &owner(self.spec()), keep);
        let (folder, contents) = opened.map_err(|error| error.about(endpoint))?;
        for _ in 0..contents.cut {
            state.pipes.count_drop(None, DropReason::Disk);
        }
        let opened = Overflow::new(folder, contents, style, limit);
        let overflow = opened.map_err(|error| error.about(endpoint))?;
        let spiller = Arc::new(Spiller::default());
        let (core, shared) = (self.weak(), spiller.clone());
        let settings = ThreadSettings {
            name: "zeroxide/spill".to_owned(),
            ..ThreadSettings::default()
        };
        thread::spawn(settings, move || run(&core, &shared)).map_err(|error| {
            let why = format!(
                "no thread for the messages on disk can be started ({error}): raise the limit of threads (RLIMIT_NPROC, pids.max), or free memory"
            );
            Error::with(ErrorKind::NoThread, why).about(endpoint)
        })?;
        state.pipes.set_overflow(overflow);
        for id in state.pipes.ids() {
            let State { pattern, pipes, .. } = &mut *state;
            adopt(&**pattern, pipes, id);
        }
        // It is set only here, under the lock.
        let _ = self.spiller.set(spiller);
        self.ring_spiller();
        Ok(())
    }

    /// Checks that an option may have this value.
    ///
    /// # Errors
    /// `Invalid` for the folder of a socket that has one, and for a folder together with CONFLATE: the newest message
    /// replaces the one before, so none could wait on disk.
    pub(super) fn check_spill_option(
        &self,
        options: &Options,
        id: i32,
        value: &Value,
    ) -> Result<()> {
        let is_fixed = matches!(id, ids::SPILL_DIR | ids::SPILL_KEEP);
        if is_fixed && self.spiller.get().is_some() {
            let text = "SPILL_DIR and SPILL_KEEP cannot change after the bind or connect that has opened the folder";
            return Err(Error::with(ErrorKind::Invalid, text));
        }
        let has_both = match (id, value) {
            (ids::CONFLATE, Value::Int(on)) => *on != 0 && !options.spill_dir.is_empty(),
            (ids::SPILL_DIR, Value::Bytes(dir)) => options.conflate && !dir.is_empty(),
            _ => false,
        };
        if has_both && self.spec().conflates {
            let text = "CONFLATE keeps only the newest message, and SPILL_DIR keeps all of them in order: leave one of them out";
            return Err(Error::with(ErrorKind::Invalid, text));
        }
        Ok(())
    }

    /// Wakes the thread of a socket with a SPILL_DIR.
    #[inline]
    pub(super) fn ring_spiller(&self) {
        if let Some(spiller) = self.spiller.get() {
            spiller.ring();
        }
    }

    /// Leaves the closing of the socket to the thread if there are messages on disk to deliver. Returns false if there are
    /// none, or the socket has been closed.
    pub(super) fn closes_later(&self, linger: Option<Option<Duration>>, begins: bool) -> bool {
        let Some(spiller) = self.spiller.get() else {
            return false;
        };
        if !begins {
            let is_closing = spiller.is_closing();
            return match linger {
                Some(linger) if is_closing && linger != Some(Duration::ZERO) => {
                    spiller.close(Closing::after(linger));
                    true
                }
                Some(_) => false,
                None => is_closing,
            };
        }
        let state = self.lock();
        let linger = state.options.linger;
        let fleeting = state.pipes.overflow().map_or(0, Overflow::fleeting);
        drop(state);
        if fleeting == 0 || linger == Some(Duration::ZERO) {
            return false;
        }
        self.begin_leaving();
        spiller.close(Closing::after(linger));
        true
    }

    /// Closes the socket after its messages have left the disk, or when its time is up. LINGER began with the call of close.
    fn complete_close_by(&self, closing: Closing) {
        let Closing::At(at) = closing else {
            return self.complete_close();
        };
        set_linger(
            &mut self.lock(),
            Some(at.saturating_duration_since(clock::now())),
        );
        self.complete_close();
        self.end_deliveries_by(at);
    }

    /// Gives up the folder of a socket that closes, and reports what stays in it or is lost.
    pub(super) fn end_spill(&self, state: &mut State) {
        let Some(overflow) = state.pipes.take_overflow() else {
            return;
        };
        for report in reports(state, &overflow) {
            self.note_given_up(&report);
        }
        overflow.close();
        if let Some(spiller) = self.spiller.get() {
            spiller.end();
        }
    }

    /// The messages on disk, by peer.
    pub(super) fn left_on_disk(&self) -> Vec<UndeliveredPeer> {
        if self.spiller.get().is_none() || !self.spec.lingers {
            return Vec::new();
        }
        let mut state = self.lock();
        let Some(overflow) = state.pipes.take_overflow() else {
            return Vec::new();
        };
        let reports = reports(&mut state, &overflow);
        state.pipes.set_overflow(*overflow);
        reports
    }

    /// The messages on disk that are lost if this peer leaves now.
    pub(super) fn lost_on_disk(&self, state: &mut State, id: PipeId) -> Option<UndeliveredPeer> {
        let (messages, bytes) = state.pipes.overflow()?.fleeting_for(id);
        let (pipe, endpoint) = state.pipes.get_named(id).filter(|_| messages > 0)?;
        let peer = pipe.peer();
        Some(UndeliveredPeer::new(
            endpoint,
            peer.as_deref(),
            messages,
            bytes,
        ))
    }

    /// Gives up and reports the messages on disk for a peer whose endpoint the program leaves.
    pub(super) fn give_up_disk(&self, state: &mut State, id: PipeId) {
        if let Some(left) = self.lost_on_disk(state, id) {
            self.note_given_up(&left);
            state.pipes.give_up_overflow(id, DropReason::Lingered);
        }
    }

    /// Returns messages to memory while peers have room. Returns when to try again if the disk has failed.
    fn drain_spilled(&self) -> Option<Instant> {
        loop {
            let mut state = self.lock();
            self.process(&mut state);
            let State { pattern, pipes, .. } = &mut *state;
            let drained = patterns::drain(&mut **pattern, pipes);
            state.out_event |= drained.some;
            self.settle(&mut state);
            self.level(&mut state);
            drop(state);
            if drained.some {
                // Senders may have waited for room on disk.
                self.signal.wake();
            }
            match drained.next {
                Next::Now => {}
                Next::Event => return None,
                Next::Later => return clock::now().checked_add(RETRY),
            }
        }
    }
}

/// Whose messages are in a folder: those of another type or wire protocol are not the same.
fn owner(spec: &PatternSpec) -> String {
    let (name, wire) = (spec.socket_type.name(), spec.socket_type.wire());
    match wire {
        0 => name.to_owned(),
        wire => format!("{name} with WIRE_PROTOCOL {wire}"),
    }
}

fn reports(state: &mut State, overflow: &Overflow) -> Vec<UndeliveredPeer> {
    let path = overflow.path().display().to_string();
    let left = overflow.left().into_iter();
    left.map(|left| {
        let mut report = UndeliveredPeer {
            endpoint: path.clone(),
            messages: left.messages,
            bytes: left.bytes,
            ..UndeliveredPeer::default()
        };
        if let Some((pipe, endpoint)) = left.id.and_then(|id| state.pipes.get_named(id)) {
            report.endpoint = endpoint.to_owned();
            let peer = pipe.peer();
            report.routing_id = peer.map(|peer| peer.routing_id.clone()).unwrap_or_default();
        }
        report
    })
    .collect()
}

/// Lets a pipe whose peer has come wait its turn behind the messages on disk, and gives it those that were kept for it.
pub(super) fn adopt(pattern: &dyn Pattern, pipes: &mut PipeSet, id: PipeId) {
    if !pipes.has_overflow() {
        return;
    }
    let name = pattern.own_name(id);
    pipes.adopt(id, name.as_deref());
}

fn run(core: &Weak<Core>, spiller: &Spiller) {
    let mut retry = None;
    loop {
        let work = spiller.wait(retry);
        if work.is_over {
            return;
        }
        // A socket whose last handle is gone has been closed.
        let Some(core) = core.upgrade() else { return };
        retry = core.drain_spilled();
        if let Some(closing) = work.closing {
            let state = core.lock();
            let fleeting = state.pipes.overflow().map_or(0, Overflow::fleeting);
            drop(state);
            if fleeting == 0 || closing.has_passed() {
                core.complete_close_by(closing);
            }
        }
    }
}
