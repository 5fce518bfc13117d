//! A socket that is connected to every provider of a service, while they come and go.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use zeroxide::{Result, Socket};

use crate::driver::Shared;
use crate::event::Event;
use crate::id::NodeId;
use crate::node::Node;
use crate::services::endpoint_of;

impl Node {
    /// Connects a socket to every provider of a service, while they come and go.
    ///
    /// The socket decides what the connections are for: a DEALER or PUSH shares its messages among the providers, and a
    /// SUB receives from all of them. If a provider is gone, its connection ends, and messages that wait for it are lost.
    ///
    /// ```no_run
    /// # fn main() -> zeroxide::Result<()> {
    /// use zeroxide::{Context, SocketType, Wait};
    /// use zeroxide_discovery::Node;
    ///
    /// let context = Context::new();
    /// let jobs = context.socket(SocketType::Push)?;
    /// let node = Node::builder("").start()?;
    /// let follower = node.follow(&jobs, "resize")?;
    /// follower.wait(1, None);
    /// jobs.send("a picture", Wait::Forever)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `NotSocket` if the node was stopped, `Terminated` if its context was.
    pub fn follow(&self, socket: &Socket, service: &str) -> Result<Follower> {
        let following = Arc::new(Following {
            socket: socket.clone(),
            service: service.to_owned(),
            state: Mutex::new(State::default()),
            changed: Condvar::new(),
        });
        let watching = following.clone();
        let watcher = Box::new(move |event: Option<&Event>| watching.handle(event));
        let shared = self.driver().shared();
        let number = shared.watch(watcher, |machine| {
            for peer in machine.peers() {
                let found = endpoint_of(&peer.headers, &following.service, &peer.endpoint);
                following.update(peer.id, found);
            }
        })?;
        let node = Arc::downgrade(shared);
        Ok(Follower {
            following,
            node,
            number,
        })
    }
}

/// Connects a socket to the providers of a service: see [`Node::follow`].
///
/// It works until it is dropped, or its socket is closed, or its node is stopped. The socket keeps its connections.
#[must_use = "the socket follows no longer when this is dropped"]
pub struct Follower {
    following: Arc<Following>,
    node: Weak<Shared>,
    number: u64,
}

impl Follower {
    /// Returns the endpoints that the socket is connected to, in order of their arrival.
    pub fn endpoints(&self) -> Vec<String> {
        self.following.lock().endpoints.clone()
    }

    /// Returns why the last connection failed; `None` if none did. A peer may name any endpoint.
    pub fn error(&self) -> Option<zeroxide::Error> {
        self.following.lock().error.clone()
    }

    /// Returns whether it has ended, because its socket was closed or its node was stopped.
    pub fn has_ended(&self) -> bool {
        self.following.lock().has_ended
    }

    /// Waits until the socket is connected to this many endpoints, and returns whether it is. If not, the time is up, or
    /// [`has_ended`](Self::has_ended). `None` waits without limit.
    pub fn wait(&self, count: usize, timeout: Option<Duration>) -> bool {
        let end = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let following = &self.following;
        let mut state = following.lock();
        while state.endpoints.len() < count && !state.has_ended {
            state = match end {
                None => following
                    .changed
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner),
                Some(end) => {
                    let left = end.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        break;
                    }
                    let waited = following.changed.wait_timeout(state, left);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
        state.endpoints.len() >= count
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        if let Some(node) = self.node.upgrade() {
            node.unwatch(self.number);
        }
    }
}

/// The state that the follower and the node share.
struct Following {
    socket: Socket,
    service: String,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// The endpoints by provider: two may have the same one.
    providers: BTreeMap<NodeId, String>,
    endpoints: Vec<String>,
    error: Option<zeroxide::Error>,
    has_ended: bool,
}

impl Following {
    /// Takes an event of the node, and returns whether to go on.
    fn handle(&self, event: Option<&Event>) -> bool {
        if event.is_none() || self.socket.is_closed() {
            self.lock().has_ended = true;
            self.changed.notify_all();
            return false;
        }
        match event {
            Some(Event::Enter {
                peer,
                endpoint,
                headers,
                ..
            }) => {
                self.update(*peer, endpoint_of(headers, &self.service, endpoint));
            }
            Some(Event::Exit { peer, .. }) => self.update(*peer, None),
            _ => {}
        }
        true
    }

    /// Connects to a provider, or disconnects from one that is gone.
    fn update(&self, peer: NodeId, endpoint: Option<String>) {
        let mut state = self.lock();
        match endpoint {
            None => state.leave(peer, &self.socket),
            Some(endpoint) => state.enter(peer, endpoint, &self.socket),
        }
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn enter(&mut self, peer: NodeId, endpoint: String, socket: &Socket) {
        if !self.endpoints.contains(&endpoint) {
            if let Err(error) = socket.connect(&endpoint) {
                self.error = Some(error);
                return;
            }
            self.endpoints.push(endpoint.clone());
        }
        self.providers.insert(peer, endpoint);
    }

    fn leave(&mut self, peer: NodeId, socket: &Socket) {
        let Some(endpoint) = self.providers.remove(&peer) else {
            return;
        };
        if !self.providers.values().any(|other| *other == endpoint) {
            self.endpoints.retain(|other| *other != endpoint);
            let _ = socket.disconnect(&endpoint); // the program may have done so
        }
    }
}
