//! Whether the other end of a pipe is open, and how it closed.

use crate::sys::sync::atomic::{AtomicU8, Ordering};

/// The state of the other end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(super) enum Far {
    /// It is open.
    Open,
    /// It closed. The messages that it published can still be read.
    Closed,
    /// It closed, but only for the connection behind it. A connecting session makes another pipe.
    GaveUp,
    /// It closed, and the messages that it published must not be read any more.
    Withdrew,
}

/// How an end closes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Parting {
    /// It is dropped.
    #[default]
    Close,
    /// It gives up the connection behind the other end.
    GiveUp,
    /// It takes back everything that was not read.
    Withdraw,
}

impl Far {
    /// Returns the state after the other end has closed. An end closes once.
    fn next(self, parting: Parting) -> Far {
        match (self, parting) {
            (Far::Open, Parting::Close) => Far::Closed,
            (Far::Open, Parting::GiveUp) => Far::GaveUp,
            (Far::Open, Parting::Withdraw) => Far::Withdrew,
            (Far::Closed | Far::GaveUp | Far::Withdrew, _) => self,
        }
    }
}

/// A [`Far`] that the other end changes, or this one. It is stored once and in one value, so it never shows a mixture of two states.
pub(super) struct FarCell(AtomicU8);

impl FarCell {
    pub(super) fn new() -> FarCell {
        FarCell(AtomicU8::new(Far::Open as u8))
    }

    /// Acquire pairs with the Release of `part`: an end that finds the other one closed sees what it published before.
    #[inline]
    pub(super) fn get(&self) -> Far {
        let state = self.0.load(Ordering::Acquire);
        [Far::Open, Far::Closed, Far::GaveUp, Far::Withdrew]
            .into_iter()
            .find(|far| *far as u8 == state)
            .unwrap_or(Far::Closed)
    }

    /// Whether the other end has closed. Unlike [`get`](Self::get), this is cheap enough for each message.
    #[inline]
    pub(super) fn is_gone(&self) -> bool {
        self.0.load(Ordering::Acquire) != Far::Open as u8
    }

    /// Records how the other end closes, unless this one has already [taken it for closed](super::Pipe::half_close).
    pub(super) fn part(&self, parting: Parting) {
        let next = Far::Open.next(parting) as u8;
        // If it fails, the first end stays.
        let _ = self
            .0
            .compare_exchange(Far::Open as u8, next, Ordering::AcqRel, Ordering::Acquire);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drawing;

    drawing::events!(Parting {
        Close => "dropped",
        GiveUp => "gives up",
        Withdraw => "withdraws",
    });

    #[test]
    fn the_page_shows_the_states() {
        let name = |far: Far| format!("`{far:?}`");
        drawing::check(
            "pipe end",
            &[Far::Open],
            EVENTS,
            Far::next,
            name,
            event_name,
        );
    }

    #[test]
    fn a_cell_shows_how_the_end_closed() {
        for parting in EVENTS {
            let cell = FarCell::new();
            assert_eq!((cell.get(), cell.is_gone()), (Far::Open, false));
            cell.part(*parting);
            assert_eq!(
                (cell.get(), cell.is_gone()),
                (Far::Open.next(*parting), true)
            );
        }
    }
}
