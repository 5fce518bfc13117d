//! ROUTER: each message goes to the peer named by its first frame, and each received message starts with the name of
//! its sender.

use bytes::Bytes;
use zeroxide_proto::frame::Frame;
use zeroxide_proto::message::Message;
use zeroxide_proto::socket_type::SocketType;

use crate::error::{Error, ErrorKind, Result};
use crate::options::{PatternOption, ids};
use crate::patterns::claims::Claims;
use crate::patterns::drops::{DoomReason, DropReason};
use crate::patterns::fair_queue::FairQueue;
use crate::patterns::load_balancer::LoadBalancer;
use crate::patterns::notices::Notices;
use crate::patterns::pipe_set::PipeSet;
use crate::patterns::router_table::{Given, RouterTable};
use crate::patterns::{Pattern, PatternSpec, Priority, Spills};
use crate::pipe::PipeId;

struct Router {
    table: RouterTable,
    /// Peers whose name another peer has.
    claims: Claims,
    /// Only pipes whose peer has a name, because nothing can be received from one without a name.
    inbound: FairQueue,
    /// Peers with room, for POLLOUT if an unroutable message is an error.
    open: LoadBalancer,
    mandatory: bool,
    handover: bool,
    /// Whether peers use plain bytes instead of ZMTP. The application then gets notices of connections and their ends,
    /// and closes a connection by sending an empty message.
    raw: bool,
    /// Whether there are notices, which a router with names also has on request (ROUTER_NOTIFY).
    notifies: bool,
    notices: Notices,
}

/// The decision about the name that a peer announces.
enum Claim {
    Granted,
    /// Another peer has the name.
    Taken,
    Refused(DoomReason),
}

/// `None` for peers without an authenticated identity.
type Identity = Option<(bool, Bytes)>;

impl Router {
    fn new() -> Router {
        Router {
            table: RouterTable::new(),
            claims: Claims::default(),
            inbound: FairQueue::default(),
            open: LoadBalancer::default(),
            mandatory: false,
            handover: false,
            raw: false,
            notifies: false,
            notices: Notices::default(),
        }
    }

    /// Determines the name of a new connection's peer. Returns false if the peer must wait without a name.
    fn identify(&mut self, pipes: &mut PipeSet, id: PipeId) -> bool {
        let announced = announced_id(pipes, id);
        self.claims.remove(id);
        match self.table.given(id) {
            // The same peer again, or one that the application has named itself.
            Some(Given::Chosen) => return true,
            Some(Given::Automatic) if announced.is_empty() => return true,
            Some(Given::Announced) if self.table.route(&announced) == Some(id) => return true,
            _ => {}
        }
        let claim = self.claim(pipes, id, &announced);
        // A peer that returns under another name has no claim to the old one.
        self.release(pipes, id);
        self.table.remove(id);
        match claim {
            Claim::Granted if announced.is_empty() => self.table.insert_automatic(id),
            Claim::Granted => self.table.insert(id, announced, Given::Announced),
            Claim::Taken => self.line_up(pipes, id, &announced, DoomReason::DuplicateRoutingId),
            Claim::Refused(reason) => self.turn_away(pipes, id, reason),
        }
        self.table.name(id).is_some()
    }

    /// Decides whether a peer may have the name `name`.
    fn claim(&mut self, pipes: &mut PipeSet, id: PipeId, name: &Bytes) -> Claim {
        if name.is_empty() {
            return Claim::Granted;
        }
        if !self.table.is_allowed(name) {
            return Claim::Refused(DoomReason::InvalidRoutingId);
        }
        if self.table.is_reserved(name) {
            return Claim::Refused(DoomReason::DuplicateRoutingId);
        }
        match self.table.route(name) {
            Some(holder) if !self.take_over(pipes, holder, id) => Claim::Taken,
            _ => Claim::Granted,
        }
    }

    /// Takes the name from `holder` for `newcomer`, if that is allowed.
    fn take_over(&mut self, pipes: &mut PipeSet, holder: PipeId, newcomer: PipeId) -> bool {
        if pipes.is_gone(holder) {
            self.unroute(pipes, holder);
            return true;
        }
        // An authenticated peer shares its name with no other, and a name that the application chose stays.
        if !self.handover
            || self.table.given(holder) == Some(Given::Chosen)
            || identity(pipes, holder) != identity(pipes, newcomer)
        {
            return false;
        }
        self.depose(pipes, holder);
        true
    }

