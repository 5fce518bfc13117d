//! Events of a socket's pipes. Any thread posts them, and they are processed under the lock.
//!
//! Posting takes no lock. Events that must not wait for the application's next call are processed by the poster itself
//! if the lock is free, and otherwise by its holder after unlocking (`zeroxide_queue::exclusive`).

use std::any::Any;
use std::sync::PoisonError;

use zeroxide_queue::mpsc::Batch;

use super::core::{Core, State};
use super::post::Post;
use super::spilling::adopt;
use crate::monitor::{EventKind, MonitorEvent, Party};
use crate::patterns::{DoomReason, DropReason, PatternSpec, Priority};
use crate::pipe::{Limit, Pipe, PipeEvent, PipeId, PipeOwner};
use crate::port::{Origin, SocketPort};
use crate::sys::sync::atomic::{Ordering, fence};
use crate::undelivered::UndeliveredPeer;

/// Maximum number of peers that are gone with messages left to receive. At this number, no further peer is accepted,
/// because the limits on messages apply to each peer alone, and a peer can return any number of times.
const UNREAD_MAX: usize = 1000;

impl Core {
    pub(super) fn post(&self, post: Post, urgent: bool) {
        self.inner.post(post);
        // Pairs with the fence of the thread that creates the descriptor.
        fence(Ordering::SeqCst);
        // A descriptor must be at its true level, which is only known after the mailbox has been processed.
        if urgent || self.signal.has_descriptor() {
            self.inner.urge(self);
        }
        self.signal.wake();
    }

    /// Processes the mailbox.
    pub(super) fn process(&self, state: &mut State) {
        let posts = self.inner.take(state);
        self.work_off(state, posts);
    }

    pub(super) fn work_off(&self, state: &mut State, posts: Batch<Post>) {
        state.pipes.publish_gathered();
        let count = posts.len();
        for post in posts {
            match post {
                Post::Attach {
                    pipe,
                    endpoint,
                    origin,
                } => {
                    // The pipe came too late: its bind or connect was ended meanwhile.
                    let is_wanted = !self.is_closed() || self.delivers_from_disk(state);
                    if !is_wanted || !state.endpoints.has(origin.source) {
                        continue;
                    }
                    self.attach_now(state, *pipe, &endpoint, origin);
                }
                Post::Pipe(id, event) => on_event(self.spec, state, id, event),
                Post::Alarm => self.handle_alarm(state),
            }
        }
        if count > 0 {
            self.settle(state);
            if self.spec().prompt && self.spec().timed && !self.is_closed() {
                // The pattern may have stopped before the last message.
                self.set_alarm(state);
            }
            self.unread.store(state.unread.len(), Ordering::Relaxed);
        }
    }

    /// Adds a pipe, under the lock.
    pub(super) fn attach_now(
        &self,
        state: &mut State,
        mut pipe: Pipe,
        endpoint: &str,
        origin: Origin,
    ) {
        // The thread that made the pipe may have used old high-water marks. The current ones apply to all pipes.
        pipe.set_limit_out(Limit::outbound(&state.options));
        pipe.set_limit_in(Limit::inbound(&state.options));
        let id = state.pipes.insert(pipe, endpoint, origin.side);
        if origin.local {
            state.pipes.note_local(id);
        }
        state.origins.insert(id, origin);
        state.out_event = true;
        let priority = state.endpoints.priority(origin.source);
        if priority != Priority::default() {
            state.pattern.set_priority(id, priority);
        }
        state.pattern.attach(&mut state.pipes, id);
        // Events arrive from here on. Earlier changes are checked now.
        if let Some(owner) = self.arc()
            && let Some(pipe) = state.pipes.get(id)
        {
            pipe.set_owner(owner, id);
        }
        if state.pipes.get(id).is_some_and(|pipe| pipe.meets_peer()) {
            state.pattern.ready(&mut state.pipes, id);
        }
        state.pattern.readable(&mut state.pipes, id);
        adopt(&*state.pattern, &mut state.pipes, id);
        self.ring_spiller();
        if state.pipes.get(id).is_some_and(|pipe| pipe.peer_hung_up()) {
            on_event(self.spec, state, id, PipeEvent::HungUp);
        }
        if state.pipes.get(id).is_some_and(|pipe| pipe.is_far_closed()) {
            on_event(self.spec, state, id, PipeEvent::Closed);
        }
    }

