//! The states of a lane, without Python: `tests/states.rs` includes this file, and compares its tables with
//! `docs/states.md`.

/// Whether the loop watches the lane's descriptor, and the object that the lane keeps alive meanwhile.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Watch<H> {
    /// The loop does not watch the descriptor.
    #[default]
    Apart,
    /// The loop watches the descriptor, and no call waits.
    Resting,
    /// The loop watches the descriptor, and calls wait. They keep the socket alive.
    Waiting(H),
}

/// An event that changes the state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum WatchEvent<H> {
    /// A call waits.
    Wait(H),
    /// No call waits any more.
    Rest,
    /// The lane leaves the loop.
    Leave,
}

impl<H> Watch<H> {
    /// Returns the next state, and the holder that is released.
    pub(super) fn next(self, event: WatchEvent<H>) -> (Watch<H>, Option<H>) {
        match (self, event) {
            (Watch::Apart | Watch::Resting, WatchEvent::Wait(holder)) => {
                (Watch::Waiting(holder), None)
            }
            (Watch::Waiting(holder), WatchEvent::Wait(another)) => {
                (Watch::Waiting(holder), Some(another))
            }
            (Watch::Waiting(holder), WatchEvent::Rest) => (Watch::Resting, Some(holder)),
            (Watch::Waiting(holder), WatchEvent::Leave) => (Watch::Apart, Some(holder)),
            (Watch::Resting, WatchEvent::Rest) => (Watch::Resting, None),
            (Watch::Apart | Watch::Resting, WatchEvent::Leave)
            | (Watch::Apart, WatchEvent::Rest) => (Watch::Apart, None),
        }
    }
}

/// The work on the queues of a lane. A callback of one call may make another call.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Work {
    /// No code works on the queues.
    #[default]
    Idle,
    /// The calls that wait are being served.
    Serving,
    /// The calls are being served, and there is more to do: all are served once more.
    Again,
    /// The calls are being served, and one of them continues after the loop has turned. Then all are served once more.
    Paused,
}

/// An event that changes the state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum WorkEvent {
    /// There may be messages or room for the calls that wait.
    Serve,
    /// A call must let the loop turn before it continues.
    Pause,
    /// All calls were served, and are served once more.
    Repeat,
    /// The work ends.
    Stop,
}

impl Work {
    pub(super) fn next(self, event: WorkEvent) -> Work {
        match (self, event) {
            (_, WorkEvent::Stop) => Work::Idle,
            (Work::Idle, WorkEvent::Serve) => Work::Serving,
            (Work::Serving, WorkEvent::Serve) => Work::Again,
            (Work::Again, WorkEvent::Repeat) => Work::Serving,
            (Work::Serving | Work::Again, WorkEvent::Pause) => Work::Paused,
            (Work::Again | Work::Paused, WorkEvent::Serve)
            | (Work::Paused | Work::Idle, WorkEvent::Pause)
            | (Work::Idle | Work::Serving | Work::Paused, WorkEvent::Repeat) => self,
        }
    }
}
