//! Calls that return futures, for asyncio and for event loops with the same interface.
//!
//! A call makes its first attempt at once. If that succeeds, the call returns a [`Ready`](ready::Ready): no loop, no
//! `asyncio.Future`, no Python code. Otherwise the call joins the [`Lane`](lane::Lane) of the loop that it was made in.
//! A lane is the queue of the calls that wait in that loop. They are served in order whenever something happens to the
//! socket. However many messages a burst brings, it wakes the loop only once. [`turn`] ensures that immediate results
//! do not keep the loop from turning.

pub(crate) mod back;
pub(crate) mod form;
pub(crate) mod lane;
mod queues;
pub(crate) mod ready;
pub(crate) mod settling;
pub(crate) mod socket;
mod states;
pub(crate) mod turn;
pub(crate) mod watcher;
