//! The connection behind a pipe, as far as the thread may drive it that waits for what comes in.

use std::os::fd::RawFd;
use std::sync::Arc;

use super::Pipe;

/// See the module text. Between [`take_over`](Self::take_over) and [`give_back`](Self::give_back) nobody else is told of
/// bytes that arrive; whoever took over waits for the descriptor and looks.
pub(crate) trait Line: Send + Sync {
    /// The descriptor to wait for, unless there is more to do for the connection than to read.
    fn take_over(&self) -> Option<RawFd>;
    /// Moves what has arrived into the pipe.
    fn look(&self) -> Look;
    /// The wait is over. With `soon`, the next one is expected so soon that it is not worth telling anybody; if it does
    /// not come, the connection looks after itself again within milliseconds.
    fn give_back(&self, soon: bool);
    /// If nobody waits, the connection is to look after itself from now on.
    fn release(&self);
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
