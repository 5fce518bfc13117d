//! The connection behind a pipe, as far as the thread may drive it that waits for what comes in.

use std::os::fd::RawFd;
use std::sync::Arc;

use super::Pipe;

/// See the module text. Between [`take_over`](Self::take_over) and [`give_back`](Self::give_back) nobody else is told of
/// bytes that arrive; whoever took over waits for the descriptor and looks.
pub(crate) trait Line: Send + Sync {
    /// What to wait for, unless there is more to do for the connection than to read.
    fn take_over(&self) -> Option<Loan>;
    /// Moves what has arrived into the pipe. Whoever waited may have seen that the peer has hung up.
    fn look(&self, loan: Loan, hung_up: bool) -> Look;
    /// The wait is over. With `soon`, the next one is expected so soon that it is not worth telling anybody; if it does
    /// not come, the connection looks after itself again within milliseconds.
    fn give_back(&self, loan: Loan, soon: bool);
    /// If nobody waits, the connection is to look after itself from now on.
    fn release(&self);
    /// As [`release`](Self::release), but moves what has arrived into the pipe before. True if it did look.
    fn take_in(&self) -> bool;
}

/// The right of one thread to wait for a connection's descriptor. It may outlive the connection, and the next one may be
/// lent to somebody else by then: the number tells them apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Loan {
    pub(crate) fd: RawFd,
    pub(crate) number: u64,
}

/// What comes after a look.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Look {
    /// Wait for the descriptor, if nothing has come into the pipe.
    Again,
    /// Wait for the pipe only: the rest is done elsewhere.
    Elsewhere,
}

impl Pipe {
    /// The connection behind the pipe, if there is one.
    pub(crate) fn line(&self) -> Option<Arc<dyn Line>> {
        let (owner, id) = self.far().owner.get()?;
        owner.clone().line(*id)
    }
}
