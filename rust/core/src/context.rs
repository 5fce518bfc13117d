//! Contexts, which create sockets and wait for their end.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use zeroxide_proto::socket_type::SocketType;

use crate::capabilities;
use crate::error::{Error, ErrorKind, Result};
use crate::mechanisms::MechanismSpec;
use crate::options::typed::{Typed, typed_option};
use crate::options::{ContextOptions, Value, context_ids, context_options};
use crate::patterns::PatternSpec;
use crate::registry::Registry;
use crate::signal::Woken;
use crate::socket::Socket;
use crate::sys::clock;
use crate::sys::thread::{self, ThreadSettings};
use crate::transports::{MessageTransport, Transport};
use crate::undelivered::Undelivered;

/// The interval at which an implicit termination checks whether bytes still move.
const PROGRESS_STEP: Duration = Duration::from_millis(50);

/// How long the end of a context waits for objects that have to end at once.
const GRACE: Duration = Duration::from_millis(500);

/// A context: I/O threads and the names of inproc endpoints. Clones are the same context. Contexts are independent of
/// each other.
///
/// When the last clone is dropped without [`term`](Self::term), open sockets keep working, and the I/O threads end
/// after the last message was delivered.
#[derive(Clone)]
pub struct Context {
    handle: Arc<Handle>,
}

struct Handle {
    registry: Arc<Registry>,
}

impl Drop for Handle {
    fn drop(&mut self) {
        let registry = self.registry.clone();
        if !registry.is_own_process() || registry.has_ended() {
            return;
        }
        let settings = ThreadSettings {
            name: "zeroxide/reaper".to_owned(),
            ..ThreadSettings::default()
        };
        // Without this thread, the I/O threads continue to exist, which is harmless.
        let _ = thread::spawn(settings, move || {
            while registry.wait_idle(None) == Woken::Interrupted {}
            registry.end();
        });
    }
}

impl Context {
    /// A context with the defaults: one I/O thread, 1023 sockets.
    pub fn new() -> Context {
        Context::with_options(ContextOptions::default())
    }

    /// A context with other options. Its threads start with its first socket.
    pub fn with_options(options: ContextOptions) -> Context {
        Context {
            handle: Arc::new(Handle {
                registry: Registry::new(options),
            }),
        }
    }

    pub(crate) fn registry(&self) -> &Arc<Registry> {
        &self.handle.registry
    }

    /// Whether this process created the context. A forked child must create its own.
    pub fn is_own_process(&self) -> bool {
        self.registry().is_own_process()
    }

    fn check_process(&self) -> Result<()> {
        if self.is_own_process() {
            return Ok(());
        }
        let pid = self.registry().pid();
        Err(Error::with(
            ErrorKind::Forked,
            format!("this context belongs to process {pid}; make a new one after fork"),
        ))
    }

    /// Creates a socket.
    ///
    /// # Errors
    /// `Terminated`; `TooManySockets` at MAX_SOCKETS or when the system has no descriptors left; `Invalid` if the type is
    /// another crate's and was not added; `Forked` in a child of the process that made the context.
    pub fn socket(&self, socket_type: SocketType) -> Result<Socket> {
        self.check_process()?;
        Socket::new(self.registry(), socket_type)
    }

    /// Adds a transport of messages, for every socket of this context.
    ///
    /// # Errors
    /// `AddressInUse` if the context has a transport with its scheme; `Forked`.
    pub fn add_transport(&self, transport: Arc<dyn MessageTransport>) -> Result<()> {
        self.check_process()?;
        let transport = Transport::Messages(transport);
        self.registry().transports.add(transport)
    }

    /// Adds a pattern of another crate, for every socket that is created afterwards. The module [`patterns`](crate::patterns)
    /// shows how to write one.
    ///
    /// # Errors
    /// `AddressInUse` if the context has a socket type with its name or its number; `Invalid` if its name is not an ASCII
    /// word; `Forked`.
    pub fn add_pattern(&self, pattern: &'static PatternSpec) -> Result<()> {
        self.check_process()?;
        self.registry().patterns.add(pattern)
    }

