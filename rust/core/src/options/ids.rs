//! Numbers of the options that a socket treats itself.

pub(crate) const ROUTING_ID: i32 = 5;
pub(crate) const RCVMORE: i32 = 13;
pub(crate) const FD: i32 = 14;
pub(crate) const EVENTS: i32 = 15;
pub(crate) const SNDHWM: i32 = 23;
pub(crate) const RCVHWM: i32 = 24;