    /// Takes a peer's name away. The peer stays connected, because it would otherwise reconnect at once and take the
    /// name back, forever.
    fn depose(&mut self, pipes: &mut PipeSet, holder: PipeId) {
        let name = self.unroute(pipes, holder);
        self.table.remove(holder);
        if let Some(name) = name {
            self.line_up(pipes, holder, &name, DoomReason::HandedOver);
        }
    }

    /// Lets a peer wait for a name that another one has: connected, but not read from.
    fn line_up(&mut self, pipes: &mut PipeSet, id: PipeId, name: &Bytes, otherwise: DoomReason) {
        self.inbound.remove(id);
        self.open.remove(id);
        self.notices.forget(id);
        if !self.claims.add(name, id) {
            pipes.doom(id, otherwise);
        }
        self.refuse_departed(pipes, id);
    }

    /// Drops what a waiting peer has sent, if it has hung up: it would otherwise keep its place and its connection as
    /// long as the other peer lives. Its messages are not for the application, because an answer would reach the peer
    /// that has the name.
    fn refuse_departed(&mut self, pipes: &mut PipeSet, id: PipeId) {
        if self.claims.contains(id) {
            pipes.discard_departed(id, DropReason::Refused);
        }
    }

    fn turn_away(&mut self, pipes: &mut PipeSet, id: PipeId, reason: DoomReason) {
        self.inbound.remove(id);
        self.open.remove(id);
        pipes.doom(id, reason);
    }

    /// Frees the name of a peer. The messages that are kept for this name on disk stay there.
    fn unroute(&mut self, pipes: &mut PipeSet, id: PipeId) -> Option<Bytes> {
        let name = self.table.unroute(id)?;
        pipes.part_from_name(id, &name);
        Some(name)
    }

    /// Frees the name of a peer, or gives it to a waiting one.
    fn release(&mut self, pipes: &mut PipeSet, id: PipeId) {
        if let Some(name) = self.unroute(pipes, id)
            && !self.claims.is_empty()
        {
            self.pass_on(pipes, id, name);
        }
    }

    #[cold]
    fn pass_on(&mut self, pipes: &mut PipeSet, from: PipeId, name: Bytes) {
        let mut line = self.claims.of(&name);
        if self.handover {
            // The last peer first, as if the others had never connected.
            line.reverse();
        }
        // The peer with the same identity comes first. If there is none, any peer may have a free name.
        let before = identity(pipes, from);
        let same = line.iter().find(|id| identity(pipes, **id) == before);
        let Some(&heir) = same.or(line.first()) else {
            return;
        };
        self.claims.remove(heir);
        self.table.insert(heir, name.clone(), Given::Announced);
        pipes.adopt(heir, Some(&name));
        self.welcome(heir);
    }

    /// The peer has its name.
    fn welcome(&mut self, id: PipeId) {
        self.inbound.insert(id);
        self.open.insert(id);
        if self.notifies {
            self.notices.connected(id);
        }
    }

    /// The error for a name that no peer has.
    fn nobody(name: &Frame) -> Error {
        let text = format!(
            "no peer is called \"{}\"; the first part of a message to a ROUTER is the routing id of the peer",
            name.escape_ascii()
        );
        Error::with(ErrorKind::HostUnreachable, text)
    }

    /// Handles a message whose addressee has no room, or is gone.
    #[cold]
    fn send_full(&self, pipes: &mut PipeSet, id: PipeId, message: &mut Message) -> Result<()> {
        if !pipes.is_open(id) {
            return self.unroutable(pipes, message);
        }
        let may_fail = self.mandatory;
        if !pipes.has_overflow() || self.raw {
            if may_fail {
                return Err(Error::new(ErrorKind::Again));
            }
            pipes.count_drop(Some(id), DropReason::HighWater);
            return Ok(());
        }
        let Some(name) = message.pop_front() else {
            pipes.count_drop(Some(id), DropReason::Malformed);
            return Ok(());
        };
        // A peer without a name of its own gets a new one when it returns.
        let own_name = self.table.given(id) != Some(Given::Automatic);
        let spilled = pipes.spill_for(id, own_name.then_some(&*name), message);
        match spilled {
            Err(error) if may_fail => {
                message.push_front(name);
                return Err(error);
            }
            Err(error) => pipes.count_unspilled(id, &error),
            Ok(()) => {}
        }
        Ok(())
    }