    /// The socket type with this number: ZeroMQ's own, or of a pattern that was added.
    pub fn socket_type(&self, number: i32) -> Option<SocketType> {
        self.registry().patterns.numbered(number)
    }

    /// Adds a security mechanism of another crate, for every socket of this context. Its options are set by their numbers,
    /// with [`Socket::set_option`]. The module [`mechanisms`](crate::mechanisms) shows how to write one.
    ///
    /// # Errors
    /// `AddressInUse` if the context has a mechanism with its name or its number, or an option with the number of one of
    /// its options; `Invalid` if its name does not fit into a greeting; `Forked`.
    pub fn add_mechanism(&self, mechanism: &'static MechanismSpec) -> Result<()> {
        self.check_process()?;
        self.registry().mechanisms.add(mechanism)
    }

    /// Whether the context has a transport or a security mechanism, by its name in lower case: those of [`has`](crate::has),
    /// and those that were added.
    pub fn has(&self, capability: &str) -> bool {
        let registry = self.registry();
        capabilities::has(capability)
            || registry.transports.is_added(capability)
            || registry.mechanisms.has(capability)
    }

    /// Changes a context option by its number in `zmq.h`.
    ///
    /// # Errors
    /// `Invalid` for an unknown option or value; `Forked`.
    pub fn set_option(&self, id: i32, value: &Value) -> Result<()> {
        self.check_process()?;
        self.registry()
            .with_options(|options| options.set(id, value))
    }

    /// The value of a context option.
    ///
    /// # Errors
    /// `Invalid` for an unknown option; `Forked`.
    pub fn get_option(&self, id: i32) -> Result<Value> {
        self.check_process()?;
        self.registry().with_options(|options| options.get(id))
    }

    /// Makes all current and later calls on its sockets fail with `Terminated`, except close. Returns at once.
    pub fn shutdown(&self) {
        if self.is_own_process() {
            self.registry().shut_down();
        }
    }

    /// Whether [`shutdown`](Self::shutdown) or [`term`](Self::term) was called.
    pub fn is_shut_down(&self) -> bool {
        self.registry().is_shut_down()
    }

    /// Shuts the context down, waits until every socket is closed by its owner and its messages are delivered or its
    /// LINGER has expired, and ends the I/O threads.
    ///
    /// # Errors
    /// `Interrupted` if a signal handler ran: call again. `Forked`.
    pub fn term(&self) -> Result<()> {
        self.term_until(None)
    }

    /// Like [`term`](Self::term), with a deadline (`None` = no limit).
    ///
    /// # Errors
    /// As for [`term`](Self::term), and `Again` if the deadline passed: call again.
    pub fn term_until(&self, deadline: Option<Instant>) -> Result<()> {
        self.check_process()?;
        self.registry().shut_down();
        match self.registry().wait_idle(deadline) {
            Woken::Interrupted => Err(Error::new(ErrorKind::Interrupted)),
            Woken::TimedOut => Err(Error::new(ErrorKind::Again)),
            Woken::Notified => {
                self.registry().end();
                Ok(())
            }
        }
    }

    /// Terminates the context within `timeout` (`None` = no limit), and returns what was not delivered, and to whom.
    ///
    /// Like [`term`](Self::term), this waits until every socket is closed by its owner and its messages are delivered or
    /// its LINGER has expired. When the time is up, the sockets that are still open are closed, what is left to be
    /// delivered is given up, and the context ends. The report has what all closed sockets of the context gave up, also
    /// before this call.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use zeroxide::{Context, SocketType, Wait};
    /// # fn main() -> zeroxide::Result<()> {
    /// let context = Context::new();
    /// let push = context.socket(SocketType::Push)?;
    /// push.connect("tcp://127.0.0.1:9")?;
    /// push.send("lost", Wait::Forever)?;
    /// push.close(None);
    /// let undelivered = context.term_within(Some(Duration::from_millis(10)))?;
    /// assert_eq!(undelivered.messages(), 1);
    /// assert_eq!(undelivered.peers[0].endpoint, "tcp://127.0.0.1:9");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `Interrupted` if a signal handler ran: call again with the rest of the time. `Forked`.
    pub fn term_within(&self, timeout: Option<Duration>) -> Result<Undelivered> {
        let deadline = timeout.and_then(|timeout| clock::now().checked_add(timeout));
        self.term_by(deadline, deadline)
    }

