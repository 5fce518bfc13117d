//! The targets, one file each.

mod arrow;
mod batch;
mod commands;
mod curve;
mod endpoint;
mod engine;
mod frames;
mod log;
mod options;
mod peer;
mod queues;
mod spool;
mod stored;
mod wire;
mod ws;

use tempfile::TempDir;

use crate::Target;

/// Every target.
pub static TARGETS: &[Target] = &[
    engine::TARGET,
    curve::TARGET,
    frames::TARGET,
    commands::TARGET,
    endpoint::TARGET,
    options::TARGET,
    ws::TARGET,
    wire::TARGET,
    batch::TARGET,
    stored::TARGET,
    arrow::TARGET,
    log::TARGET,
    spool::TARGET,
    queues::TARGET,
];

/// Reads parts of an input. At its end, there are zeros and nothing.
struct Parts<'a>(&'a [u8]);

impl<'a> Parts<'a> {
    fn byte(&mut self) -> u8 {
        self.take(1).first().copied().unwrap_or_default()
    }

    fn short(&mut self) -> usize {
        usize::from(self.byte()) | usize::from(self.byte()) << 8
    }

    /// At most this many bytes.
    fn take(&mut self, count: usize) -> &'a [u8] {
        let (taken, left) = self.0.split_at(count.min(self.0.len()));
        self.0 = left;
        taken
    }

    /// A text, without what is not UTF-8.
    fn text(&mut self, count: usize) -> String {
        String::from_utf8_lossy(self.take(count)).into_owned()
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// In memory where that is possible, because every input makes files.
fn folder() -> TempDir {
    tempfile::tempdir_in("/dev/shm")
        .or_else(|_| tempfile::tempdir())
        .expect("a folder")
}
