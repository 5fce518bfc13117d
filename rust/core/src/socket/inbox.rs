//! What happens to a socket's pipes: posted by whoever it happens to, worked off under the lock.
//!
//! Posting locks nothing. What must not wait for the application's next call is worked off by the poster itself if the
//! lock is free, and otherwise by its holder, after unlocking (`zeroxide_queue::exclusive`).

use std::any::Any;
use std::sync::PoisonError;

use zeroxide_queue::mpsc::Batch;

use super::core::{Core, State};
use super::post::Post;
use crate::monitor::{EventKind, MonitorEvent, Party};
use crate::patterns::{DropReason, PatternSpec};
use crate::pipe::{Limit, Pipe, PipeEvent, PipeId, PipeOwner};
use crate::port::{Origin, SocketPort};
use crate::sys::sync::atomic::{Ordering, fence};

/// From so many peers on that are gone and have left something to receive, nobody else is let in. Their messages are
/// limited for each of them only, and a peer can come back as often as it likes.
const UNREAD_MAX: usize = 1000;

impl Core {
    fn post(&self, post: Post, urgent: bool) {
        self.inner.post(post);
        // Pairs with the fence of whoever makes the descriptor.
        fence(Ordering::SeqCst);
        // A descriptor has to be at its true level, which only work on the mailbox can tell.
        if urgent || self.signal.has_descriptor() {
            self.inner.urge(self);
        }
        self.signal.wake();
    }

    /// Works the mailbox off.
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
                    // Came too late: the bind or connect was taken back meanwhile.
                    if self.is_closed() || !state.endpoints.has(origin.source) {
                        continue;
                    }
                    self.attach_now(state, *pipe, &endpoint, origin);
                }
                Post::Pipe(id, event) => on_event(self.spec, state, id, event),
            }
        }
        if count > 0 {
            self.settle(state);
            self.unread.store(state.unread.len(), Ordering::Relaxed);
        }
    }

    /// Takes a pipe in, under the lock.
    pub(super) fn attach_now(
        &self,
        state: &mut State,
        mut pipe: Pipe,
        endpoint: &str,
        origin: Origin,
    ) {
        // Whoever made it may have known older marks: they hold for all pipes, whenever they are set.
        pipe.set_limit_out(Limit::outbound(&state.options));
        pipe.set_limit_in(Limit::inbound(&state.options));
        let id = state.pipes.insert(pipe, endpoint, origin.side);
        state.origins.insert(id, origin);
        state.out_event = true;
        state.pattern.attach(&mut state.pipes, id);
        // From here on events arrive; what happened before is looked at now.
        if let Some(owner) = self.arc()
            && let Some(pipe) = state.pipes.get(id)
        {
            pipe.set_owner(owner, id);
        }
        if state.pipes.get(id).is_some_and(|pipe| pipe.meets_peer()) {
            state.pattern.ready(&mut state.pipes, id);
        }
        state.pattern.readable(&mut state.pipes, id);
        if state.pipes.get(id).is_some_and(|pipe| pipe.is_far_closed()) {
            on_event(self.spec, state, id, PipeEvent::Closed);
        }
    }

    /// Lets leaving pipes go and publishes what was written.
    #[inline]
    pub(super) fn settle(&self, state: &mut State) {
        while state.pipes.has_leaving() {
            self.release_leaving(state);
        }
        state.pipes.flush();
    }

    #[cold]
    fn release_leaving(&self, state: &mut State) {
        if let Some(id) = state.pipes.next_leaving() {
            self.detach_now(state, id);
        }
    }

    /// Takes a pipe out, under the lock; its drop closes it.
    pub(super) fn detach_now(&self, state: &mut State, id: PipeId) {
        if state.pipes.get(id).is_none() {
            return;
        }
        state.pipes.publish_gathered();
        state.pattern.detach(&mut state.pipes, id);
        let origin = state.origins.remove(&id);
        if state.unread.remove(&id) {
            self.unread.store(state.unread.len(), Ordering::Relaxed);
        }
        if let Some(removed) = state.pipes.remove(id) {
            state
                .totals
                .retire(&removed.pipe, origin.is_some_and(|origin| origin.local));
            if let Some(linger) = state.options.linger {
                removed.pipe.set_linger(Some(linger));
            }
            if let Some(reason) = removed.doomed {
                let event = MonitorEvent::new(EventKind::Disconnected, 0, &removed.endpoint);
                let party = Party::of(removed.pipe.peer());
                self.emit(event.because(reason).about(&party));
                removed.pipe.give_up();
            }
        }
    }
}

fn on_event(spec: &PatternSpec, state: &mut State, id: PipeId, event: PipeEvent) {
    let State {
        pattern,
        pipes,
        origins,
        unread,
        out_event,
        ..
    } = state;
    if pipes.get(id).is_none() {
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
            }
        }
        PipeEvent::Disconnected => {
            if let Some(pipe) = pipes.get(id) {
                pipe.parts_from_peer();
            }
            pattern.disconnected(pipes, id);
        }
        PipeEvent::Closed => {
            if pipes.get(id).is_some_and(|pipe| pipe.far_withdrew()) {
                pipes.discard(id, DropReason::Stale);
            }
            pattern.far_closed(pipes, id);
            // A type that cannot receive never reads on to the end of the pipe.
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
        // Only those who wait for it care, and they look for themselves.
        PipeEvent::Sent => {}
        // What was gathered was published before this was looked at.
        PipeEvent::Gathering | PipeEvent::Asked => {}
    }
}

impl PipeOwner for Core {
    fn on_pipe(&self, id: PipeId, event: PipeEvent) {
        let urgent = match event {
            PipeEvent::Readable => self.spec.eager,
            PipeEvent::Writable | PipeEvent::Sent | PipeEvent::Gathering => false,
            PipeEvent::Closed | PipeEvent::Ready | PipeEvent::Disconnected | PipeEvent::Asked => {
                true
            }
        };
        self.post(Post::Pipe(id, event), urgent);
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
    }

    fn count_drop(&self, reason: DropReason, count: u64) {
        let mut lost = self
            .lost_below
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        lost.add(reason, count);
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
