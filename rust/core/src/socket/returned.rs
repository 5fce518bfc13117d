//! Messages that were given back.

use std::sync::Arc;

use zeroxide_proto::engine::PeerInfo;
use zeroxide_proto::message::Message;

/// A message that was given back.
pub(super) struct Returned {
    /// When the message was received, according to the caller that gave it back.
    pub(super) order: u64,
    pub(super) message: Message,
    pub(super) peer: Option<Arc<PeerInfo>>,
}
