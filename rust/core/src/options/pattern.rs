//! Options that concern routing: the socket hands them to its pattern at once.

use bytes::Bytes;
use zeroxide_proto::socket_type::SocketType;

use super::{OptionRow, Value};
use crate::error::Result;

/// An option for a pattern, already checked for type and range.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum PatternOption {
    /// SUBSCRIBE: one more reference to a prefix.
    Subscribe(Bytes),
    /// UNSUBSCRIBE: one less.
    Unsubscribe(Bytes),
    /// INVERT_MATCHING
    InvertMatching(bool),
    /// ROUTER_MANDATORY: an unroutable message is an error.
    RouterMandatory(bool),
    /// ROUTER_HANDOVER: a newcomer takes a routing id over.
    RouterHandover(bool),
    /// ROUTER_RAW: what STREAM does, on a ROUTER.
    RouterRaw(bool),
    /// PROBE_ROUTER: an empty message goes out on each new connection.
    ProbeRouter(bool),
    /// CONNECT_ROUTING_ID: how the peer of the next connect is called here.
    ConnectRoutingId(Bytes),
    /// XPUB_VERBOSE: pass on every subscription, not only the first of a topic.
    XpubVerbose(bool),
    /// XPUB_VERBOSER: pass on every unsubscription as well.
    XpubVerboser(bool),
    /// XPUB_MANUAL: the application decides about subscriptions.
    XpubManual(bool),
    /// XPUB_MANUAL_LAST_VALUE: and what is sent next goes only to whom it decided about.
    XpubManualLastValue(bool),
    /// XPUB_NODROP: wait instead of dropping when a subscriber's pipe is full.
    XpubNodrop(bool),
    /// MAX_SUBSCRIPTIONS: how many topics each subscriber may want; 0 = no limit.
    MaxSubscriptions(usize),
    /// MAX_SUBSCRIPTION_BYTES: how many bytes these topics may have together; 0 = no limit.
    MaxSubscriptionBytes(usize),
    /// XPUB_WELCOME_MSG: the first message to each subscriber; empty = none.
    XpubWelcomeMsg(Bytes),
    /// REQ_CORRELATE: number the requests and take only matching replies.
    ReqCorrelate(bool),
    /// REQ_RELAXED: a new request before the reply to the last.
    ReqRelaxed(bool),
    /// STREAM_NOTIFY: an empty message when a peer comes and goes.
    StreamNotify(bool),
}

/// What the pattern of a socket of this type is to be told when an option is set, or `None` for an option that does not
/// concern it.
pub fn pattern_option(socket: SocketType, id: i32, value: &Value) -> Option<Result<PatternOption>> {
    let row = OptionRow::find(id).ok()?;
    let make = row.access.pattern(socket)?;
    Some(row.check(value).map(|()| make(value)))
}
