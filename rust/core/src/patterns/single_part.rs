//! The rule of patterns whose messages have one part.

use zeroxide_proto::message::Message;
use zeroxide_proto::socket_type::SocketType;

use crate::error::{Error, ErrorKind, Result};
use crate::patterns::drops::DropReason;
use crate::pipe::PipeId;

/// Checks a message to send.
///
/// # Errors
/// `Invalid` if it has several parts.
#[inline]
pub(super) fn check(message: &Message, socket_type: SocketType) -> Result<()> {
    match message.len() {
        1 => Ok(()),
        _ => Err(several_parts(socket_type)),
    }
}

/// The error for a message of several parts.
#[cold]
pub(crate) fn several_parts(socket_type: SocketType) -> Error {
    let text = format!(
        "a message of a {socket_type} socket has one part: send it without SNDMORE, and join the parts yourself"
    );
    Error::with(ErrorKind::Invalid, text)
}

/// Checks a received message.
///
/// # Errors
/// `Malformed` if it has several parts: the peer breaks the rule.
#[inline]
pub(super) fn admit(_: PipeId, message: &mut Message) -> std::result::Result<(), DropReason> {
    match message.len() {
        1 => Ok(()),
        _ => Err(DropReason::Malformed),
    }
}
