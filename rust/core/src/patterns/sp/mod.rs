//! The patterns of the scalability protocols, as nanomsg and nng have them. BUS, SURVEYOR and RESPONDENT are types of
//! their own. The others are types of ZeroMQ over another wire protocol: WIRE_PROTOCOL exchanges the pattern of a socket.
//!
//! Messages have one part. Some patterns put a header before it ([`envelope`]), which the wire does not separate from
//! the body.

mod ask;
mod bus;
mod envelope;
mod publish;
mod respond;
mod same;
mod subscribe;
mod survey;

pub(super) use ask::REQ;
pub(super) use bus::BUS;
pub(super) use publish::PUB;
pub(super) use respond::{REP, RESPONDENT};
pub(super) use same::{PAIR, PULL, PUSH};
pub(super) use subscribe::SUB;
pub(super) use survey::SURVEYOR;
