//! The log: the cost of a row when it is encoded, appended, synced, fetched and turned into columns.

use std::hint::black_box;

use bytes::Bytes;
use tempfile::TempDir;
use zeroxide_log::{Batch, BatchBuilder, Log, LogConfig, Origin, Row, Stored};

mod timing;

use timing::{Rows, measure};

/// Rows of a batch, as a busy producer sends them.
const ROWS: usize = 10_000;

fn main() {
    for size in [64, 1024] {
        let count = if size == 64 { ROWS } else { ROWS / 10 };
        let batch = batch(count, size);
        timing::run(&format!("log, {size} B"), |rows| {
            building(rows, count, size);
            the_wire(rows, &batch);
            appending(rows, &batch);
            fetching(rows, &batch);
        });
    }
}

fn batch(rows: usize, size: usize) -> Batch {
    let value = vec![7; size];
    let mut builder = BatchBuilder::new();
    for at in 0..rows {
        let time = 1_700_000_000_000_000 + at as i64;
        let row = Row {
            value: &value,
            topic: Some("ticks"),
            timestamp: Some(time),
            ..Row::default()
        };
        builder.push(row).expect("a small batch");
    }
    builder.finish()
}

fn origin(first_seq: u64) -> Origin {
    Origin {
        producer: "the bench".into(),
        epoch: 1,
        first_seq,
        receive_time: 1_700_000_000_000_000,
    }
}

/// A folder in memory, because the bench measures the log and not a disk.
fn folder() -> TempDir {
    let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
    folder.expect("a folder")
}

fn building(rows: &mut Rows<'_>, count: usize, size: usize) {
    measure(rows, "rows into a batch", count, || {
        black_box(batch(count, size));
    });
}

fn the_wire(rows: &mut Rows<'_>, batch: &Batch) {
    let mut bytes = Vec::new();
    measure(rows, "encode", batch.rows(), || {
        bytes.clear();
        batch.encode(&mut bytes);
        black_box(&bytes);
    });
    let bytes = Bytes::from(bytes);
    measure(rows, "decode and check", batch.rows(), || {
        black_box(Batch::decode(bytes.clone()).expect("a batch"));
    });
}

fn appending(rows: &mut Rows<'_>, batch: &Batch) {
    let folder = folder();
    let config = LogConfig {
        retention_bytes: Some(256 << 20),
        ..LogConfig::default()
    };
    let mut log = Log::open(folder.path(), config).expect("a log");
    let mut seq = 0;
    measure(rows, "append", batch.rows(), || {
        log.append(&origin(seq), batch).expect("room");
        seq += batch.rows() as u64;
        if seq.is_multiple_of(1 << 20) {
            log.sync().expect("a disk");
        }
        log.retain(0).expect("old segments");
    });
}

fn fetching(rows: &mut Rows<'_>, batch: &Batch) {
    let folder = folder();
    let mut log = Log::open(folder.path(), LogConfig::default()).expect("a log");
    let batches = (64 << 20) / batch.size() as u64;
    for at in 0..batches {
        log.append(&origin(at * batch.rows() as u64), batch)
            .expect("room");
    }
    log.sync().expect("a disk");
    let (reader, count) = (log.reader(), batches * batch.rows() as u64);
    // Fetched batches are dropped, as a collector drops them when it has sent them.
    let each_fetch = |mut look: Box<dyn FnMut(Stored) + '_>| {
        let mut at = 0;
        while at < count {
            let fetched = reader.fetch(at, count, 4 << 20).expect("rows");
            at = fetched.last().expect("a frame").end;
            fetched.into_iter().for_each(&mut look);
        }
    };
    measure(
        rows,
        "fetch: read, checksum, check",
        usize::try_from(count).expect("few"),
        || each_fetch(Box::new(|frame| drop(black_box(frame)))),
    );
    let mut frames = Vec::new();
    each_fetch(Box::new(|frame| frames.push(frame)));
    measure(
        rows,
        "frame to all columns",
        usize::try_from(count).expect("few"),
        || {
            for frame in &frames {
                black_box(frame.to_record_batch(0..u64::MAX, 0, false, false));
            }
        },
    );
    measure(
        rows,
        "received: checksum, check, all columns",
        usize::try_from(count).expect("few"),
        || {
            for frame in &frames {
                let stored = Stored::parse(frame.bytes.clone()).expect("a frame");
                black_box(stored.to_record_batch(0..u64::MAX, 0, false, false));
            }
        },
    );
    measure(
        rows,
        "picked by topic",
        usize::try_from(count).expect("few"),
        || {
            for frame in &frames {
                black_box(frame.pick(&["tick"]));
            }
        },
    );
}
