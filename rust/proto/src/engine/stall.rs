//! [`Stall`] detects peers that begin a message and never end it.

use std::time::{Duration, Instant};

/// Watches a connection with a partly received message. Such a part takes memory, which a peer that vanished in the
/// middle would keep forever.
#[derive(Debug)]
pub(super) struct Stall {
    patience: Option<Duration>,
    /// When to check next, and whether anything was received since the last check.
    look: Option<Instant>,
    heard: bool,
}

impl Stall {
    /// `None` and zero wait forever.
    pub(super) fn new(patience: Option<Duration>) -> Stall {
        Stall {
            patience: patience.filter(|patience| !patience.is_zero()),
            look: None,
            heard: true,
        }
    }

    /// Received anything from the peer.
    #[inline]
    pub(super) fn handle_input(&mut self) {
        self.heard = true;
    }

    /// Everything received has been processed, and ends within a message.
    #[inline]
    pub(super) fn handle_part(&mut self, now: Instant) {
        // Armed once and not again with each read, because most parts are soon complete.
        if self.look.is_none()
            && let Some(patience) = self.patience
        {
            self.look = now.checked_add(patience);
        }
    }

    /// Handles the passing of time. `listening` tells whether we have processed everything the peer sent, `partial`
    /// whether that ends within a message. Returns true if the peer has been silent for too long.
    pub(super) fn handle_timeout(&mut self, now: Instant, listening: bool, partial: bool) -> bool {
        if self.look.is_none_or(|at| at > now) {
            return false;
        }
        // Unprocessed input does not count as silence of the peer.
        let heard = std::mem::replace(&mut self.heard, !listening);
        if partial && listening && !heard {
            return true;
        }
        let again = self.patience.filter(|_| partial);
        self.look = again.and_then(|patience| now.checked_add(patience));
        false
    }

    /// When [`handle_timeout`](Stall::handle_timeout) is due.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.look
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn silence_within_a_message_is_noticed_between_once_and_twice_the_patience() {
        let start = Instant::now();
        let mut stall = Stall::new(Some(SECOND));
        assert_eq!(stall.poll_timeout(), None);
        stall.handle_input();
        stall.handle_part(start);
        assert_eq!(stall.poll_timeout(), Some(start + SECOND));
        // Input in between is a sign of life and moves no timer.
        stall.handle_input();
        stall.handle_part(start + SECOND / 2);
        assert_eq!(stall.poll_timeout(), Some(start + SECOND));
        assert!(!stall.handle_timeout(start + SECOND, true, true));
        assert_eq!(stall.poll_timeout(), Some(start + SECOND * 2));
        assert!(stall.handle_timeout(start + SECOND * 2, true, true));
    }

    #[test]
    fn nothing_is_watched_between_messages() {
        let start = Instant::now();
        let mut stall = Stall::new(Some(SECOND));
        stall.handle_part(start);
        assert!(!stall.handle_timeout(start + SECOND, true, false));
        assert_eq!(stall.poll_timeout(), None);
    }

    #[test]
    fn unprocessed_input_is_not_silence() {
        let mut now = Instant::now();
        let mut stall = Stall::new(Some(SECOND));
        stall.handle_part(now);
        for _ in 0..10 {
            now += SECOND;
            assert!(!stall.handle_timeout(now, false, true));
        }
        now += SECOND;
        assert!(!stall.handle_timeout(now, true, true));
        now += SECOND;
        assert!(stall.handle_timeout(now, true, true));
    }

    #[test]
    fn without_patience_there_is_no_end() {
        for patience in [None, Some(Duration::ZERO)] {
            let mut stall = Stall::new(patience);
            stall.handle_part(Instant::now());
            assert_eq!(stall.poll_timeout(), None);
        }
    }
}