    /// Handles a message whose addressee is not connected.
    fn unroutable(&self, pipes: &mut PipeSet, message: &Message) -> Result<()> {
        if self.mandatory {
            return Err(Router::nobody(message.head()));
        }
        pipes.count_drop(None, DropReason::Unroutable);
        Ok(())
    }
}

fn announced_id(pipes: &mut PipeSet, id: PipeId) -> Bytes {
    let peer = pipes.get(id).and_then(|pipe| pipe.peer());
    peer.map(|peer| peer.routing_id.clone()).unwrap_or_default()
}

/// The authenticated identity of a peer: its user id, or else its key.
fn identity(pipes: &mut PipeSet, id: PipeId) -> Identity {
    let peer = pipes.get(id)?.peer()?;
    match peer.user() {
        Some(user) => Some((true, Bytes::copy_from_slice(user.as_bytes()))),
        None => Some((false, peer.key.clone()?)),
    }
}

impl Pattern for Router {
    fn attach(&mut self, pipes: &mut PipeSet, id: PipeId) {
        // If its name was chosen beforehand, messages can be sent to the peer before it is connected.
        if let Some(name) = pipes.get(id).and_then(|pipe| pipe.peer_name()) {
            match self.table.route(&name) {
                Some(holder) if pipes.get(holder).is_some_and(|pipe| !pipe.is_far_closed()) => {
                    // This peer got the name while there was no connection, but the application's choice takes
                    // precedence.
                    self.depose(pipes, holder);
                }
                Some(holder) => drop(self.unroute(pipes, holder)),
                None => {}
            }
            self.table.insert(id, name, Given::Chosen);
            self.inbound.insert(id);
            self.open.insert(id);
        }
    }

    fn set_priority(&mut self, id: PipeId, priority: Priority) {
        self.inbound.set_priority(id, priority.recv);
    }

    fn ready(&mut self, pipes: &mut PipeSet, id: PipeId) {
        if self.identify(pipes, id) {
            self.welcome(id);
        }
    }

    fn disconnected(&mut self, pipes: &mut PipeSet, id: PipeId) {
        if self.notifies {
            self.notices.disconnected(pipes, &self.table, id);
        }
        // It asks again when it reconnects.
        self.claims.remove(id);
    }

    fn hung_up(&mut self, pipes: &mut PipeSet, id: PipeId) {
        self.refuse_departed(pipes, id);
        if pipes.is_gone(id) {
            // The messages of the peer are still read under its name.
            self.release(pipes, id);
            self.open.remove(id);
        }
    }

    fn readable(&mut self, pipes: &mut PipeSet, id: PipeId) {
        if self.table.name(id).is_some() {
            self.inbound.insert(id);
        } else {
            self.refuse_departed(pipes, id);
        }
    }

    fn writable(&mut self, _: &mut PipeSet, id: PipeId) {
        if self.table.is_routed(id) {
            self.open.insert(id);
        }
    }

    fn far_closed(&mut self, pipes: &mut PipeSet, id: PipeId) {
        let waited = self.claims.remove(id);
        self.release(pipes, id);
        self.open.remove(id);
        if self.table.name(id).is_some() {
            self.inbound.far_closed(pipes, id);
        } else {
            let reason = if waited {
                DropReason::Refused
            } else {
                DropReason::PeerGone
            };
            pipes.discard(id, reason);
            pipes.check_read(id);
        }
    }

    fn detach(&mut self, pipes: &mut PipeSet, id: PipeId) {
        self.notices.detach(pipes, &self.table, id);
        if self.claims.remove(id) {
            pipes.discard(id, DropReason::Refused);
        }
        self.release(pipes, id);
        self.table.remove(id);
        self.inbound.remove(id);
        self.open.remove(id);
    }

    fn send(&mut self, pipes: &mut PipeSet, message: &mut Message) -> Result<()> {
        let Some(id) = self.table.route(message.head()) else {
            return self.unroutable(pipes, message);
        };
        if !pipes.check_write(id) {
            return self.send_full(pipes, id, message);
        }
        if self.mandatory {
            // The pipe may have room that was found before a notification, which then does not come.
            self.open.insert(id);
        }
        // A name without a message.
        if message.pop_front().is_none() {
            pipes.count_drop(Some(id), DropReason::Malformed);
            return Ok(());
        }
        if self.raw && message.size() == 0 {
            self.notices.forget(id);
            pipes.doom(id, DoomReason::Requested);
            return Ok(());
        }
        pipes.write_checked(id, message);
        Ok(())
    }

