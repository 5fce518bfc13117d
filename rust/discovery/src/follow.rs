//! A socket that is connected to every provider of a service, while they come and go.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use zeroxide::{Error, ErrorKind, Result, Socket};

use crate::driver::Shared;
use crate::event::Event;
use crate::id::NodeId;
use crate::names::is_of_dns;
use crate::node::Node;
use crate::services::endpoint_of;

/// Endpoints of an answer of the DNS, at most.
const NAMES_MAX: usize = 1024;

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
    /// `Invalid` if the service is one of the DNS, which [`Lookup`](crate::Lookup) follows; `NotSocket` if the node was
    /// stopped, `Terminated` if its context was.
    pub fn follow(&self, socket: &Socket, service: &str) -> Result<Follower> {
        if is_of_dns(service) {
            let text =
                format!("no node offers {service:?}: use Lookup::new({service:?}).follow(&socket)");
            return Err(Error::with(ErrorKind::Invalid, text));
        }
        let following = Arc::new(Following::new(socket));
        let (watching, name) = (following.clone(), service.to_owned());
        let watcher = Box::new(move |event: Option<&Event>| watching.handle(event, &name));
        let shared = self.driver().shared();
        let number = shared.watch(watcher, |machine| {
            for peer in machine.peers() {
                let found = endpoint_of(&peer.headers, service, &peer.endpoint);
                following.update(peer.id, found);
            }
        })?;
        let source = Source::Node(Arc::downgrade(shared), number);
        Ok(Follower { following, source })
    }
}

/// Connects a socket to the providers of a service: see [`Node::follow`] and [`Lookup`](crate::Lookup).
///
/// It works until it is dropped, or its socket is closed, or its node is stopped. The socket keeps its connections.
#[must_use = "the socket follows no longer when this is dropped"]
pub struct Follower {
    following: Arc<Following>,
    source: Source,
}

/// Where the providers come from.
enum Source {
    /// A node, and the number of the watcher there.
    Node(Weak<Shared>, u64),
    /// A thread that looks names up, until it gets a message.
    Thread(Sender<()>),
}

impl Follower {
    /// A follower whose providers a thread looks up.
    pub(crate) fn of_thread(following: Arc<Following>, end: Sender<()>) -> Follower {
        let source = Source::Thread(end);
        Follower { following, source }
    }

    /// Returns the endpoints that the socket is connected to, in order of their arrival.
    pub fn endpoints(&self) -> Vec<String> {
        self.following.lock().endpoints.clone()
    }

    /// Returns why the last look-up in the DNS or the last connection failed; `None` if it did not fail. A peer may name
    /// any endpoint.
    pub fn error(&self) -> Option<Error> {
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
        match &self.source {
            Source::Node(node, number) => {
                if let Some(node) = node.upgrade() {
                    node.unwatch(*number);
                }
            }
            Source::Thread(end) => {
                // A look-up in progress connects the socket no more.
                self.following.end();
                let _ = end.send(()); // the thread may have ended
            }
        }
    }
}

/// The state that the follower shares with the node or the thread.
pub(crate) struct Following {
    socket: Socket,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// The endpoints by provider: two may have the same one.
    providers: BTreeMap<Provider, String>,
    endpoints: Vec<String>,
    error: Option<Error>,
    has_ended: bool,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Provider {
    Node(NodeId),
    /// An endpoint that the DNS has named.
    Endpoint(String),
}

impl Following {
    pub(crate) fn new(socket: &Socket) -> Following {
        Following {
            socket: socket.clone(),
            state: Mutex::new(State::default()),
            changed: Condvar::new(),
        }
    }

    /// Whether there is nothing more to follow, because the socket was closed.
    pub(crate) fn has_closed(&self) -> bool {
        self.socket.is_closed()
    }

    /// Ends the waiting, and all changes of the connections.
    pub(crate) fn end(&self) {
        self.lock().has_ended = true;
        self.changed.notify_all();
    }

    /// Takes the result of a look-up: connects to what is new, and disconnects from what is gone. After an error, all
    /// providers may still be there.
    pub(crate) fn replace(&self, found: Result<BTreeSet<String>>) {
        let mut state = self.lock();
        if state.has_ended {
            return;
        }
        match found {
            Err(error) => state.error = Some(error),
            Ok(found) => {
                state.error = None;
                let found = found.into_iter().take(NAMES_MAX);
                let found: BTreeMap<Provider, String> = found
                    .map(|endpoint| (Provider::Endpoint(endpoint.clone()), endpoint))
                    .collect();
                let mut gone: Vec<Provider> = state.providers.keys().cloned().collect();
                gone.retain(|provider| !found.contains_key(provider));
                for (provider, endpoint) in found {
                    state.enter(provider, endpoint, &self.socket);
                }
                for provider in &gone {
                    state.leave(provider, &self.socket);
                }
            }
        }
        self.changed.notify_all();
    }

    /// Takes an event of the node, and returns whether to go on.
    fn handle(&self, event: Option<&Event>, service: &str) -> bool {
        if event.is_none() || self.has_closed() {
            self.end();
            return false;
        }
        match event {
            Some(Event::Enter {
                peer,
                endpoint,
                headers,
                ..
            }) => {
                self.update(*peer, endpoint_of(headers, service, endpoint));
            }
            Some(Event::Exit { peer, .. }) => self.update(*peer, None),
            _ => {}
        }
        true
    }

    /// Connects to a provider, or disconnects from one that is gone.
    fn update(&self, peer: NodeId, endpoint: Option<String>) {
        let mut state = self.lock();
        let provider = Provider::Node(peer);
        match endpoint {
            None => state.leave(&provider, &self.socket),
            Some(endpoint) => state.enter(provider, endpoint, &self.socket),
        }
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn enter(&mut self, provider: Provider, endpoint: String, socket: &Socket) {
        if !self.endpoints.contains(&endpoint) {
            if let Err(error) = socket.connect(&endpoint) {
                self.error = Some(error);
                return;
            }
            self.endpoints.push(endpoint.clone());
        }
        self.providers.insert(provider, endpoint);
    }

    fn leave(&mut self, provider: &Provider, socket: &Socket) {
        let Some(endpoint) = self.providers.remove(provider) else {
            return;
        };
        if !self.providers.values().any(|other| *other == endpoint) {
            self.endpoints.retain(|other| *other != endpoint);
            let _ = socket.disconnect(&endpoint); // the program may have done so
        }
    }
}
