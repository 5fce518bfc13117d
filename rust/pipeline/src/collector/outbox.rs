//! Sends replies, from any thread.

use std::sync::Arc;

use bytes::Bytes;
use zeroxide::{ErrorKind, Frame, Message, Socket, Wait};

use crate::collector::refusal::Refusal;
use crate::collector::stats::Stats;
use crate::wire::Reply;

/// The peer that made a request, and the request's number.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub route: Bytes,
    pub id: u64,
    /// The peer's public key, if keys are required.
    pub key: Option<Arc<str>>,
}

/// The sending side for replies.
#[derive(Clone, Debug)]
pub(super) struct Outbox {
    router: Socket,
    stats: Arc<Stats>,
}

impl Outbox {
    pub fn new(router: Socket, stats: Arc<Stats>) -> Outbox {
        Outbox { router, stats }
    }

    /// Sends a reply. If the peer takes nothing, the reply is dropped and the peer asks again, as it does when a reply
    /// is lost with its connection.
    pub fn say(&self, to: &Asked, reply: Reply) {
        let sent = self.router.send(addressed(to, reply), Wait::Dont);
        if sent.is_err() {
            self.stats.undelivered.add(1);
        }
    }

    /// Replies unless the peer has too much to read already.
    pub fn try_say(&self, to: &Asked, reply: Reply) -> bool {
        match self.router.send(addressed(to, reply), Wait::Dont) {
            Ok(()) => true,
            Err(failed) if failed.error.kind() == ErrorKind::Again => false,
            Err(_) => {
                self.stats.undelivered.add(1);
                true
            }
        }
    }

    /// Sends a refusal and counts its code.
    pub fn refuse(&self, to: &Asked, refusal: Refusal) {
        self.stats.refuse(refusal.code);
        self.say(
            to,
            Reply::Refused {
                code: refusal.code,
                detail: refusal.detail,
                text: refusal.text,
            },
        );
    }
}

fn addressed(to: &Asked, reply: Reply) -> Message {
    let mut message = reply.encode(to.id);
    message.push_front(Frame::from_bytes(to.route.clone()));
    message
}
