//! The connection behind a pipe, as seen by a thread that waits for messages and may drive it.

use std::os::fd::RawFd;
use std::sync::Arc;
use std::time::Instant;

use zeroxide_queue::loan;

use super::{Pipe, PipeEvent};

/// See the module text. From [`take_over`](Self::take_over) until the loan ends, no other thread is notified of bytes
/// that arrive. The thread that took over waits for the descriptor and looks.
pub(crate) trait Line: Send + Sync {
    /// Takes over the connection and returns what to wait for. Returns `None` if the connection needs more than a
    /// reader.
    fn take_over(&self) -> Option<FdLoan>;
    /// Moves what has arrived into the pipe. With `hung_up`, the caller has seen that the peer hung up. If messages
    /// came in, the loan ends, or it is paused if the wait that began at `since` was short, because the next wait is
    /// then expected soon.
    fn look(&self, loan: FdLoan, hung_up: bool, since: Option<Instant>) -> Look;
    /// Ends a wait without a message. With `soon`, the loan is paused.
    fn give_back(&self, loan: FdLoan, soon: bool);
    /// Returns the connection to the I/O thread if no thread waits.
    fn release(&self);
    /// Like [`release`](Self::release), but first moves what has arrived into the pipe. Returns true if it looked.
    fn take_in(&self) -> bool;
}

/// The right of one thread to wait for a connection's descriptor. It may outlive the connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct FdLoan {
    pub(crate) fd: RawFd,
    pub(crate) loan: loan::Loan,
}

/// What to do after a look.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Look {
    /// Wait for the descriptor, unless the pipe has messages.
    Again,
    /// Messages came in. The caller notifies the pipe's reader. The loan has ended or is paused.
    CameIn {
        /// Whether the loan is paused.
        paused: bool,
    },
    /// Wait for the pipe only. The I/O thread does the rest.
    Elsewhere,
}

/// How a flush notifies a sleeping reader.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Notice {
    /// It notifies the reader.
    #[default]
    Tell,
    /// It leaves that to the thread that flushes, which reads next.
    Keep,
    /// It has left a notification to that thread.
    Kept,
}

impl Pipe {
    /// Stops flushes from notifying a sleeping reader. The caller notifies it instead, if
    /// [`take_notice`](Self::take_notice) asks for that.
    pub(crate) fn keep_notice(&mut self) {
        self.notice = Notice::Keep;
    }

    /// Ends [`keep_notice`](Self::keep_notice). Returns whether the reader has to be notified.
    pub(crate) fn take_notice(&mut self) -> bool {
        std::mem::take(&mut self.notice) == Notice::Kept
    }

    /// Notifies the reader that messages were published while it slept.
    pub(crate) fn tell_readable(&mut self) {
        match self.notice {
            Notice::Tell => self.far().notify(PipeEvent::Readable),
            Notice::Keep | Notice::Kept => self.notice = Notice::Kept,
        }
    }

    /// The connection behind the pipe, if there is one from which more can come.
    pub(crate) fn line(&self) -> Option<Arc<dyn Line>> {
        if self.is_far_closed() {
            return None;
        }
        let (owner, id) = self.far().owner.get()?;
        owner.clone().line(*id)
    }
}