    fn recv(&mut self, pipes: &mut PipeSet, message: &mut Message) -> Result<Option<PipeId>> {
        if self.notifies {
            let next = self.notices.recv(pipes, &self.table, &mut self.inbound);
            let (next, id) = next.ok_or_else(|| Error::new(ErrorKind::Again))?;
            *message = next;
            return Ok(Some(id));
        }
        while let Some(id) = self.inbound.recv_to(pipes, message) {
            if let Some(name) = self.table.name(id) {
                message.push_front(name.clone());
                return Ok(Some(id));
            }
            if !pipes.drop_read(Some(id), message, DropReason::Refused) {
                break;
            }
        }
        Err(Error::new(ErrorKind::Again))
    }

    fn can_send(&mut self, pipes: &mut PipeSet) -> bool {
        // With room on disk, every peer has room.
        !self.mandatory || self.open.can_send(pipes) || pipes.has_disk_for_peers()
    }

    fn check_send(&mut self, pipes: &mut PipeSet, head: &Frame) -> Result<()> {
        if !self.mandatory {
            return Ok(());
        }
        match self.table.route(head) {
            Some(id) if pipes.check_write(id) => {
                self.open.insert(id);
                Ok(())
            }
            Some(id) if pipes.get(id).is_some_and(|pipe| !pipe.is_far_closed()) => {
                match pipes.has_disk_for_peers() && !self.raw {
                    true => Ok(()),
                    false => Err(Error::new(ErrorKind::Again)),
                }
            }
            _ => Err(Router::nobody(head)),
        }
    }

    fn is_waiting(&self, id: PipeId) -> bool {
        self.claims.contains(id)
    }

    fn route(&self, id: PipeId) -> Option<Bytes> {
        self.table.name(id).map(|name| name.clone().into_bytes())
    }

    fn own_name(&self, id: PipeId) -> Option<Bytes> {
        // A peer without a name of its own gets a new one when it returns.
        match self.table.given(id) {
            Some(Given::Automatic) => None,
            _ => self.route(id),
        }
    }

    fn take_peer_name(&mut self) -> Option<Bytes> {
        self.table.take_reserved()
    }

    fn can_recv(&mut self, pipes: &mut PipeSet) -> bool {
        if self.notifies {
            return self.notices.can_recv(pipes, &self.table, &mut self.inbound);
        }
        self.inbound.can_recv(pipes)
    }

    fn set(&mut self, _: &mut PipeSet, option: &PatternOption) -> Result<()> {
        match option {
            PatternOption::RouterMandatory(on) => self.mandatory = *on,
            PatternOption::RouterHandover(on) => self.handover = *on,
            PatternOption::ConnectRoutingId(id) => self.table.reserve(id)?,
            PatternOption::RouterRaw(on) => {
                self.raw = *on;
                self.notifies = *on;
                self.notices.limit(*on, *on);
            }
            PatternOption::RouterNotify(bits) if !self.raw => {
                self.notifies = *bits != 0;
                self.notices.limit(bits & 1 != 0, bits & 2 != 0);
            }
            PatternOption::RouterNotify(_) => {}
            _ => return Err(Error::new(ErrorKind::Invalid)),
        }
        Ok(())
    }
}

pub(super) static ROUTER: PatternSpec = PatternSpec {
    may_be_raw: true,
    addresses_names: true,
    spills: Spills::ForEachPeer,
    options: &[
        ids::ROUTER_MANDATORY,
        ids::ROUTER_RAW,
        ids::PROBE_ROUTER,
        ids::ROUTER_HANDOVER,
        ids::CONNECT_ROUTING_ID,
        ids::ROUTER_NOTIFY,
        ids::HELLO_MSG,
        ids::DISCONNECT_MSG,
        ids::SPILL_DIR,
        ids::SPILL_BYTES,
        ids::SPILL_KEEP,
    ],
    ..PatternSpec::new(SocketType::Router, || Box::new(Router::new()))
};

#[cfg(test)]
mod tests;