    /// Like [`term_within`](Self::term_within), for callers that wait in steps: waits no longer than `until`.
    ///
    /// # Errors
    /// As for [`term_within`](Self::term_within), and `Again` if `until` has passed and `deadline` has not.
    #[doc(hidden)]
    pub fn term_by(
        &self,
        deadline: Option<Instant>,
        until: Option<Instant>,
    ) -> Result<Undelivered> {
        if self.has_ended() {
            return Ok(self.registry().given_up());
        }
        match self.term_until(earlier(deadline, until)) {
            Err(error) if error.kind() == ErrorKind::Again => {}
            outcome => return outcome.map(|()| self.registry().given_up()),
        }
        let now = clock::now();
        if deadline.is_none_or(|at| at > now) {
            return Err(Error::new(ErrorKind::Again));
        }
        let registry = self.registry();
        registry.close_sockets(Some(Duration::ZERO));
        registry.end_deliveries_by(now, None);
        if registry.wait_idle(Some(now + GRACE)) == Woken::Interrupted {
            return Err(Error::new(ErrorKind::Interrupted));
        }
        // Sessions that have not ended by now give up in here.
        registry.end();
        Ok(registry.given_up())
    }

    /// Whether the context has ended: a termination succeeded, or gave up.
    pub fn has_ended(&self) -> bool {
        self.registry().has_ended()
    }

    /// Terminates the context for an exiting program that did not do so itself: closes every socket with its own
    /// LINGER, waits while bytes move, gives up after `patience` without progress, and returns what was not delivered by
    /// then, and what closed sockets have lost with their peers unless [`close_within`](crate::Socket::close_within) has
    /// reported it. The time counts from the shutdown, so several contexts that are shut down first and then ended one
    /// after the other share it.
    ///
    /// # Errors
    /// `Interrupted` if a signal handler ran: call again. `Forked`.
    pub fn term_idle(&self, patience: Duration) -> Result<Undelivered> {
        self.check_process()?;
        let registry = self.registry();
        registry.shut_down();
        registry.close_sockets(None);
        loop {
            let rest = patience.saturating_sub(registry.without_progress());
            match registry.wait_idle(Some(clock::now() + rest.min(PROGRESS_STEP))) {
                Woken::Notified => {
                    registry.end();
                    return Ok(registry.lost());
                }
                Woken::Interrupted => return Err(Error::new(ErrorKind::Interrupted)),
                Woken::TimedOut => {}
            }
            if registry.without_progress() >= patience {
                let mut left = registry.lost();
                left.peers.extend(registry.left_on_disk());
                registry.end();
                return Ok(left);
            }
        }
    }

    /// A number that is the same for all clones of a context, and distinct from other contexts.
    pub fn id(&self) -> usize {
        Arc::as_ptr(self.registry()) as usize
    }
}

macro_rules! methods {
    ($($id:literal $name:ident [$($typed:tt)*] $access:ident: $doc:literal,)*) => {
        /// Options by name, in the types of their values. Those of threads hold for threads that start later, so set them
        /// before the first socket is created.
        impl Context {
            $(typed_option!([$($typed)*] context_ids::$name, $doc);)*
        }
    };
}

context_options!(methods);

fn earlier(a: Option<Instant>, b: Option<Instant>) -> Option<Instant> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Context({:#x})", self.id())
    }
}

impl Default for Context {
    fn default() -> Context {
        Context::new()
    }
}
