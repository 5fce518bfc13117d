//! A connect to a host name, or to an address without a route. The resolver of the context looks the name up without
//! blocking, and again after a failure; then [`datagrams`] takes over. Messages wait in the pipe meanwhile.

use std::mem;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use socket2::Socket;
use zeroxide_proto::datagram::LARGEST;

use super::place::{self, Goal, Place};
use crate::error::Result;
use crate::monitor::{EventKind, MonitorEvent};
use crate::resolver::{HostPort, Job};
use crate::sys::sync::{Arc, Mutex, PoisonError};
use crate::sys::wake_fd::WakeFd;
use crate::transports::datagrams;
use crate::transports::messages::{MessagePipe, MessagePort};
use crate::transports::worker::{IoWork, IoWorker, Next};

/// See the module text.
pub(super) struct Seeker {
    goal: Goal,
    place: Place,
    port: MessagePort,
    /// `None` once the flow has it.
    pipe: Option<MessagePipe>,
    /// Where the flow will run.
    flow: IoWorker,
    state: State,
    /// The time between two attempts.
    delay: Option<Duration>,
    /// After the socket has closed its end: until when to go on. `None` means forever.
    deadline: Option<Option<Instant>>,
    /// There is nothing to watch before there is a socket.
    idle: WakeFd,
    waker: Arc<dyn Fn() + Send + Sync>,
}

type Answer = Arc<Mutex<Option<Result<Vec<SocketAddr>>>>>;

enum State {
    /// The next attempt is due at this time.
    Waiting(Instant),
    /// The resolver will answer.
    Asked(Answer),
}

/// Begins to look for the receiver.
///
/// # Errors
/// The system's error if there is no descriptor, and `NoThread`.
pub(super) fn start(goal: Goal, place: Place, port: MessagePort, now: Instant) -> Result<()> {
    let (worker, flow) = (port.io_worker()?, port.io_worker()?);
    let idle = WakeFd::new()?;
    let waker: Arc<dyn Fn() + Send + Sync> = Arc::new(worker.waker());
    let (wake_seeker, wake_flow) = (waker.clone(), flow.waker());
    let pipe = datagrams::open_early(&port, move || {
        wake_seeker();
        wake_flow();
    });
    let delay = port.options.reconnect_ivl;
    worker.start(Seeker {
        goal,
        place,
        port,
        pipe: Some(pipe),
        flow,
        state: State::Waiting(now),
        delay,
        deadline: None,
        idle,
        waker,
    });
    Ok(())
}

impl Seeker {
    /// Asks the resolver for a name. Returns a socket at once if there is no name.
    fn try_now(&mut self) -> Result<Option<(Socket, SocketAddr)>> {
        match &self.goal {
            Goal::Address(target) => self.open(*target).map(Some),
            Goal::Name(name) => {
                let name = name.clone();
                self.ask(name).map(|()| None)
            }
        }
    }

    fn ask(&mut self, name: HostPort) -> Result<()> {
        let answer = Answer::default();
        let (waker, theirs) = (self.waker.clone(), answer.clone());
        let job = Job::new(name, Ok);
        self.port.look_up(job, move |found| {
            *theirs.lock().unwrap_or_else(PoisonError::into_inner) = Some(found);
            waker();
        })?;
        self.state = State::Asked(answer);
        Ok(())
    }

    /// Takes the answer of the resolver, if it has come, and opens a socket.
    fn take_answer(&mut self) -> Option<Result<(Socket, SocketAddr)>> {
        let State::Asked(answer) = &self.state else {
            return None;
        };
        let mut answer = answer.lock().unwrap_or_else(PoisonError::into_inner);
        let found = answer.take()?;
        Some(found.and_then(|found| self.open(place::choose(found, &self.port.options)?)))
    }

    fn open(&self, target: SocketAddr) -> Result<(Socket, SocketAddr)> {
        let (socket, target, _) = place::open(&self.place, target, &self.port.options, LARGEST)?;
        Ok((socket, target))
    }

    fn found(&mut self, socket: Socket, target: SocketAddr) {
        if let Some(pipe) = self.pipe.take() {
            let renew = place::renewal(&self.place, target, &self.port.options);
            datagrams::announce_and_send(
                &self.flow,
                socket,
                pipe,
                self.port.clone(),
                target,
                renew,
            );
        }
    }

    /// Reports a failure. Returns when to try again, if ever.
    fn failed(&mut self, error: &crate::error::Error, now: Instant) -> Option<Instant> {
        let endpoint = self.port.endpoint();
        let event = MonitorEvent::new(EventKind::Closed, error.errno() as u64, endpoint);
        self.port.emit(event.because(error));
        // A zero interval must not become a busy loop.
        let delay = self.delay?.max(Duration::from_millis(1));
        let most = self.port.options.reconnect_ivl_max;
        self.delay = Some(most.map_or(delay, |most| (delay * 2).min(most).max(delay)));
        let retried = MonitorEvent::new(
            EventKind::ConnectRetried,
            delay.as_millis() as u64,
            endpoint,
        );
        self.port.emit(retried);
        now.checked_add(delay)
    }

    /// When to give up, because the socket has closed its end. `Some(None)` means never.
    fn deadline(&mut self, now: Instant) -> Option<Option<Instant>> {
        let pipe = self.pipe.as_mut().filter(|pipe| pipe.is_closed())?;
        if pipe.pipe.is_finished() {
            return Some(Some(now));
        }
        let linger = pipe.linger();
        let until = || linger.and_then(|linger| now.checked_add(linger));
        Some(*self.deadline.get_or_insert_with(until))
    }
}

impl IoWork for Seeker {
    fn descriptor(&self) -> BorrowedFd<'_> {
        self.idle.as_fd()
    }

    fn run(&mut self, now: Instant) -> Next {
        let deadline = self.deadline(now).flatten();
        if deadline.is_some_and(|at| at <= now) {
            return Next::Never;
        }
        let found = match &self.state {
            State::Waiting(at) if *at <= now => self.try_now(),
            State::Waiting(_) => Ok(None),
            State::Asked(_) => self.take_answer().transpose(),
        };
        match found {
            Ok(Some((socket, target))) => {
                self.found(socket, target);
                return Next::Never;
            }
            Ok(None) => {}
            Err(error) => match self.failed(&error, now) {
                Some(at) => drop(mem::replace(&mut self.state, State::Waiting(at))),
                None => return Next::Never,
            },
        }
        let retry = match &self.state {
            State::Waiting(at) => Some(*at),
            State::Asked(_) => None,
        };
        match [retry, deadline].into_iter().flatten().min() {
            Some(at) => Next::At(at),
            None => Next::Event,
        }
    }
}