    /// Whether a socket that is being closed still has messages on disk for peers that come.
    fn delivers_from_disk(&self, state: &State) -> bool {
        self.is_leaving()
            && state
                .pipes
                .overflow()
                .is_some_and(|some| some.fleeting() > 0)
    }

    /// Releases the pipes that are leaving, and publishes the messages that were written.
    #[inline]
    pub(super) fn settle(&self, state: &mut State) {
        while state.pipes.has_leaving() {
            self.release_leaving(state);
        }
        state.pipes.flush();
        if state.pipes.has_spent() {
            self.end_effort(state);
        }
    }

    #[cold]
    fn end_effort(&self, state: &mut State) {
        let is_behind = state.pipes.is_spent();
        state.pipes.restore_effort();
        if is_behind {
            self.look_soon(state);
        }
    }

    #[cold]
    fn release_leaving(&self, state: &mut State) {
        if let Some(id) = state.pipes.next_leaving() {
            self.detach_now(state, id);
        }
    }

    /// Ends the connection of a pipe, under the lock. The pipe stays until the messages that have arrived are received, as
    /// that of a peer that has left.
    pub(super) fn part_now(&self, state: &mut State, id: PipeId) {
        state.pipes.publish_gathered();
        let Some(pipe) = state.pipes.get(id) else {
            return;
        };
        if !pipe.is_far_closed() {
            pipe.half_close();
            on_closed(self.spec, state, id);
            self.unread.store(state.unread.len(), Ordering::Relaxed);
            // Another peer may have its name now, and messages on disk.
            self.ring_spiller();
            self.note_parted(state);
        }
    }

    /// Removes a pipe, under the lock. Dropping the pipe closes it.
    pub(super) fn detach_now(&self, state: &mut State, id: PipeId) {
        if state.pipes.get(id).is_none() {
            return;
        }
        state.pipes.publish_gathered();
        if self.check_open().is_err() {
            self.note_left(state, id);
            if let Some(left) = self.lost_on_disk(state, id) {
                self.note_given_up(&left);
            }
        }
        state.pattern.detach(&mut state.pipes, id);
        // Another peer may have its name now, and messages on disk.
        self.ring_spiller();
        let origin = state.origins.remove(&id);
        if state.unread.remove(&id) {
            self.unread.store(state.unread.len(), Ordering::Relaxed);
        }
        if let Some(removed) = state.pipes.remove(id) {
            let local = origin.is_some_and(|origin| origin.local);
            let reason = match removed.doomed {
                Some(DoomReason::TooSlow) => DropReason::TooSlow,
                _ => DropReason::PeerGone,
            };
            state.totals.retire(&removed.pipe, local, reason);
            if !self.is_closed() && !self.spec.eager && removed.pipe.end_reading() {
                // The far end has written more since it was read for the last time, and has closed before it could know.
                let unread = removed.pipe.queued_in();
                state.totals.dropped.add(DropReason::Refused, unread);
            }
            if let Some(linger) = state.options.linger {
                removed.pipe.set_linger(Some(linger));
            }
            if let Some(reason) = removed.doomed {
                let event = MonitorEvent::new(EventKind::Disconnected, 0, &removed.endpoint);
                let party = Party::of(removed.pipe.peer());
                self.emit(event.because(reason).about(&party));
                if reason.loses_queue() {
                    removed.pipe.withdraw();
                } else if reason != DoomReason::Requested || !state.options.is_raw() {
                    removed.pipe.give_up();
                }
                // A raw connection that the application has closed ends permanently, even if this socket had connected.
            }
            self.note_parted(state);
        }
    }

    /// Wakes the calls that may go on, or must fail, because a peer is gone that this socket parted with itself.
    fn note_parted(&self, state: &mut State) {
        state.out_event = true;
        self.signal.wake();
    }
}

