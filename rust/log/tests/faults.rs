//! Disks that are full, folders that cannot be written to, folders in use.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs, thread};

use tempfile::TempDir;
use zeroxide_log::{Batch, BatchBuilder, Log, LogConfig, LogError, Origin, Row};

fn batch(rows: usize, size: usize) -> Batch {
    let mut builder = BatchBuilder::new();
    for _ in 0..rows {
        builder
            .push(Row {
                value: &vec![7; size],
                ..Row::default()
            })
            .unwrap();
    }
    builder.finish()
}

/// A file system of its own; None where this user may not make one.
struct Mount(TempDir);

impl Mount {
    fn new(options: &str) -> Option<Mount> {
        let folder = tempfile::tempdir().unwrap();
        let mut mount = Command::new("mount");
        mount
            .args(["-t", "tmpfs", "-o", options, "tmpfs"])
            .arg(folder.path());
        let is_done = mount
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|status| status.success());
        if !is_done {
            eprintln!("skipped: mounting a tmpfs needs root");
        }
        is_done.then_some(Mount(folder))
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("log")
    }

    fn remount(&self, options: &str) {
        let status = Command::new("mount")
            .args(["-o", options])
            .arg(self.0.path())
            .status();
        assert!(status.unwrap().success());
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0.path()).status();
    }
}

/// Appends until the disk is full; gives how many rows went in.
fn fill(log: &mut Log) -> u64 {
    let batch = batch(10, 1000);
    loop {
        match log.append(&Origin::plain(1), &batch) {
            Ok(_) => {}
            Err(LogError::Full { path, .. }) => {
                assert!(path.exists() || path.parent().is_some_and(Path::exists));
                return log.next();
            }
            Err(other) => panic!("{other}"),
        }
    }
}

/// Appends ten rows, once there is room. A program that another test starts holds deleted files for a moment, until it
/// runs.
fn append_soon(log: &mut Log) -> Range<u64> {
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        match log.append(&Origin::plain(1), &batch(10, 1000)) {
            Ok(rows) => return rows,
            Err(error) => assert!(Instant::now() < deadline, "{error}"),
        }
        thread::yield_now();
    }
}

fn check_rows(log: &Log, rows: u64) {
    log.sync().unwrap();
    let (mut at, end) = log.reader().bounds();
    assert_eq!(end, rows);
    while at < end {
        at = log
            .reader()
            .fetch(at, end, 1 << 20)
            .unwrap()
            .last()
            .unwrap()
            .end;
    }
}

#[test]
fn a_full_disk_clears_when_there_is_room() {
    for segment_bytes in [1 << 30, 50_000] {
        let Some(mount) = Mount::new("size=600k") else {
            return;
        };
        let ballast = mount.0.path().join("ballast");
        fs::write(&ballast, vec![1; 200_000]).unwrap();
        let config = LogConfig {
            segment_bytes,
            ..LogConfig::default()
        };
        let mut log = Log::open(&mount.path(), config.clone()).unwrap();
        let rows = fill(&mut log);
        assert!(rows > 100);
        assert!(matches!(
            log.append(&Origin::plain(1), &batch(10, 1000)),
            Err(LogError::Full { .. })
        ));
        check_rows(&log, rows);
        // A transaction that does not fit completely is not in the log at all.
        let parts = [batch(1, 10), batch(1000, 1000)];
        assert!(matches!(
            log.append_published("q", 1, 1, &parts),
            Err(LogError::Full { .. })
        ));
        assert_eq!((log.next(), log.published("q")), (rows, None));

        fs::remove_file(&ballast).unwrap();
        assert_eq!(append_soon(&mut log), rows..rows + 10);
        let rows = fill(&mut log);
        check_rows(&log, rows);
        // A log on a full disk can be opened and read.
        drop(log);
        let mut log = Log::open(&mount.path(), config).unwrap();
        check_rows(&log, rows);
        assert!(log.recovery().damaged.is_empty());
        if segment_bytes < 1 << 20 {
            assert!(
                log.trim(rows / 2).unwrap().segments > 0,
                "trimming needs no room"
            );
            append_soon(&mut log);
        }
    }
}

