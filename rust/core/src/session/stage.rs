//! The states of a session's link without their data, and one table of them.
//!
//! [`Stage::next`] has no effects. `docs/states.md` shows its table, which a test draws from this code.
//! [`State::enter`](super::State::enter) compares each change of a link with it.

/// A state of the link. [`Link`](super::Link) holds its data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stage {
    /// Nothing is under way.
    Idle,
    /// The resolver looks up the name of the peer's host.
    Resolving,
    /// The session waits for the next round of addresses.
    Waiting,
    /// Other sessions connect to the address first.
    Queued,
    /// The kernel connects.
    Connecting,
    /// The layers of the stream do their handshakes.
    Layering,
    /// The engine has the stream.
    Up,
    /// Nothing is written any more, and the peer's kernel has yet to acknowledge what was.
    Draining,
}

/// An event that changes [`Stage`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Step {
    /// A round begins with the look-up of a name.
    LookUp,
    /// It is not this session's turn at the address.
    Queue,
    /// The kernel has begun to connect.
    Connect,
    /// The kernel has connected, and the stream has layers with handshakes.
    Layer,
    /// The kernel has connected, and all layers have finished their handshakes.
    Begin,
    /// No address is left in this round.
    Wait,
    /// The socket closes, and everything was written or its time is up.
    Drain,
    /// The stream is dropped: it took too long, was lost or is not wanted any more, or the session ends.
    Drop,
}

impl Stage {
    pub(super) fn next(self, step: Step) -> Stage {
        use Stage::{Connecting, Draining, Idle, Layering, Queued, Resolving, Up, Waiting};
        match (self, step) {
            (_, Step::Drop) => Idle,
            (Up, Step::Drain) => Draining,
            // A connection ends with its stream.
            (Up | Draining, _) => self,
            (Idle | Waiting, Step::LookUp) => Resolving,
            (Resolving | Queued | Connecting | Layering, Step::LookUp) => self,
            // After an address fails, the next one is tried without a pause.
            (Idle | Resolving | Waiting | Queued | Connecting | Layering, step) => match step {
                Step::Queue => Queued,
                Step::Connect => Connecting,
                Step::Layer => Layering,
                Step::Begin => Up,
                Step::Wait => Waiting,
                Step::LookUp | Step::Drain | Step::Drop => self,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drawing;

    drawing::events!(Step {
        LookUp => "a name is looked up",
        Queue => "others come first",
        Connect => "the kernel connects",
        Layer => "connected, with layers",
        Begin => "connected, layers ready",
        Wait => "no address left",
        Drain => "closed, nothing to write",
        Drop => "the stream is dropped",
    });

    /// A connecting session begins without a stream, and an accepted session with one.
    const STARTS: &[Stage] = &[Stage::Idle, Stage::Layering, Stage::Up];

    fn state_name(stage: Stage) -> String {
        format!("`{stage:?}`")
    }

    #[test]
    fn the_page_shows_the_links() {
        drawing::check("link", STARTS, EVENTS, Stage::next, state_name, event_name);
    }

    #[test]
    fn a_connection_is_up_only_after_the_handshakes_of_its_layers() {
        for stage in drawing::reachable(STARTS, EVENTS, Stage::next, state_name) {
            assert_eq!(stage.next(Step::Drop), Stage::Idle);
            let leads_to_up = EVENTS.iter().filter(|step| stage.next(**step) == Stage::Up);
            let is_allowed = |step: &Step| *step == Step::Begin || stage == Stage::Up;
            assert!(leads_to_up.into_iter().all(is_allowed));
        }
    }
}
