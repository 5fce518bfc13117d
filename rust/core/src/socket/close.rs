//! Closing a socket.

use std::sync::Arc;
use std::time::Duration;

use super::Socket;
use super::core::Core;

impl Socket {
    /// Closes the socket for all its handles. Messages that were sent are still delivered for LINGER, or for `linger`
    /// if given (`Some(None)` means forever). The termination of the context waits for that; this call does not. Calls
    /// that are blocked in the socket fail with `NotSocket`.
    pub fn close(&self, linger: Option<Option<Duration>>) {
        self.core().close(linger);
    }
}

impl Core {
    pub(super) fn close(&self, linger: Option<Option<Duration>>) {
        if !self.registry.is_own_process() || !self.begin_close() {
            return;
        }
        let guard = {
            let mut state = self.lock();
            if let Some(linger) = linger {
                Arc::make_mut(&mut state.options).linger = linger;
            }
            self.process(&mut state);
            self.leave_all(&mut state);
            state.returned.clear();
            // The remaining pipes do not belong to an endpoint, such as a pipe of a context that has been shut down.
            for id in state.pipes.ids() {
                let linger = state.options.linger;
                if let Some(pipe) = state.pipes.get(id) {
                    pipe.set_linger(linger);
                }
                self.detach_now(&mut state, id);
            }
            self.level(&mut state);
            state.guard.take()
        };
        // After the listeners, so that a monitor gets the events of their end.
        self.end_monitors();
        self.parts().clear();
        if let Some(key) = self.key.get() {
            self.registry.remove_socket(*key);
        }
        self.signal.wake();
        self.signal.raise();
        drop(guard);
    }
}
