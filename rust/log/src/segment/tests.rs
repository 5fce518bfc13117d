use tempfile::TempDir;

use super::*;
use crate::batch::Batch;
use crate::builder::{BatchBuilder, Row};
use crate::disk::OpenOptions;
use crate::frame::Origin;
use crate::log::{Log, LogConfig};

const TIME: i64 = 1_000;

/// A sealed segment of two rows, received at `TIME`, as a start finds it.
fn sealed() -> (TempDir, Segment) {
    let folder = tempfile::tempdir().unwrap();
    let mut log = Log::open(folder.path(), LogConfig::default()).unwrap();
    let batch = |value: &[u8]| -> Batch {
        let mut builder = BatchBuilder::new();
        builder
            .push(Row {
                value,
                ..Row::default()
            })
            .unwrap();
        builder.finish()
    };
    for value in [b"a", b"b"] {
        log.append(&Origin::plain(TIME), &batch(value)).unwrap();
    }
    let bytes = log.reader().bytes();
    log.close().unwrap();
    let path = path_of(folder.path(), 0);
    let segment = Segment::sealed(0, path, beginning_len(), 2, bytes, Some(TIME));
    (folder, segment)
}

#[test]
fn a_read_that_fails_once_changes_neither_times_nor_positions() {
    let (_folder, segment) = sealed();
    // It can be written to, but not read.
    let broken = OpenOptions::new().write(true).open(&segment.path).unwrap();
    assert_eq!(segment.locate(&broken, 1), (beginning_len(), 0));
    assert_eq!(segment.index().latest, Some(TIME));
    assert_eq!(segment.offset_at(TIME).unwrap(), Some(0));
    let file = segment.open().unwrap();
    segment.locate(&file, 1);
    assert!(segment.index().marks.is_some(), "the next read succeeds");
}

#[test]
fn a_damaged_segment_keeps_the_time_that_the_snapshot_has() {
    let (_folder, segment) = sealed();
    let file = OpenOptions::new().write(true).open(&segment.path).unwrap();
    file.set_len(beginning_len() + 8).unwrap();
    segment.locate(&segment.open().unwrap(), 1);
    assert_eq!(segment.index().latest, Some(TIME));
    assert_eq!(segment.offset_at(TIME).unwrap(), None);
}
