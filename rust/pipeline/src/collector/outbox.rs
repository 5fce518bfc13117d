//! Sends replies, from any thread.

use std::sync::Arc;

use bytes::Bytes;
use zeroxide::{ErrorKind, Frame, Socket, Wait};

#[cfg(zeroxide_disk)]
use crate::collector::kept::Kept;
use crate::collector::refusal::Refusal;
use crate::collector::stats::Stats;
use crate::collector::unread::Unread;
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
    way: Way,
    stats: Arc<Stats>,
}

/// Where replies go.
#[derive(Clone, Debug)]
enum Way {
    Router(Socket, Arc<Unread>),
    #[cfg(zeroxide_disk)]
    Kept(Kept),
}

impl Outbox {
    pub fn new(router: Socket, stats: Arc<Stats>, unread: Arc<Unread>) -> Outbox {
        let way = Way::Router(router, unread);
        Outbox { way, stats }
    }

    /// Keeps the replies for a simulation.
    #[cfg(zeroxide_disk)]
    pub fn keeping(kept: Kept, stats: Arc<Stats>) -> Outbox {
        let way = Way::Kept(kept);
        Outbox { way, stats }
    }

    /// Sends a reply. If the peer takes nothing, the reply is dropped and the peer asks again, as it does when a reply
    /// is lost with its connection.
    pub fn say(&self, to: &Asked, reply: Reply) {
        if self.send(to, reply).is_err() {
            self.stats.undelivered.add(1);
        }
    }

    /// Replies unless the peer has too much to read already.
    pub fn try_say(&self, to: &Asked, reply: Reply) -> bool {
        match self.send(to, reply) {
            Ok(()) => true,
            Err(ErrorKind::Again) => false,
            Err(_) => {
                self.stats.undelivered.add(1);
                true
            }
        }
    }

    fn send(&self, to: &Asked, reply: Reply) -> Result<(), ErrorKind> {
        match &self.way {
            Way::Router(router, unread) => {
                let is_counted = matches!(reply, Reply::Fetched { .. });
                let mut message = reply.encode(to.id);
                if !is_counted {
                    let counted = unread.count(&to.route, message);
                    message = counted.ok_or(ErrorKind::Again)?;
                }
                message.push_front(Frame::from_bytes(to.route.clone()));
                let sent = router.send(message, Wait::Dont);
                sent.map_err(|failed| failed.error.kind())
            }
            #[cfg(zeroxide_disk)]
            Way::Kept(kept) => {
                kept.add(&to.route, to.id, reply);
                Ok(())
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
