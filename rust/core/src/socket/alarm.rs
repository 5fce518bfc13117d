//! The alarm of a socket: an I/O thread keeps the time, and reports when a deadline has passed.

use std::sync::PoisonError;
use std::time::Instant;

use crate::io_thread::IoHandle;
use crate::reactor::{End, EventHandler, Reactor, Token};
use crate::sys::selector::Readiness;
use crate::sys::sync::{Arc, Mutex, MutexGuard, Weak};

/// The owner of an alarm.
pub(super) trait Alarmed: Send + Sync {
    /// The time for which the alarm was set has passed. Called from the I/O thread.
    fn on_alarm(&self);
    /// Whether it needs the alarm no longer.
    fn is_over(&self) -> bool;
}

/// The owner's side.
pub(super) struct Alarm {
    io: IoHandle,
    handler: Arc<Handler>,
    /// When the report will come, at the latest.
    at: Option<Instant>,
}

/// The I/O thread's side.
struct Handler {
    owner: Weak<dyn Alarmed>,
    setting: Mutex<Setting>,
}

#[derive(Default)]
struct Setting {
    token: Option<Token>,
    at: Option<Instant>,
}

impl Alarm {
    pub(super) fn new(io: IoHandle, owner: Weak<dyn Alarmed>) -> Alarm {
        let handler = Arc::new(Handler {
            owner,
            setting: Mutex::default(),
        });
        io.start(handler.clone());
        Alarm {
            io,
            handler,
            at: None,
        }
    }

    /// Sets the alarm, unless it is set for an earlier time. Its owner sets it again after each report.
    pub(super) fn set(&mut self, at: Instant) {
        if self.at.is_none_or(|set| set > at) {
            self.at = Some(at);
            self.handler.setting().at = Some(at);
            self.io.wake(self.handler.clone());
        }
    }

    /// The owner has processed the report.
    pub(super) fn note_report(&mut self) {
        self.at = None;
    }

    /// Ends the alarm of an owner that is over.
    pub(super) fn end(self) {
        self.io.wake(self.handler);
    }
}

impl Handler {
    fn setting(&self) -> MutexGuard<'_, Setting> {
        self.setting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn look(&self, io: &mut Reactor) {
        let owner = self.owner.upgrade().filter(|owner| !owner.is_over());
        let mut setting = self.setting();
        let Some(token) = setting.token else { return };
        let Some(owner) = owner else {
            setting.token = None;
            return io.remove(token);
        };
        match setting.at {
            Some(at) if at <= io.now() => {
                setting.at = None;
                drop(setting);
                owner.on_alarm();
            }
            Some(at) => io.set_timer(token, at),
            None => {}
        }
    }
}

impl EventHandler for Handler {
    fn on_start(&self, io: &mut Reactor, token: Token) {
        self.setting().token = Some(token);
        self.look(io);
    }

    fn on_ready(&self, _: &mut Reactor, _: Readiness) {}

    fn on_wake(&self, io: &mut Reactor) {
        self.look(io);
    }

    fn on_timeout(&self, io: &mut Reactor) {
        self.look(io);
    }

    fn on_end(&self, _: &mut Reactor, _: End) {
        self.setting().token = None;
    }
}
