//! Malicious batches and frames from peers: they are refused or read, without a panic and without wrong rows.

use bytes::Bytes;
use proptest::prelude::*;
use zeroxide_log::{
    Batch, BatchBuilder, BatchError, Log, LogConfig, MAX_ROWS, Origin, Row, Stored,
};

#[derive(Debug, Clone)]
struct OwnRow {
    value: Vec<u8>,
    key: Option<Vec<u8>>,
    topic: Option<String>,
    timestamp: Option<i64>,
    headers: Vec<(String, Vec<u8>)>,
    frames: Option<Vec<Vec<u8>>>,
}

fn row() -> impl Strategy<Value = OwnRow> {
    let bytes = || prop::collection::vec(any::<u8>(), 0..20);
    (
        bytes(),
        prop::option::of(bytes()),
        prop::option::of(".{0,6}"),
        prop::option::of(any::<i64>()),
        prop::collection::vec((".{0,4}", bytes()), 0..3),
        prop::option::of(prop::collection::vec(bytes(), 0..3)),
    )
        .prop_map(|(value, key, topic, timestamp, headers, frames)| OwnRow {
            value,
            key,
            topic,
            timestamp,
            headers,
            frames,
        })
}

/// Which optional columns the rows have at all.
fn rows() -> impl Strategy<Value = Vec<OwnRow>> {
    (prop::collection::vec(row(), 0..30), any::<[bool; 5]>()).prop_map(|(mut rows, has)| {
        for row in &mut rows {
            row.key = row.key.take().filter(|_| has[0]);
            row.topic = row.topic.take().filter(|_| has[1]);
            row.timestamp = row.timestamp.take().filter(|_| has[2]);
            row.headers.retain(|_| has[3]);
            row.frames = row.frames.take().filter(|_| has[4]);
        }
        rows
    })
}

fn build(rows: &[OwnRow]) -> Batch {
    let mut builder = BatchBuilder::new();
    for row in rows {
        let headers: Vec<_> = row
            .headers
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_slice()))
            .collect();
        let frames: Option<Vec<&[u8]>> = row
            .frames
            .as_ref()
            .map(|frames| frames.iter().map(Vec::as_slice).collect());
        builder
            .push(Row {
                value: &row.value,
                key: row.key.as_deref(),
                topic: row.topic.as_deref(),
                timestamp: row.timestamp,
                headers: &headers,
                frames: frames.as_deref(),
            })
            .unwrap();
    }
    builder.finish()
}

fn check(batch: &Batch, rows: &[OwnRow]) {
    assert_eq!(batch.rows(), rows.len());
    for (at, row) in rows.iter().enumerate() {
        assert_eq!(batch.value(at), row.value);
        assert_eq!(batch.key(at), row.key.as_deref());
        assert_eq!(batch.topic(at), row.topic.as_deref());
        assert_eq!(batch.timestamp(at), row.timestamp);
        let headers: Vec<_> = row
            .headers
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_slice()))
            .collect();
        assert_eq!(batch.headers(at), headers);
        let frames = row
            .frames
            .as_ref()
            .map(|frames| frames.iter().map(Vec::as_slice).collect::<Vec<_>>());
        assert_eq!(batch.frames(at), frames);
        assert_eq!(batch.offset(at), None);
    }
}

/// Looks at everything there is.
fn touch(batch: &Batch) {
    for row in 0..batch.rows() {
        let _ = (
            batch.value(row),
            batch.key(row),
            batch.topic(row),
            batch.timestamp(row),
        );
        let _ = (batch.headers(row), batch.frames(row), batch.offset(row));
    }
    let mut again = Vec::new();
    batch.encode(&mut again);
    assert_eq!(Batch::decode(again.into()).unwrap(), *batch);
}

/// The same bytes at an address that fits nothing.
fn unaligned(bytes: &[u8]) -> Bytes {
    let mut shifted = vec![0; 1];
    shifted.extend_from_slice(bytes);
    Bytes::from(shifted).slice(1..)
}

/// A frame as a collector sends it.
fn frame(rows: &[OwnRow]) -> Stored {
    let folder = tempfile::tempdir_in("/dev/shm")
        .or_else(|_| tempfile::tempdir())
        .unwrap();
    let mut log = Log::open(folder.path(), LogConfig::default()).unwrap();
    let origin = Origin {
        producer: "somebody".into(),
        epoch: 1,
        first_seq: 9,
        receive_time: 77,
    };
    log.append(&origin, &build(rows)).unwrap();
    log.sync().unwrap();
    log.reader().fetch(0, 1000, 1 << 20).unwrap().remove(0)
}

/// Makes both checksums right again: a peer can do that, too.
fn seal(frame: &mut [u8]) {
    let header = u32::from_le_bytes(frame[12..16].try_into().unwrap()) as usize;
    if (88..=frame.len()).contains(&header) {
        let crc = crc32c::crc32c(&frame[header..]);
        frame[16..20].copy_from_slice(&crc.to_le_bytes());
        let crc = crc32c::crc32c(&frame[8..header]);
        frame[4..8].copy_from_slice(&crc.to_le_bytes());
    }
}

fn cases(ordinary: u32, full: u32) -> ProptestConfig {
    ProptestConfig::with_cases(if std::env::var_os("ZEROXIDE_FULL").is_some() {
        full
    } else {
        ordinary
    })
}

