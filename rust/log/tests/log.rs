//! What goes in comes out: offsets, origins, restarts.

use zeroxide_log::{Batch, BatchBuilder, Log, LogConfig, LogError, Origin, Row};

fn batch(from: usize, rows: usize) -> Batch {
    let mut builder = BatchBuilder::new();
    for row in from..from + rows {
        let value = format!("value {row}");
        let key = (row % 3 == 0).then(|| format!("key {row}"));
        let topic = (row % 2 == 0).then(|| format!("topic/{}", row % 5));
        let headers = [("name", value.as_bytes()), ("other", b"".as_slice())];
        let frames = [b"first".as_slice(), value.as_bytes()];
        builder
            .push(Row {
                value: value.as_bytes(),
                key: key.as_deref().map(str::as_bytes),
                topic: topic.as_deref(),
                timestamp: (row % 4 == 0).then_some(row as i64 * 1000),
                headers: if row % 7 == 0 { &headers } else { &[] },
                frames: (row % 11 == 0).then_some(&frames),
            })
            .unwrap();
    }
    builder.finish()
}

fn origin(first_seq: u64) -> Origin {
    Origin {
        producer: "sensor".into(),
        epoch: 3,
        first_seq,
        receive_time: 1_000_000 + first_seq as i64,
    }
}

#[test]
fn rows_come_back_with_everything_they_had() {
    let folder = tempfile::tempdir().unwrap();
    let mut log = Log::open(folder.path(), LogConfig::default()).unwrap();
    let rows = batch(0, 100);
    assert_eq!(log.append(&origin(7), &rows).unwrap(), 0..100);
    assert!(
        log.reader().fetch(0, 100, 1 << 20).unwrap().is_empty(),
        "nothing is on disk yet"
    );
    assert_eq!(log.syncer().sync().unwrap(), 100);
    let stored = log.reader().fetch(0, 100, 1 << 20).unwrap();
    assert_eq!(stored.len(), 1);
    assert_eq!(stored[0].batch, rows);
    assert_eq!(stored[0].origin, origin(7));
    assert_eq!(stored[0].seq(3), Some(10));
    let table = stored[0].to_record_batch(10..20, 2, true, true);
    assert_eq!(table.num_rows(), 10);
    assert_eq!(table.schema(), zeroxide_log::fetched_schema(true, true));
    let again = zeroxide_log::Stored::parse(stored[0].bytes.clone()).unwrap();
    assert_eq!(again.batch, rows);
}

#[test]
fn the_wire_form_comes_back() {
    for rows in [0, 1, 7, 8, 9, 1000] {
        let rows = batch(0, rows);
        let mut bytes = Vec::new();
        rows.encode(&mut bytes);
        assert_eq!(bytes.len(), rows.size());
        assert_eq!(Batch::decode(bytes.into()).unwrap(), rows);
        let part = rows.slice(rows.rows() / 3, rows.rows() / 2);
        let mut bytes = Vec::new();
        part.encode(&mut bytes);
        assert_eq!(Batch::decode(bytes.into()).unwrap(), part);
    }
}

#[test]
fn a_restart_goes_on_where_the_last_one_ended() {
    let folder = tempfile::tempdir().unwrap();
    let mut log = Log::open(folder.path(), LogConfig::default()).unwrap();
    log.append(&origin(0), &batch(0, 10)).unwrap();
    assert!(matches!(
        Log::open(folder.path(), LogConfig::default()),
        Err(LogError::Locked { by, .. }) if by.contains(&std::process::id().to_string())
    ));
    let id = log.id();
    log.commit_group("spark", 5).unwrap();
    drop(log);
    let mut log = Log::open(folder.path(), LogConfig::default()).unwrap();
    assert_eq!((log.id(), log.next(), log.durable()), (id, 10, 10));
    assert_eq!(log.last_seq("sensor"), Some((3, 9)));
    assert_eq!(log.groups()["spark"], 5);
    assert_eq!(log.append(&origin(10), &batch(10, 5)).unwrap(), 10..15);
    log.sync().unwrap();
    assert_eq!(log.reader().fetch(8, 12, 1 << 20).unwrap().len(), 2);
}

#[test]
fn a_transaction_is_published_once() {
    let folder = tempfile::tempdir().unwrap();
    let mut log = Log::open(folder.path(), LogConfig::default()).unwrap();
    let parts = [batch(0, 10), batch(10, 5)];
    let done = log.append_published("query", 4, 77, &parts).unwrap();
    assert_eq!((done.range, done.already), (0..15, false));
    let again = log.append_published("query", 4, 78, &parts).unwrap();
    assert_eq!((again.range, again.already), (0..15, true));
    drop(log);
    let mut log = Log::open(folder.path(), LogConfig::default()).unwrap();
    assert_eq!(log.published("query").unwrap().batch, 4);
    assert!(
        log.append_published("query", 4, 78, &parts)
            .unwrap()
            .already
    );
    assert_eq!(
        log.append_published("query", 5, 78, &[]).unwrap().range,
        15..15
    );
    drop(log);
    let log = Log::open(folder.path(), LogConfig::default()).unwrap();
    assert_eq!(log.published("query").unwrap().batch, 5);
    assert_eq!(log.published("query").unwrap().next_seq, 15);
}
