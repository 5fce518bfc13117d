//! Reading and changing a socket's options.

use std::sync::Arc;

use zeroxide_proto::wires;

use super::Socket;
use super::core::State;
use crate::error::{Error, ErrorKind, Result};
use crate::options::{OptionRow, PatternOption, Value, ids};
use crate::pipe::Limit;

impl Socket {
    /// Changes an option by its number in `zmq.h`. Most options only affect later binds and connects. Those marked live
    /// in [`SOCKET_OPTIONS`](crate::SOCKET_OPTIONS) take effect at once.
    ///
    /// # Errors
    /// `Invalid` if this socket type has no such option, if the option cannot be written, or if it does not accept this
    /// value; `Terminated`, `NotSocket`.
    pub fn set_option(&self, id: i32, value: &Value) -> Result<()> {
        let core = self.core();
        let mut state = core.lock_open()?;
        core.process(&mut state);
        let row = core.registry.mechanisms.row(id)?;
        core.spec().check_option(&row)?;
        core.check_spill_option(&state.options, id, value)?;
        if let (ids::WIRE_PROTOCOL, Value::Int(number)) = (id, value)
            && let Some(wire) = wires::numbered(*number)
        {
            core.speak(&mut state, wire)?;
        }
        Arc::make_mut(&mut state.options).set_row(&row, value)?;
        if let Some(option) = core.spec().option(id, value) {
            let option = option?;
            let state = &mut *state;
            state.pattern.set(&mut state.pipes, &option)?;
            // The other end waits for subscriptions.
            if matches!(
                option,
                PatternOption::Subscribe(_) | PatternOption::Unsubscribe(_)
            ) {
                core.settle(state);
            }
            if core.spec().timed {
                core.set_alarm(state);
            }
        }
        match id {
            ids::SNDHWM | ids::SNDHWM_BYTES => limit_out(&mut state),
            ids::RCVHWM | ids::RCVHWM_BYTES => limit_in(&mut state),
            ids::SPILL_BYTES => {
                let limit = state.options.spill_bytes;
                if let Some(overflow) = state.pipes.overflow_mut() {
                    overflow.set_limit(limit);
                }
            }
            _ => {}
        }
        core.settle(&mut state);
        core.level(&mut state);
        drop(state);
        // Messages on disk and blocked calls may be able to continue.
        core.ring_spiller();
        core.signal.wake();
        Ok(())
    }

    /// Subscribes to the messages whose first part begins with `topic`, in addition to earlier subscriptions; an empty
    /// topic matches every message. This is for SUB, and for XPUB with XPUB_MANUAL, where it applies to the peer whose
    /// subscription was received last.
    ///
    /// # Errors
    /// `Invalid` for other types; `Terminated`, `NotSocket`.
    pub fn subscribe(&self, topic: impl AsRef<[u8]>) -> Result<()> {
        self.set_option(ids::SUBSCRIBE, &Value::from(topic.as_ref()))
    }

    /// Cancels one [`subscribe`](Self::subscribe) to the same topic.
    ///
    /// # Errors
    /// As [`subscribe`](Self::subscribe).
    pub fn unsubscribe(&self, topic: impl AsRef<[u8]>) -> Result<()> {
        self.set_option(ids::UNSUBSCRIBE, &Value::from(topic.as_ref()))
    }

    /// Returns the value of an option by its number in `zmq.h`.
    ///
    /// # Errors
    /// `Invalid` if there is no such option or it cannot be read; `Terminated`, `NotSocket`.
    pub fn get_option(&self, id: i32) -> Result<Value> {
        let core = self.core();
        match id {
            ids::RCVMORE => {
                core.check_open()?;
                Ok(Value::Int(i64::from(self.rcvmore())))
            }
            ids::EVENTS => Ok(Value::Int(self.events()?.bits().into())),
            ids::FD => Ok(Value::Int(i64::from(self.fd()?))),
            ids::LAST_ENDPOINT => Ok(Value::from(core.lock_open()?.endpoints.last())),
            ids::ROUTING_ID => {
                let state = core.lock_open()?;
                match state.pattern.newest_routing_id() {
                    Some(id) => Ok(Value::Bytes(id.to_vec())),
                    None => state.options.get(id),
                }
            }
            ids::TOPICS_COUNT => {
                let mut state = core.lock_open()?;
                core.spec().check_option(OptionRow::find(id)?)?;
                // Subscriptions that have arrived meanwhile count.
                core.process(&mut state);
                Ok(Value::Int(state.pattern.topics().unwrap_or(0) as i64))
            }
            _ => {
                let state = core.lock_open()?;
                let row = core.registry.mechanisms.row(id)?;
                state.options.get_row(&row)
            }
        }
    }

    /// Returns the value of a numeric option.
    ///
    /// # Errors
    /// As [`get_option`](Self::get_option); `Invalid` if the option is not numeric.
    pub fn get_int(&self, id: i32) -> Result<i64> {
        match self.get_option(id)? {
            Value::Int(number) => Ok(number),
            Value::Bytes(_) => Err(Error::new(ErrorKind::Invalid)),
        }
    }
}

/// Applies the high-water marks to existing pipes, too.
fn limit_out(state: &mut State) {
    let limit = Limit::outbound(&state.options);
    for id in state.pipes.ids() {
        if let Some(pipe) = state.pipes.get(id) {
            pipe.set_limit_out(limit);
            // A full pipe may have room now, and its reader will not report it.
            state.pattern.writable(&mut state.pipes, id);
        }
    }
}

fn limit_in(state: &mut State) {
    let limit = Limit::inbound(&state.options);
    for id in state.pipes.ids() {
        if let Some(pipe) = state.pipes.get(id) {
            pipe.set_limit_in(limit);
        }
    }
}