type Change = (prop::sample::Index, u8);

fn changes() -> impl Strategy<Value = Vec<Change>> {
    prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4)
}

fn change(bytes: &mut [u8], changes: &[Change]) {
    for (at, byte) in changes {
        let at = at.index(bytes.len());
        bytes[at] = *byte;
    }
}

proptest! {
    #![proptest_config(cases(300, 3000))]

    #[test]
    fn rows_survive_the_wire(rows in rows(), from in any::<prop::sample::Index>(), part in any::<prop::sample::Index>()) {
        let batch = build(&rows);
        let mut bytes = Vec::new();
        batch.encode(&mut bytes);
        prop_assert_eq!(bytes.len(), batch.size());
        check(&Batch::decode(unaligned(&bytes)).unwrap(), &rows);
        check(&Batch::decode(bytes.into()).unwrap(), &rows);
        let from = from.index(rows.len() + 1);
        let part = part.index(rows.len() - from + 1);
        let slice = batch.slice(from, part);
        check(&slice, &rows[from..from + part]);
        let mut bytes = Vec::new();
        slice.encode(&mut bytes);
        check(&Batch::decode(bytes.into()).unwrap(), &rows[from..from + part]);
    }

    #[test]
    fn changed_batches_are_refused_or_read(rows in rows(), changes in changes(), cut in prop::option::of(any::<prop::sample::Index>())) {
        let mut bytes = Vec::new();
        build(&rows).encode(&mut bytes);
        change(&mut bytes, &changes);
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        if let Ok(batch) = Batch::decode(bytes.into()) {
            touch(&batch);
        }
    }

    #[test]
    fn malformed_batches_are_refused_or_read(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        if let Ok(batch) = Batch::decode(bytes.clone().into()) {
            touch(&batch);
        }
        prop_assert!(Stored::parse(bytes.into()).is_err());
    }
}

proptest! {
    #![proptest_config(cases(300, 3000))]

    #[test]
    fn changed_frames_are_refused_or_read(rows in prop::collection::vec(row(), 1..20), changes in changes(), picked in any::<bool>(), range in any::<(u64, u64)>()) {
        let stored = frame(&rows);
        let stored = if picked { stored.pick(&["", "a"]) } else { stored };
        let mut bytes = stored.bytes.to_vec();
        change(&mut bytes, &changes);
        if bytes != stored.bytes {
            prop_assert!(Stored::parse(bytes.clone().into()).is_err());
        }
        seal(&mut bytes);
        if let Ok(stored) = Stored::parse(unaligned(&bytes)) {
            touch_stored(&stored, range);
        }
    }

    #[test]
    fn picked_rows_are_those_of_the_topics(rows in prop::collection::vec(row(), 0..20), prefix in ".{0,2}") {
        prop_assume!(!rows.is_empty());
        let stored = frame(&rows);
        let picked = stored.pick(&[&prefix]);
        let parsed = Stored::parse(picked.bytes.clone()).unwrap();
        prop_assert_eq!((parsed.first_offset, parsed.end), (stored.first_offset, stored.end));
        let wanted: Vec<usize> = (0..rows.len()).filter(|at| rows[*at].topic.as_deref().unwrap_or("").starts_with(&prefix)).collect();
        for picked in [picked.clone(), parsed, picked.pick(&[&prefix])] {
            prop_assert_eq!(picked.rows(), wanted.len());
            for (at, wanted) in wanted.iter().enumerate() {
                prop_assert_eq!(picked.offset(at), *wanted as u64);
                prop_assert_eq!(picked.seq(at), Some(9 + *wanted as u64));
                prop_assert_eq!(picked.batch.value(at), rows[*wanted].value.as_slice());
            }
            let table = picked.to_record_batch(0..u64::MAX, 3, true, true);
            prop_assert_eq!(table.num_rows(), wanted.len());
        }
    }
}

fn touch_stored(stored: &Stored, (a, b): (u64, u64)) {
    for row in 0..stored.rows() {
        let _ = (stored.offset(row), stored.seq(row));
    }
    let all = stored.to_record_batch(0..u64::MAX, 0, true, true);
    assert_eq!(all.num_rows(), stored.rows());
    for range in [
        a.min(b)..a.max(b),
        stored.first_offset + 1..stored.end,
        0..a % 20,
    ] {
        let part = stored.to_record_batch(range, -1, false, true);
        assert!(part.num_rows() <= stored.rows());
    }
    let _ = stored.pick(&["a"]);
}

#[test]
fn a_batch_says_no_more_than_was_received() {
    // 2^32 - 1 rows in eight bytes, and buffers of 4 GiB in forty.
    let many = [2, 0, 3, 0, 0xff, 0xff, 0xff, 0xff];
    assert!(matches!(
        Batch::decode(Bytes::copy_from_slice(&many)),
        Err(BatchError::Length { .. })
    ));
    let mut large = many.to_vec();
    large.extend([0xff; 12]);
    large.extend([0; 20]);
    assert!(matches!(
        Batch::decode(large.into()),
        Err(BatchError::TooLarge { .. })
    ));
    assert!(
        MAX_ROWS * 255 < i32::MAX as usize,
        "a name in every row fits into a column"
    );
}