#[test]
fn a_folder_that_cannot_be_written_to_is_reported() {
    let Some(mount) = Mount::new("size=600k") else {
        return;
    };
    let mut log = Log::open(&mount.path(), LogConfig::default()).unwrap();
    log.append(&Origin::plain(1), &batch(10, 1000)).unwrap();
    log.close().unwrap();
    mount.remount("remount,ro");
    let error = Log::open(&mount.path(), LogConfig::default()).unwrap_err();
    assert!(matches!(error, LogError::ReadOnly { .. }), "{error}");
    assert!(
        error.to_string().contains("cannot be written to"),
        "{error}"
    );
    mount.remount("remount,rw");
    assert_eq!(
        Log::open(&mount.path(), LogConfig::default())
            .unwrap()
            .next(),
        10
    );
}

const CHILD: &str = "ZEROXIDE_LOG_CHILD";

/// The same without root: a limit on the size of files, in a process of its own. The shell ignores the signal that
/// would come with it.
#[test]
fn a_file_that_may_not_grow_is_a_full_disk() {
    if let Some(folder) = env::var_os(CHILD) {
        let mut log = Log::open(Path::new(&folder), LogConfig::default()).unwrap();
        let rows = fill(&mut log);
        assert!(rows > 0);
        check_rows(&log, rows);
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let script =
        "trap '' XFSZ; ulimit -f 200; exec \"$0\" a_file_that_may_not_grow_is_a_full_disk --exact";
    let mut child = Command::new("sh");
    child
        .args(["-c", script])
        .arg(env::current_exe().unwrap())
        .env(CHILD, folder.path());
    let output = child.output().unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stdout)
    );
    let mut log = Log::open(folder.path(), LogConfig::default()).unwrap();
    let rows = log.next();
    assert!(rows > 0);
    log.append(&Origin::plain(1), &batch(1, 1)).unwrap();
    check_rows(&log, rows + 1);
}

/// A disk on which every call fails after a certain number; strace simulates it.
#[test]
fn after_a_failed_write_or_sync_nothing_is_appended_until_the_log_is_opened_again() {
    if let Some(folder) = env::var_os(CHILD) {
        return play_a_failing_disk(Path::new(&folder));
    }
    let has_strace = Command::new("strace")
        .arg("-V")
        .stdout(Stdio::null())
        .status();
    if !has_strace.is_ok_and(|status| status.success()) {
        eprintln!("skipped: strace is not installed");
        return;
    }
    for call in ["fdatasync", "pwrite64"] {
        let folder = tempfile::tempdir().unwrap();
        let mut child = Command::new("strace");
        child.args(["-f", "-qq", "-o", "/dev/null", "-e"]);
        child.arg(format!("inject={call}:error=EIO:when=12+"));
        child
            .arg(env::current_exe().unwrap())
            .arg("after_a_failed_write_or_sync_nothing_is_appended_until_the_log_is_opened_again");
        let output = child
            .arg("--exact")
            .env(CHILD, folder.path())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        if !output.status.success() && said.is_empty() {
            eprintln!("skipped: strace may not trace here");
            return;
        }
        assert!(output.status.success(), "{said}");
        let acknowledged: u64 = fs::read_to_string(folder.path().join("acknowledged"))
            .unwrap()
            .parse()
            .unwrap();
        assert!(acknowledged > 0);
        let mut log = Log::open(folder.path(), LogConfig::default()).unwrap();
        assert!(log.next() >= acknowledged);
        log.append(&Origin::plain(1), &batch(1, 1)).unwrap();
        let rows = log.next();
        check_rows(&log, rows);
    }
}

