//! Rows in columns, as a producer sends them.

use bytes::Bytes;
use zeroxide_log::{Batch, BatchBuilder, Row};

use crate::{Target, guard};

pub(super) const TARGET: Target = Target {
    name: "batch",
    about: "batches of rows, as producers send them",
    run,
    seeds,
    words: &[b"\0\0\0\0", b"\x01\0\0\0\0\0\0\0", b"\xff\xff\xff\x7f"],
    longest: 4000,
};

fn run(input: &[u8]) {
    let decode = || {
        let batch = Batch::decode(Bytes::copy_from_slice(input)).ok()?;
        touch(&batch);
        Some(batch)
    };
    let Some(batch) = guard::bounded(input.len(), decode) else {
        return;
    };
    let mut encoded = Vec::new();
    batch.encode(&mut encoded);
    assert_eq!(encoded.len(), batch.size());
    let again = Batch::decode(Bytes::from(encoded)).expect("what was encoded");
    assert_eq!(again, batch);
    let half = batch.rows() / 2;
    let mut encoded = Vec::new();
    batch.slice(half, batch.rows() - half).encode(&mut encoded);
    let again = Batch::decode(Bytes::from(encoded)).expect("a part of what was encoded");
    assert_eq!(again, batch.slice(half, batch.rows() - half));
}

/// Looks at everything there is.
pub(super) fn touch(batch: &Batch) {
    for row in 0..batch.rows() {
        let _ = (
            batch.value(row),
            batch.key(row),
            batch.topic(row),
            batch.timestamp(row),
        );
        let _ = (batch.headers(row), batch.frames(row), batch.offset(row));
    }
    let rows: usize = batch.topic_runs().map(|(_, rows, _)| rows).sum();
    assert_eq!(rows, batch.rows());
}

/// Batches with different columns.
pub(super) fn samples() -> Vec<Batch> {
    let headers: [(&str, &[u8]); 2] = [("h", b"1"), ("i", b"")];
    let frames: [&[u8]; 2] = [b"f", b"g"];
    let plain = Row {
        value: b"value",
        ..Row::default()
    };
    let rows = [
        vec![plain],
        vec![
            plain,
            Row {
                key: Some(b"key"),
                topic: Some("topic"),
                ..plain
            },
            plain,
        ],
        vec![
            Row {
                timestamp: Some(5),
                headers: &headers,
                frames: Some(&frames),
                ..plain
            },
            plain,
        ],
        Vec::new(),
    ];
    rows.into_iter()
        .map(|rows| {
            let mut builder = BatchBuilder::new();
            rows.into_iter()
                .for_each(|row| builder.push(row).expect("a small row"));
            builder.finish()
        })
        .collect()
}

fn seeds() -> Vec<Vec<u8>> {
    let encode = |batch: Batch| {
        let mut encoded = Vec::new();
        batch.encode(&mut encoded);
        encoded
    };
    samples().into_iter().map(encode).collect()
}
