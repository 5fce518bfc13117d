//! Returns messages from disk to memory, when peers have come or made room.

use std::ops::ControlFlow;

use crate::error::ErrorKind;
use crate::patterns::Pattern;
use crate::patterns::drops::DropReason;
use crate::patterns::pipe_set::{Overflow, PipeSet};
use crate::pipe::{Pipe, PipeId};
use crate::spill::{BLOCK, size_of};

/// What [`drain`] has done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Drained {
    /// Messages were returned to memory, or a queue was found empty: a sender may have room.
    pub(crate) some: bool,
    pub(crate) next: Next,
}

/// When to drain again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Next {
    /// When a peer has room.
    Event,
    /// At once, after others had the lock.
    Now,
    /// Later, because the disk has failed.
    Later,
}

/// Returns messages from disk to the pipes that have room, up to about [`BLOCK`] bytes.
pub(crate) fn drain(pattern: &mut dyn Pattern, pipes: &mut PipeSet) -> Drained {
    let mut drained = Drained {
        some: false,
        next: Next::Event,
    };
    let Some(overflow) = pipes.overflow() else {
        return drained;
    };
    let peers = overflow.peers();
    if overflow.waits_for_any() {
        drain_for_any(pattern, pipes, &mut drained);
    } else if !peers.is_empty() {
        pipes.publish_gathered();
        drain_for_peers(pattern, pipes, peers, &mut drained);
    }
    drained
}

fn drain_for_any(pattern: &mut dyn Pattern, pipes: &mut PipeSet, drained: &mut Drained) {
    set_draining(pipes, true);
    release(pattern, pipes, takes_from_disk);
    let mut budget = BLOCK as u64;
    let is_empty = loop {
        if !pattern.can_send(pipes) {
            break false;
        }
        if budget == 0 {
            drained.next = Next::Now;
            break false;
        }
        let mut message = match pipes.take_spilled(None) {
            Ok(Some(message)) => message,
            Ok(None) => break true,
            Err(_) => {
                drained.next = Next::Later;
                break false;
            }
        };
        budget = budget.saturating_sub(size_of(&message));
        match pattern.send(pipes, &mut message) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::Again => {
                // The peer with room has left since.
                pipes.put_back(&message);
                break false;
            }
            // The pattern has accepted it before.
            Err(_) => pipes.count_drop(None, DropReason::Disk),
        }
        drained.some = true;
    };
    match is_empty {
        // Nothing waits on disk, so that all may take new messages.
        true => release(pattern, pipes, |_, _| true),
        false => pipes.hold_all(),
    }
    drained.some |= is_empty;
    set_draining(pipes, false);
}

/// Whether the peer may have messages from disk. Kept ones are safer there while the peer is away: those in memory are lost
/// when the process ends.
fn takes_from_disk(pipes: &mut PipeSet, id: PipeId) -> bool {
    let is_kept = pipes.overflow().is_some_and(Overflow::is_kept);
    let is_there = |pipe: &mut Pipe| !is_kept || (pipe.is_connected() && !pipe.peer_hung_up());
    !pipes.is_gone(id) && pipes.get(id).is_some_and(is_there)
}

/// Lets some pipes take messages.
fn release(
    pattern: &mut dyn Pattern,
    pipes: &mut PipeSet,
    which: impl Fn(&mut PipeSet, PipeId) -> bool,
) {
    for id in pipes.ids() {
        if which(pipes, id)
            && let Some(pipe) = pipes.get(id)
        {
            pipe.unblock();
            pattern.writable(pipes, id);
        }
    }
}

fn set_draining(pipes: &mut PipeSet, draining: bool) {
    if let Some(overflow) = pipes.overflow_mut() {
        overflow.set_draining(draining);
    }
}

fn drain_for_peers(
    pattern: &mut dyn Pattern,
    pipes: &mut PipeSet,
    ids: Vec<PipeId>,
    drained: &mut Drained,
) {
    // Each peer gets its part, so that one with large messages does not keep the others waiting.
    let share = (BLOCK / ids.len()).max(1) as u64;
    for id in ids {
        match drain_for(pipes, id, share, drained) {
            ControlFlow::Continue(()) => {
                if let Some(overflow) = pipes.overflow_mut() {
                    overflow.rest(id);
                }
            }
            ControlFlow::Break(()) => {
                drained.some = true;
                if let Some(overflow) = pipes.overflow_mut() {
                    overflow.forget(id);
                }
                pattern.writable(pipes, id);
            }
        }
    }
}

/// Breaks if nothing is left on disk for the peer.
fn drain_for(
    pipes: &mut PipeSet,
    id: PipeId,
    share: u64,
    drained: &mut Drained,
) -> ControlFlow<()> {
    if !takes_from_disk(pipes, id) {
        return ControlFlow::Continue(());
    }
    let Some(pipe) = pipes.get(id) else {
        return ControlFlow::Continue(());
    };
    pipe.unblock();
    let mut budget = share;
    while pipes.check_write(id) {
        if budget == 0 {
            drained.next = Next::Now;
            break;
        }
        match pipes.take_spilled(Some(id)) {
            Ok(Some(mut message)) => {
                budget = budget.saturating_sub(size_of(&message));
                drained.some = true;
                pipes.write_checked(id, &mut message);
            }
            Ok(None) => return ControlFlow::Break(()),
            Err(_) => {
                drained.next = Next::Later;
                break;
            }
        }
    }
    if let Some(pipe) = pipes.get(id) {
        pipe.block();
    }
    ControlFlow::Continue(())
}

#[cfg(test)]
mod tests;
