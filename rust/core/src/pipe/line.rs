//! The connection behind a pipe, as far as the thread may drive it that waits for what comes in.

use std::os::fd::RawFd;
use std::sync::Arc;
use std::time::Instant;

use zeroxide_queue::loan;

use super::{Pipe, PipeEvent};

/// See the module text. From [`take_over`](Self::take_over) until the loan ends, nobody else is told of bytes that
/// arrive: the thread that took over waits for the descriptor and looks.
pub(crate) trait Line: Send + Sync {
    /// What to wait for, unless there is more to do for the connection than to read.
    fn take_over(&self) -> Option<Loan>;
    /// Moves what has arrived into the pipe. The caller may have seen that the peer has hung up. If messages came in,
    /// the loan ends, or is paused if the wait that began at `since` was short: the next one is then expected soon.
    fn look(&self, loan: Loan, hung_up: bool, since: Option<Instant>) -> Look;
    /// The wait is over, and no message came in. With `soon`, the loan is paused.
    fn give_back(&self, loan: Loan, soon: bool);
    /// If nobody waits, the connection is to look after itself from now on.
    fn release(&self);
    /// As [`release`](Self::release), but moves what has arrived into the pipe before. True if it did look.
    fn take_in(&self) -> bool;
}

/// The right of one thread to wait for a connection's descriptor. It may outlive the connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Loan {
    pub(crate) fd: RawFd,
    pub(crate) loan: loan::Loan,
}

/// What comes after a look.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Look {
    /// Wait for the descriptor, if nothing has come into the pipe.
    Again,
    /// Messages came in, and the caller tells the pipe's reader. The loan is over, or paused.
    CameIn {
        /// It is paused.
        paused: bool,
    },
    /// Wait for the pipe only: the rest is done elsewhere.
    Elsewhere,
}

/// What a flush does for a reader that sleeps.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Notice {
    /// It tells the reader.
    #[default]
    Tell,
    /// It leaves that to the thread that flushes, which reads next.
    Keep,
    /// It has left it to that thread.
    Kept,
}

impl Pipe {
    /// From now on, a flush does not tell a reader that sleeps: the caller will, or [`take_notice`](Self::take_notice)
    /// has it told.
    pub(crate) fn keep_notice(&mut self) {
        self.notice = Notice::Keep;
    }

    /// Ends [`keep_notice`](Self::keep_notice). Returns whether the reader has to be told.
    pub(crate) fn take_notice(&mut self) -> bool {
        std::mem::take(&mut self.notice) == Notice::Kept
    }

    /// Tells the reader that messages were published while it slept.
    pub(crate) fn tell_readable(&mut self) {
        match self.notice {
            Notice::Tell => self.far().notify(PipeEvent::Readable),
            Notice::Keep | Notice::Kept => self.notice = Notice::Kept,
        }
    }

    /// The connection behind the pipe, if there is one.
    pub(crate) fn line(&self) -> Option<Arc<dyn Line>> {
        let (owner, id) = self.far().owner.get()?;
        owner.clone().line(*id)
    }
}
