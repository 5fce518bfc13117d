//! Lends a resource to one thread at a time, which may pause its loan and resume it without a lock.
//!
//! The owner of the resource has a lock, and lends the resource under it. A borrower that has finished for now, and expects
//! to be back soon, *pauses*: the resource is then unused, and the next thread that wants it gets it: a borrower by
//! [`Lending::resume`], or the owner by [`Event::Recall`]. Only `resume` works without the owner's lock, which makes the
//! next short wait of a thread cheap.
//!
//! If the borrower did not come back, the resource would stay unused. The owner therefore looks at the loan from time to
//! time ([`Event::Look`]), and ends a loan that was paused during the whole time since the last look.
//!
//! # Why two threads never have it
//!
//! The whole state is one atomic word. While the resource is at home, only the owner changes the word, under its lock, to
//! lend the resource. All other changes are compare-and-exchange operations, to the state that [`State::next`] gives for
//! the state that was found. So the events happen one after the other, and each of them meets the state that the one
//! before has left. A number in the word counts the loans, so that a borrower whose loan has ended unnoticed is not
//! mistaken for the next one.
//!
//! The word orders nothing else. Data of the resource are read and written under the owner's lock.

use crate::primitive::{AtomicU64, Ordering};

/// A resource as its owner sees it. See the module text.
#[derive(Debug)]
pub struct Lending(AtomicU64);

/// The right to use the resource until the loan ends. It may have ended without the borrower noticing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use = "a loan that is dropped keeps the resource from others"]
pub struct Loan {
    number: u32,
    tag: u32,
}

/// The user of the resource.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// The owner.
    Home,
    /// A borrower. `used`: a borrower came or paused since the owner last looked.
    Held {
        /// See above.
        used: bool,
    },
    /// None, until a borrower resumes or the owner takes it back.
    Paused {
        /// See `Held`.
        used: bool,
    },
}

/// The events of a loan.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// The owner lends it.
    Lend,
    /// The borrower pauses.
    Pause,
    /// A borrower resumes.
    Resume,
    /// The borrower returns it.
    Return,
    /// The owner takes it back unless a borrower has it now.
    Recall,
    /// The owner takes it back.
    Revoke,
    /// The owner checks whether it is still used.
    Look,
}

/// The lowest two bits are the user.
const HELD: u64 = 1;
const PAUSED: u64 = 2;
const USED: u64 = 4;
/// Above them are the number of the loan, and its tag.
const NUMBER_SHIFT: u32 = 3;
const NUMBER_MASK: u64 = (1 << 29) - 1;
const TAG_SHIFT: u32 = 32;

impl State {
    /// The state after `event`.
    #[must_use]
    pub fn next(self, event: Event) -> State {
        use State::{Held, Home, Paused};
        match (event, self) {
            (Event::Lend, Home) => Held { used: true },
            (Event::Pause, Held { .. }) => Paused { used: true },
            (Event::Resume, Paused { .. }) => Held { used: true },
            (Event::Return, Held { .. }) | (Event::Recall, Paused { .. }) => Home,
            (Event::Revoke, _) => Home,
            (Event::Look, Held { .. }) => Held { used: false },
            (Event::Look, Paused { used: true }) => Paused { used: false },
            (Event::Look, Paused { used: false }) => Home,
            // An event that comes too late, or too early, changes nothing.
            (
                Event::Lend
                | Event::Pause
                | Event::Resume
                | Event::Return
                | Event::Recall
                | Event::Look,
                _,
            ) => self,
        }
    }

    fn encode(self) -> u64 {
        match self {
            State::Home => 0,
            State::Held { used } => HELD | if used { USED } else { 0 },
            State::Paused { used } => PAUSED | if used { USED } else { 0 },
        }
    }

    fn decode(word: u64) -> State {
        let used = word & USED != 0;
        match word & (HELD | PAUSED) {
            0 => State::Home,
            HELD => State::Held { used },
            _ => State::Paused { used },
        }
    }
}

impl Loan {
    /// The number that the owner has given with the loan.
    pub fn tag(self) -> u32 {
        self.tag
    }

    fn of(word: u64) -> Loan {
        let number = (word >> NUMBER_SHIFT) & NUMBER_MASK;
        Loan {
            number: u32::try_from(number).unwrap_or_default(),
            tag: u32::try_from(word >> TAG_SHIFT).unwrap_or_default(),
        }
    }
}

impl Default for Lending {
    fn default() -> Lending {
        Lending::new()
    }
}

impl Lending {
    /// A resource that its owner has.
    pub fn new() -> Lending {
        Lending(AtomicU64::new(State::Home.encode()))
    }

    /// The state, which may have changed by the time the caller looks at it.
    #[inline]
    pub fn state(&self) -> State {
        State::decode(self.0.load(Ordering::Relaxed))
    }

    /// Under the owner's lock: lends it, with a tag for those who resume. `None` if it is lent already.
    pub fn lend(&self, tag: u32) -> Option<Loan> {
        let word = self.0.load(Ordering::Relaxed);
        if State::decode(word) != State::Home {
            return None;
        }
        let number = ((word >> NUMBER_SHIFT) + 1) & NUMBER_MASK;
        let lent = State::Home.next(Event::Lend).encode()
            | (number << NUMBER_SHIFT)
            | (u64::from(tag) << TAG_SHIFT);
        // Only the owner changes it while it is at home.
        self.0.store(lent, Ordering::Relaxed);
        Some(Loan::of(lent))
    }

    /// Resumes a paused loan, without the owner's lock. `None` if there is none, or another thread was faster.
    #[inline]
    pub fn resume(&self) -> Option<Loan> {
        let before = self.0.load(Ordering::Relaxed);
        if before & PAUSED == 0 {
            return None;
        }
        let held =
            (before & !(HELD | PAUSED | USED)) | State::decode(before).next(Event::Resume).encode();
        let result = self
            .0
            .compare_exchange(before, held, Ordering::Relaxed, Ordering::Relaxed);
        result.is_ok().then(|| Loan::of(held))
    }

    /// Whether the loan still stands. Only under the owner's lock does it stay so.
    #[inline]
    pub fn is_held(&self, loan: Loan) -> bool {
        let word = self.0.load(Ordering::Relaxed);
        word & HELD != 0 && Loan::of(word) == loan
    }

    /// Applies an event, under the owner's lock. Returns the states before and after it.
    pub fn change(&self, event: Event) -> (State, State) {
        let mut word = self.0.load(Ordering::Relaxed);
        loop {
            let before = State::decode(word);
            let after = before.next(event);
            let next = (word & !(HELD | PAUSED | USED)) | after.encode();
            let result =
                self.0
                    .compare_exchange_weak(word, next, Ordering::Relaxed, Ordering::Relaxed);
            match result {
                Ok(_) => return (before, after),
                // A borrower has just resumed.
                Err(found) => word = found,
            }
        }
    }
}