fn play_a_failing_disk(folder: &Path) {
    let mut log = Log::open(folder, LogConfig::default()).unwrap();
    let rows = batch(10, 100);
    let mut acknowledged = 0;
    let error = loop {
        match log
            .append(&Origin::plain(1), &rows)
            .and_then(|_| log.sync())
        {
            Ok(durable) => acknowledged = durable,
            Err(error) => break error,
        }
    };
    assert!(matches!(error, LogError::Failed { .. }), "{error}");
    for _ in 0..3 {
        let again = log.append(&Origin::plain(1), &rows).unwrap_err();
        assert_eq!(again.to_string(), error.to_string());
        assert!(log.sync().is_err());
    }
    let (earliest, durable) = log.reader().bounds();
    assert_eq!(
        durable, acknowledged,
        "rows that were not synced are not visible"
    );
    assert!(
        !log.reader()
            .fetch(earliest, durable, 1 << 20)
            .unwrap()
            .is_empty()
    );
    fs::write(folder.join("acknowledged"), acknowledged.to_string()).unwrap();
}

#[test]
fn a_folder_in_use_names_its_user() {
    let folder = tempfile::tempdir().unwrap();
    let log = Log::open(folder.path(), LogConfig::default()).unwrap();
    let error = Log::open(folder.path(), LogConfig::default())
        .unwrap_err()
        .to_string();
    assert!(
        error.contains(&format!("process {}", std::process::id())),
        "{error}"
    );
    drop(log);
    Log::open(folder.path(), LogConfig::default()).unwrap();
}

#[test]
fn a_folder_stays_in_use_without_its_file_of_the_lock() {
    let folder = tempfile::tempdir().unwrap();
    let log = Log::open(folder.path(), LogConfig::default()).unwrap();
    for _ in 0..2 {
        fs::remove_file(folder.path().join("LOCK")).unwrap();
        let opened = Log::open(folder.path(), LogConfig::default());
        assert!(matches!(opened, Err(LogError::Locked { .. })), "{opened:?}");
    }
    drop(log);
    Log::open(folder.path(), LogConfig::default()).unwrap();
}

#[test]
fn a_file_in_place_of_a_folder_is_reported() {
    let file = tempfile::NamedTempFile::new().unwrap();
    assert!(matches!(
        Log::open(file.path(), LogConfig::default()),
        Err(LogError::Io { .. })
    ));
}

#[test]
fn data_of_a_failed_sync_is_not_trusted() {
    let folder = tempfile::tempdir().unwrap();
    let mut log = Log::open(folder.path(), LogConfig::default()).unwrap();
    let origin = |first_seq| Origin {
        producer: "p".into(),
        epoch: 1,
        first_seq,
        receive_time: 1,
    };
    log.append(&origin(0), &batch(2, 10)).unwrap();
    log.append_published("empty", 1, 1, &[]).unwrap();
    log.sync().unwrap();
    let synced = log.synced();
    log.append(&origin(2), &batch(3, 10)).unwrap();
    log.append_published("q", 1, 1, &[batch(1, 10)]).unwrap();
    log.append_published("empty", 2, 1, &[]).unwrap();

    // The folder while that is not synced. An orderly end of this process would sync it.
    let image = tempfile::tempdir().unwrap();
    for entry in fs::read_dir(folder.path()).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), image.path().join(entry.file_name())).unwrap();
    }
    let mut again =
        Log::reopen(image.path(), LogConfig::default(), log.id(), Some(synced)).unwrap();
    assert_eq!((again.next(), again.durable()), (2, 2));
    assert_eq!(again.last_seq("p"), Some((1, 1)));
    assert_eq!(again.published("q"), None);
    let empty = again.published("empty").map(|last| last.batch);
    assert_eq!(empty, Some(1), "it was on disk, although it has no row");
    assert!(again.recovery().dropped_bytes > 0 && again.recovery().damaged.is_empty());
    assert_eq!(again.append(&origin(2), &batch(3, 10)).unwrap(), 2..5);
    again.close().unwrap();
    let whole = Log::open(image.path(), LogConfig::default()).unwrap();
    assert_eq!(whole.next(), 5);
    assert_eq!(whole.reader().fetch(0, 5, 1 << 20).unwrap().len(), 2);
}
