//! Options that concern routing, which the socket passes to its pattern at once.

use std::time::Duration;

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
    /// ROUTER_HANDOVER: a new peer takes over a routing id.
    RouterHandover(bool),
    /// ROUTER_RAW: plain bytes on a ROUTER, like STREAM.
    RouterRaw(bool),
    /// ROUTER_NOTIFY: an empty message from a peer that has connected (1), disconnected (2), or both (3).
    RouterNotify(u8),
    /// CONNECT_ROUTING_ID: the routing id of the peer of the next connect.
    ConnectRoutingId(Bytes),
    /// XPUB_VERBOSE: pass on every subscription, not only the first of a topic.
    XpubVerbose(bool),
    /// XPUB_VERBOSER: pass on every unsubscription as well.
    XpubVerboser(bool),
    /// XPUB_MANUAL: the application decides about subscriptions.
    XpubManual(bool),
    /// XPUB_MANUAL_LAST_VALUE: the next message is only sent to the subscriber about which the application decided.
    /// Set again, it makes the socket forget this subscriber, for whom there is no message.
    XpubManualLastValue(bool),
    /// SLOW_SUBSCRIBER and XPUB_NODROP: what happens when a subscriber's pipe is full.
    SlowSubscriber(SlowSubscriber),
    /// MAX_SUBSCRIPTIONS: the maximum number of topics per subscriber; 0 = no limit.
    MaxSubscriptions(usize),
    /// MAX_SUBSCRIPTION_BYTES: the maximum total size of these topics; 0 = no limit.
    MaxSubscriptionBytes(usize),
    /// XPUB_WELCOME_MSG: the first message to each subscriber; empty = none.
    XpubWelcomeMsg(Bytes),
    /// REQ_CORRELATE: number the requests and accept only matching replies.
    ReqCorrelate(bool),
    /// REQ_RELAXED: allow a new request before the reply to the last one.
    ReqRelaxed(bool),
    /// RESEND_IVL: the time after which a request is sent again; `None` = never.
    ResendIvl(Option<Duration>),
    /// SURVEY_TIMEOUT: the time in which answers are received; `None` = no limit.
    SurveyTimeout(Option<Duration>),
    /// MAX_TTL: the maximum number of sockets that a message may have passed.
    MaxTtl(u8),
    /// STREAM_NOTIFY: an empty message when a peer comes and goes.
    StreamNotify(bool),
    /// MAX_LAG: how long a message may wait for the application; `None` = no limit.
    MaxLag(Option<Duration>),
}

/// The reaction of a publisher when the pipe to a subscriber is full (SLOW_SUBSCRIBER).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum SlowSubscriber {
    /// The subscriber misses the message.
    #[default]
    Drop,
    /// The publisher waits.
    Wait,
    /// The subscriber is disconnected, and misses everything that it has not read.
    Disconnect,
}

impl SlowSubscriber {
    /// The value of this number; other numbers than 1 and 2 stand for the default.
    pub(super) fn from_number(number: usize) -> SlowSubscriber {
        match number {
            1 => SlowSubscriber::Wait,
            2 => SlowSubscriber::Disconnect,
            _ => SlowSubscriber::Drop,
        }
    }
}

/// The facts about a pattern that matter to the connections of its sockets.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PatternFacts {
    /// Whether CONFLATE has an effect on what the sockets send, and on what they receive.
    pub(crate) conflates: (bool, bool),
    /// Whether received messages belong to one connection, so that a mark has to follow the last of each.
    pub(crate) eager: bool,
    /// Whether messages are sent to the names that peers have chosen.
    pub(crate) addresses_names: bool,
    /// Whether it sends anything but subscriptions.
    pub(crate) lingers: bool,
    /// The type, if the sockets speak another wire protocol than ZMTP.
    pub(crate) other: Option<SocketType>,
}

impl OptionRow {
    /// Converts a value for a pattern; `None` if patterns are not notified of this option.
    pub(crate) fn for_pattern(&self, value: &Value) -> Option<Result<PatternOption>> {
        let make = self.access.pattern()?;
        Some(self.check(value).map(|()| make(value)))
    }
}
