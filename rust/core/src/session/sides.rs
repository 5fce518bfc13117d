//! The states of a connection: the progress of its peer, and the two directions of the stream.
//!
//! These are three separate values, because none follows from the others: a write may fail during the handshake, and a
//! peer that has finished may still read. A hang-up that the kernel has reported is a separate fact too. The engine and
//! the driver have their own states.

/// The progress of the peer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Phase {
    /// The handshake has not succeeded. If the connection ends, the handshake has failed.
    Handshake,
    /// The handshake has succeeded, and the pipe has received nothing from this connection.
    Ready,
    /// The pipe has received frames from this connection.
    Heard,
}

/// An event that changes [`Phase`]. A connection stays in its phase when it is lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum PhaseEvent {
    /// The handshake succeeds.
    Succeed,
    /// A frame of the peer goes into the pipe.
    Hear,
}

impl Phase {
    #[inline]
    pub(super) fn next(self, event: PhaseEvent) -> Phase {
        match (self, event) {
            (Phase::Handshake, PhaseEvent::Succeed) => Phase::Ready,
            // This runs for each frame, so it has no branch. The engine returns no frame before its handshake.
            (_, PhaseEvent::Hear) => Phase::Heard,
            (Phase::Ready | Phase::Heard, PhaseEvent::Succeed) => self,
        }
    }
}

/// Whether there is anything to read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Inlet {
    /// Nothing, until an event reports bytes.
    Empty,
    /// Perhaps bytes: an event has reported some, or the last read filled its buffer.
    Bytes,
    /// Nothing more. The peer has finished, and everything that it sent was read.
    Finished,
    /// Nothing more. Reading has failed, or the connection was given up.
    Cut,
}

/// An event that changes [`Inlet`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum InletEvent {
    /// There may be bytes.
    Arrive,
    /// All bytes were read.
    Drain,
    /// A read has found the end of the stream.
    Finish,
    /// A read has failed, or nothing more is wanted.
    Cut,
}

impl Inlet {
    #[inline]
    pub(super) fn next(self, event: InletEvent) -> Inlet {
        match (self, event) {
            (Inlet::Empty | Inlet::Bytes, InletEvent::Arrive) => Inlet::Bytes,
            (Inlet::Empty | Inlet::Bytes, InletEvent::Drain) => Inlet::Empty,
            (Inlet::Empty | Inlet::Bytes, InletEvent::Finish) => Inlet::Finished,
            (Inlet::Empty | Inlet::Bytes, InletEvent::Cut) => Inlet::Cut,
            (Inlet::Finished | Inlet::Cut, _) => self,
        }
    }
}

/// Whether a write may find room.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Outlet {
    /// Yes, as far as is known.
    Room,
    /// Not before an event reports room.
    Full,
    /// Never again. The connection is over when everything was read.
    Broken,
}

/// An event that changes [`Outlet`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum OutletEvent {
    /// An event reports room.
    Free,
    /// A write has found no room.
    Fill,
    /// A write has failed.
    Break,
}

impl Outlet {
    #[inline]
    pub(super) fn next(self, event: OutletEvent) -> Outlet {
        match (self, event) {
            (Outlet::Broken, _) | (_, OutletEvent::Break) => Outlet::Broken,
            (Outlet::Room | Outlet::Full, OutletEvent::Free) => Outlet::Room,
            (Outlet::Room | Outlet::Full, OutletEvent::Fill) => Outlet::Full,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Debug;

    fn name(state: impl Debug) -> String {
        format!("`{state:?}`")
    }

    mod phase {
        use super::super::{Phase, PhaseEvent};
        use super::name;
        use crate::drawing;

        drawing::events!(PhaseEvent {
            Succeed => "the handshake succeeds",
            Hear => "a frame goes into the pipe",
        });

        #[test]
        fn the_page_shows_how_far_a_peer_comes() {
            let starts = [Phase::Handshake];
            drawing::check("peer", &starts, EVENTS, Phase::next, name, event_name);
        }
    }

    mod inlet {
        use super::super::{Inlet, InletEvent};
        use super::name;
        use crate::drawing;

        drawing::events!(InletEvent {
            Arrive => "bytes may have arrived",
            Drain => "all were read",
            Finish => "end of the stream",
            Cut => "reading fails, or is given up",
        });

        #[test]
        fn the_page_shows_what_there_is_to_read() {
            let starts = [Inlet::Bytes, Inlet::Empty];
            drawing::check("inlet", &starts, EVENTS, Inlet::next, name, event_name);
        }
    }

    mod outlet {
        use super::super::{Outlet, OutletEvent};
        use super::name;
        use crate::drawing;

        drawing::events!(OutletEvent {
            Free => "an event reports room",
            Fill => "a write finds no room",
            Break => "a write fails",
        });

        #[test]
        fn the_page_shows_whether_a_write_finds_room() {
            let starts = [Outlet::Room];
            drawing::check("outlet", &starts, EVENTS, Outlet::next, name, event_name);
        }
    }
}