fn on_event(spec: &PatternSpec, state: &mut State, id: PipeId, event: PipeEvent) {
    let State {
        pattern,
        pipes,
        out_event,
        ..
    } = state;
    let Some(pipe) = pipes.get(id) else { return };
    if pipe.is_half_closed() {
        // For the pattern, the peer is gone. Messages that it sent before may still come in.
        if matches!(event, PipeEvent::Readable | PipeEvent::Closed) {
            pattern.readable(pipes, id);
        }
        if event == PipeEvent::Closed {
            pipes.check_read(id);
        }
        return;
    }
    match event {
        PipeEvent::Readable => pattern.readable(pipes, id),
        PipeEvent::Writable => {
            *out_event = true;
            pattern.writable(pipes, id);
        }
        PipeEvent::Ready => {
            *out_event = true;
            if pipes.get(id).is_some_and(|pipe| pipe.meets_peer()) {
                pattern.ready(pipes, id);
                adopt(&**pattern, pipes, id);
            }
        }
        PipeEvent::Disconnected => {
            if let Some(pipe) = pipes.get(id) {
                pipe.parts_from_peer();
            }
            pattern.disconnected(pipes, id);
        }
        PipeEvent::HungUp => pattern.hung_up(pipes, id),
        PipeEvent::Closed => on_closed(spec, state, id),
        // Only threads that wait in a flush need this event, and they check for themselves.
        PipeEvent::Sent => {}
        // Gathered messages were published before this event was processed.
        PipeEvent::Gathering | PipeEvent::Asked => {}
    }
}

/// The far end of a pipe has closed, or counts as closed.
fn on_closed(spec: &PatternSpec, state: &mut State, id: PipeId) {
    let State {
        pattern,
        pipes,
        origins,
        unread,
        ..
    } = state;
    if pipes.get(id).is_some_and(|pipe| pipe.far_withdrew()) {
        pattern.withdrawn(pipes, id);
    }
    pattern.far_closed(pipes, id);
    // A socket type that cannot receive never reads to the end of the pipe.
    if !spec.can_recv && !spec.eager {
        pipes.discard(id, DropReason::Malformed);
        pipes.check_read(id);
    } else {
        pattern.readable(pipes, id);
        pipes.check_read(id);
    }
    let local = origins.get(&id).is_none_or(|origin| origin.local);
    if !local && pipes.get(id).is_some_and(|pipe| !pipe.is_finished()) {
        unread.insert(id);
    }
}

impl PipeOwner for Core {
    fn on_pipe(&self, id: PipeId, event: PipeEvent) {
        let urgent = match event {
            PipeEvent::Readable => self.spec.eager || self.spec().prompt,
            PipeEvent::Writable | PipeEvent::Sent | PipeEvent::Gathering => false,
            PipeEvent::Closed
            | PipeEvent::Ready
            | PipeEvent::Disconnected
            | PipeEvent::HungUp
            | PipeEvent::Asked => true,
        };
        self.post(Post::Pipe(id, event), urgent);
        // A peer has room, has come or is gone, and another one may have its name.
        if matches!(
            event,
            PipeEvent::Writable | PipeEvent::Ready | PipeEvent::HungUp | PipeEvent::Closed
        ) {
            self.ring_spiller();
        }
    }
}

impl SocketPort for Core {
    fn attach(&self, pipe: Pipe, endpoint: &str, origin: Origin) {
        self.post(
            Post::Attach {
                pipe: Box::new(pipe),
                endpoint: endpoint.into(),
                origin,
            },
            true,
        );
        self.ring_spiller();
    }

    fn count_drop(&self, reason: DropReason, count: u64) {
        let mut lost = self
            .lost_below
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        lost.add(reason, count);
    }

    fn give_up(&self, reason: DropReason, left: UndeliveredPeer) {
        self.count_drop(reason, left.messages);
        self.note_given_up(&left);
        // The program has limited the time itself.
        if reason != DropReason::Lingered {
            self.note_lost(&left);
        }
    }

    fn begin_delivery(&self) {
        self.deliveries.fetch_add(1, Ordering::SeqCst);
    }

    fn end_delivery(&self) {
        self.deliveries.fetch_sub(1, Ordering::SeqCst);
        if self.is_closed() {
            self.signal.wake();
        }
    }

    fn note_lingering(&self, before: u64, now: u64) {
        self.lingering
            .fetch_add(now.wrapping_sub(before), Ordering::Relaxed);
    }

    fn note_setback(&self, source: u64, why: Option<String>) {
        self.setbacks().note(source, why);
    }

    fn is_backlogged(&self) -> bool {
        self.unread.load(Ordering::Relaxed) >= UNREAD_MAX
    }

    fn wants(&self, kind: EventKind) -> bool {
        self.monitor_mask.load(Ordering::Acquire) & kind as u32 != 0
    }

    fn emit(&self, event: MonitorEvent) {
        if self.wants(event.kind) {
            self.send_event(&event);
        }
    }

    fn hold_context(&self) -> Box<dyn Any + Send + Sync> {
        Box::new(self.registry.enter())
    }
}
