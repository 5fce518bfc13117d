//! Calls that return futures, for asyncio and the loops built like it.
//!
//! A call tries at once, and returns a [`Ready`](ready::Ready) if that was enough: no loop, no `asyncio.Future`, no
//! Python code. Otherwise it joins the [`Lane`](lane::Lane) of the loop it was made in: the queue of the calls that wait
//! there, served in order whenever something happens to the socket. However many messages a burst brings, the loop wakes
//! once for it. [`turn`] sees to it that results which are there at once do not keep the loop from turning.

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
