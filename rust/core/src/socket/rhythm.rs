//! How messages come and go between two waits.

/// What the calls since the last wait say about the next one.
#[derive(Default)]
pub(super) struct Rhythm {
    pub(super) received: u32,
    pub(super) sent: bool,
}

impl Rhythm {
    #[inline]
    pub(super) fn note_received(&mut self) {
        self.received = self.received.saturating_add(1);
    }

    pub(super) fn note_run(&mut self, count: usize) {
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        self.received = self.received.saturating_add(count);
    }

    #[inline]
    pub(super) fn note_sent(&mut self) {
        self.sent = true;
    }
}
