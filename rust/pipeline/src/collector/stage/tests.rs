//! Staged parts in files of the system.

use std::fs;

use super::*;

fn of(query: &str, batch: u64) -> BatchOf {
    BatchOf {
        query: query.to_owned(),
        batch,
    }
}

fn attempt(partition: u32, attempt: u64) -> Attempt {
    Attempt { partition, attempt }
}

fn won(partition: u32, number: u64, parts: u32) -> Won {
    Won {
        attempt: attempt(partition, number),
        parts,
    }
}

fn read(stage: &Stage, of: &BatchOf, won: &[Won]) -> Result<Vec<Bytes>, Code> {
    let parts = stage.find(of, won).map_err(|refusal| refusal.code)?;
    Ok(parts.iter().map(|part| part.read().unwrap()).collect())
}

#[test]
fn a_staged_file_that_cannot_be_read_is_set_aside() {
    let dir = tempfile::tempdir().unwrap();
    let mut stage = Stage::open(dir.path(), 1 << 20).unwrap();
    stage
        .write(&of("q", 1), (attempt(0, 0), 0), b"one", Instant::now())
        .unwrap();
    stage.sync(&of("q", 1)).unwrap();
    let path = stage.dir.join("000000000005.stage");
    drop(stage);
    // A folder cannot be read like a file.
    fs::create_dir(&path).unwrap();
    let stage = Stage::open(dir.path(), 1 << 20).unwrap();
    let [note] = &stage.notes[..] else {
        panic!("{:?}", stage.notes);
    };
    assert!(
        note.contains(path.to_str().unwrap()) && note.contains("write"),
        "{note}"
    );
    assert_eq!(stage.lost, 1);
    assert!(!path.exists() && dir.path().join("staged/000000000005.stage.aside").exists());
    assert_eq!(read(&stage, &of("q", 1), &[won(0, 0, 1)]).unwrap(), ["one"]);
    let missing = stage.find(&of("q", 2), &[won(0, 0, 1)]).unwrap_err();
    assert!(missing.text.contains("5.stage.aside"), "{}", missing.text);
    // The file of this batch was found.
    let missing = stage.find(&of("q", 1), &[won(0, 0, 2)]).unwrap_err();
    assert!(!missing.text.contains("aside"), "{}", missing.text);
    // Later starts name it, too, until it is deleted.
    drop(stage);
    let mut stage = Stage::open(dir.path(), 1 << 20).unwrap();
    assert!(stage.notes[0].contains("5.stage.aside") && stage.notes.len() == 1);
    let missing = stage.find(&of("q", 2), &[won(0, 0, 1)]).unwrap_err();
    assert!(missing.text.contains("5.stage.aside"), "{}", missing.text);
    // The next file has another number.
    stage
        .write(&of("q", 2), (attempt(0, 0), 0), b"two", Instant::now())
        .unwrap();
    assert!(dir.path().join("staged/000000000006.stage").exists());
    // Its batch may have begun in the file that was set aside.
    stage.sync(&of("q", 2)).unwrap();
    drop(stage);
    let stage = Stage::open(dir.path(), 1 << 20).unwrap();
    let missing = stage.find(&of("q", 2), &[won(0, 0, 2)]).unwrap_err();
    assert!(missing.text.contains("5.stage.aside"), "{}", missing.text);
}

#[test]
fn a_damaged_head_loses_no_parts_silently() {
    let dir = tempfile::tempdir().unwrap();
    let mut stage = Stage::open(dir.path(), 1 << 20).unwrap();
    for part in 0..3 {
        stage
            .write(&of("q", 1), (attempt(0, 0), part), b"rows", Instant::now())
            .unwrap();
    }
    stage.sync(&of("q", 1)).unwrap();
    drop(stage);
    let path = dir.path().join("staged/000000000000.stage");
    let whole = fs::read(&path).unwrap();
    // The magic, the length of the name, the name and the checksum.
    for at in [0, 8, 9, 10, 19] {
        let mut damaged = whole.clone();
        damaged[at] ^= 1;
        fs::write(&path, &damaged).unwrap();
        let stage = Stage::open(dir.path(), 1 << 20).unwrap();
        let [note] = &stage.notes[..] else {
            panic!("{at}: {:?}", stage.notes);
        };
        assert!(note.contains("at least 3 parts"), "{at}: {note}");
        assert!(note.contains(path.to_str().unwrap()), "{note}");
        assert_eq!(stage.lost, 3);
        let aside = dir.path().join("staged/000000000000.stage.aside");
        assert_eq!(fs::read(&aside).unwrap(), damaged);
        fs::remove_file(aside).unwrap();
    }
    // Without a record, nothing was acknowledged, however much of the head is there.
    for head in [&whole[..0], &whole[..9], &whole[..20], &[0; 100]] {
        fs::write(&path, head).unwrap();
        let stage = Stage::open(dir.path(), 1 << 20).unwrap();
        assert_eq!((stage.lost, stage.notes.len()), (0, 0));
        assert!(!path.exists());
    }
}

#[test]
fn a_damaged_first_sector_is_reported() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("staged/000000000000.stage");
    let aside = dir.path().join("staged/000000000000.stage.aside");
    for size in [1000, 3 << 20] {
        for parts in 1..4 {
            let mut stage = Stage::open(dir.path(), 1 << 30).unwrap();
            for part in 0..parts {
                let key = (attempt(0, 0), part);
                stage
                    .write(&of("q", 1), key, &vec![b'z'; size], Instant::now())
                    .unwrap();
            }
            stage.sync(&of("q", 1)).unwrap();
            drop(stage);
            let mut bytes = fs::read(&path).unwrap();
            bytes[..512].fill(0);
            fs::write(&path, &bytes).unwrap();
            let stage = Stage::open(dir.path(), 1 << 30).unwrap();
            assert_eq!(stage.notes.len(), 1, "{size} {parts}: {:?}", stage.notes);
            // The first one cannot be told from other bytes, but the file had one.
            assert_eq!(stage.lost, u64::from((parts - 1).max(1)));
            assert_eq!(fs::read(&aside).unwrap(), bytes);
            fs::remove_file(&aside).unwrap();
        }
    }
    // Bytes that a crash left in place of rows say nothing, but they are no reason to delete a file.
    fs::write(&path, vec![b'z'; 300]).unwrap();
    let stage = Stage::open(dir.path(), 1 << 30).unwrap();
    assert_eq!((stage.lost, stage.notes.len()), (1, 1));
    assert!(!path.exists() && aside.exists());
}

#[test]
fn the_error_for_a_damaged_part_names_the_damage() {
    let dir = tempfile::tempdir().unwrap();
    let mut stage = Stage::open(dir.path(), 1 << 20).unwrap();
    for batch in [1, 2] {
        for part in 0..3 {
            let rows = format!("rows {part}");
            stage
                .write(
                    &of("q", batch),
                    (attempt(0, 0), part),
                    rows.as_bytes(),
                    Instant::now(),
                )
                .unwrap();
        }
        stage.sync(&of("q", batch)).unwrap();
    }
    drop(stage);
    let path = dir.path().join("staged/000000000000.stage");
    let mut bytes = fs::read(&path).unwrap();
    let at = bytes.windows(6).position(|some| some == b"rows 1").unwrap();
    bytes[at] ^= 1;
    fs::write(&path, &bytes).unwrap();
    let mut stage = Stage::open(dir.path(), 1 << 20).unwrap();
    let why = |stage: &Stage, batch, parts| {
        let missing = stage.find(&of("q", batch), &[won(0, 0, parts)]);
        missing.unwrap_err().text
    };
    let text = why(&stage, 1, 3);
    assert!(text.contains("damaged"), "{text}");
    assert!(text.contains(path.to_str().unwrap()), "{text}");
    assert!(!text.contains("never sent"), "{text}");
    assert!(why(&stage, 2, 4).contains("never sent"));
    // What is staged anew has nothing to do with the damage.
    stage.abort(&of("q", 1), &[]);
    assert!(why(&stage, 1, 1).contains("never sent"));
}

#[test]
fn a_damaged_record_is_reported_and_loses_no_other() {
    let dir = tempfile::tempdir().unwrap();
    let mut stage = Stage::open(dir.path(), 1 << 20).unwrap();
    for (part, rows) in ["one", "two", "three"].into_iter().enumerate() {
        let key = (attempt(0, part as u64), 0);
        stage
            .write(&of("q", 1), key, rows.as_bytes(), Instant::now())
            .unwrap();
    }
    stage.sync(&of("q", 1)).unwrap();
    drop(stage);
    let path = dir.path().join("staged/000000000000.stage");
    let whole = fs::read(&path).unwrap();
    let at = |text: &[u8]| {
        whole
            .windows(text.len())
            .position(|some| some == text)
            .unwrap()
    };
    let open = |flipped: usize| {
        let mut damaged = whole.clone();
        damaged[flipped] ^= 1;
        fs::write(&path, &damaged).unwrap();
        Stage::open(dir.path(), 1 << 20).unwrap()
    };
    let mut stage = open(at(b"two"));
    let [note] = &stage.notes[..] else {
        panic!("{:?}", stage.notes);
    };
    assert!(note.contains("wrong checksum: 1."), "{note}");
    assert!(note.contains(path.to_str().unwrap()), "{note}");
    assert_eq!(stage.lost, 1);
    assert_eq!(fs::read(&path).unwrap().len(), whole.len());
    let others = [won(0, 0, 1), won(0, 2, 1)];
    assert_eq!(
        read(&stage, &of("q", 1), &others).unwrap(),
        ["one", "three"]
    );
    assert_eq!(
        read(&stage, &of("q", 1), &[won(0, 1, 1)]),
        Err(Code::NotStaged)
    );
    // Parts that are staged after it are found again.
    stage
        .write(&of("q", 1), (attempt(0, 9), 0), b"four", Instant::now())
        .unwrap();
    stage.sync(&of("q", 1)).unwrap();
    drop(stage);
    let stage = Stage::open(dir.path(), 1 << 20).unwrap();
    assert_eq!(
        read(&stage, &of("q", 1), &[won(0, 9, 1)]).unwrap(),
        ["four"]
    );

    // The last one is cut off, and a wrong length hides what follows.
    let stage = open(at(b"three"));
    assert_eq!((stage.lost, stage.notes.len()), (1, 2));
    assert!(
        stage.notes[1].contains("the last 33 bytes"),
        "{:?}",
        stage.notes
    );
    drop(stage);
    let stage = open(at(b"two") - 20 + 3);
    assert_eq!((stage.lost, stage.notes.len()), (0, 1));
    assert!(
        stage.notes[0].contains("the last 64 bytes"),
        "{:?}",
        stage.notes
    );
    assert_eq!(read(&stage, &of("q", 1), &others[..1]).unwrap(), ["one"]);
}

#[test]
fn parts_are_found_again_after_a_crash_and_half_a_record_is_not() {
    let dir = tempfile::tempdir().unwrap();
    let now = Instant::now();
    let mut stage = Stage::open(dir.path(), 1 << 20).unwrap();
    let batch = of("q", 7);
    stage
        .write(&batch, (attempt(0, 1 << 40), 0), b"one", now)
        .unwrap();
    stage
        .write(&batch, (attempt(0, 1 << 40), 1), b"two", now)
        .unwrap();
    stage
        .write(&batch, (attempt(1, 2), 0), b"three", now)
        .unwrap();
    stage.sync(&batch).unwrap();
    let path = dir.path().join("staged/000000000000.stage");
    drop(stage);
    let whole = fs::read(&path).unwrap();
    fs::write(
        &path,
        [&whole[..], &format::RECORD_MAGIC[..], &[1; 40]].concat(),
    )
    .unwrap();

    let stage = Stage::open(dir.path(), 1 << 20).unwrap();
    assert_eq!(fs::read(&path).unwrap(), whole);
    let all = [won(1, 2, 1), won(0, 1 << 40, 2)];
    assert_eq!(read(&stage, &batch, &all).unwrap(), ["three", "one", "two"]);
    assert_eq!(read(&stage, &batch, &[won(1, 2, 2)]), Err(Code::NotStaged));
    assert_eq!(
        read(&stage, &of("q", 8), &[won(1, 2, 1)]),
        Err(Code::NotStaged)
    );
    assert_eq!(read(&stage, &of("q", 8), &[]).unwrap().len(), 0);

    // A flipped bit removes its record and all later ones.
    let mut flipped = whole.clone();
    *flipped.last_mut().unwrap() ^= 1;
    fs::write(&path, flipped).unwrap();
    let stage = Stage::open(dir.path(), 1 << 20).unwrap();
    assert_eq!(
        read(&stage, &batch, &[won(0, 1 << 40, 2)]).unwrap().len(),
        2
    );
    assert_eq!(read(&stage, &batch, &all), Err(Code::NotStaged));
}

#[test]
fn a_part_that_comes_again_replaces_the_first_one() {
    let dir = tempfile::tempdir().unwrap();
    let now = Instant::now();
    let mut stage = Stage::open(dir.path(), 1 << 20).unwrap();
    let batch = of("q", 0);
    for rows in ["a", "b"] {
        stage
            .write(&batch, (attempt(0, 0), 0), rows.as_bytes(), now)
            .unwrap();
    }
    assert_eq!(read(&stage, &batch, &[won(0, 0, 1)]).unwrap(), ["b"]);
}

#[test]
fn open_batches_are_limited() {
    let dir = tempfile::tempdir().unwrap();
    let mut stage = Stage::open(dir.path(), 1 << 20).unwrap();
    let mut write = |batch| stage.write(&of("q", batch), (attempt(0, 0), 0), b"x", Instant::now());
    for batch in 0..BATCHES as u64 {
        write(batch).unwrap();
    }
    assert_eq!(write(BATCHES as u64).unwrap_err().code, Code::TooMany);
    write(0).unwrap();
}

#[test]
fn staged_parts_are_limited_however_small_they_are() {
    let dir = tempfile::tempdir().unwrap();
    let mut stage = Stage::open(dir.path(), 1 << 20).unwrap();
    stage.most_parts = 3;
    let write = |stage: &mut Stage, batch, part| {
        stage.write(&of("q", batch), (attempt(0, 0), part), b"", Instant::now())
    };
    write(&mut stage, 0, 0).unwrap();
    write(&mut stage, 0, 1).unwrap();
    write(&mut stage, 1, 0).unwrap();
    let refusal = write(&mut stage, 1, 1).unwrap_err();
    assert_eq!((refusal.code, refusal.detail), (Code::TooMany, 3));
    assert!(refusal.text.contains("more rows"), "{}", refusal.text);
    stage.abort(&of("q", 0), &[]);
    write(&mut stage, 1, 1).unwrap();
    write(&mut stage, 1, 2).unwrap();
    drop(stage);

    // A file with more, as of an earlier version, is loaded in part.
    let stage = Stage::open_with(dir.path(), 1 << 20, 2).unwrap();
    assert_eq!((stage.parts(), stage.lost, stage.notes.len()), (2, 1, 1));
    assert!(stage.notes[0].contains(": 1 staged parts of batch 1"));
    assert!(stage.find(&of("q", 1), &[won(0, 0, 3)]).is_err());
    let stage = Stage::open_with(dir.path(), 1 << 20, 0).unwrap();
    assert_eq!((stage.parts(), stage.lost, stage.notes.len()), (0, 3, 1));
    let stage = Stage::open(dir.path(), 1 << 20).unwrap();
    assert_eq!(stage.parts(), 3);
}

#[test]
fn attempts_that_were_aborted_are_not_loaded_again() {
    let dir = tempfile::tempdir().unwrap();
    let mut stage = Stage::open(dir.path(), 1 << 20).unwrap();
    let write = |stage: &mut Stage, number, rows: &str| {
        for part in 0..2 {
            let key = (attempt(0, number), part);
            stage
                .write(&of("q", 1), key, rows.as_bytes(), Instant::now())
                .unwrap();
        }
    };
    for number in 0..4 {
        write(&mut stage, number, "first");
    }
    stage.abort(&of("q", 1), &[attempt(0, 2), attempt(0, 1), attempt(0, 9)]);
    // One of them is staged again.
    write(&mut stage, 1, "second");
    stage.sync(&of("q", 1)).unwrap();
    let size = stage.size();
    drop(stage);
    let stage = Stage::open(dir.path(), 1 << 20).unwrap();
    assert_eq!((stage.lost, stage.notes.len()), (0, 0), "{:?}", stage.notes);
    assert_eq!((stage.parts(), stage.size()), (6, size));
    let read = |number| read(&stage, &of("q", 1), &[won(0, number, 2)]);
    assert_eq!(read(0).unwrap(), ["first"; 2]);
    assert_eq!(read(1).unwrap(), ["second"; 2]);
    assert_eq!(read(2), Err(Code::NotStaged));
    assert_eq!(read(3).unwrap(), ["first"; 2]);
}

#[test]
fn staging_is_bounded_and_published_aborted_or_old_batches_make_room() {
    let dir = tempfile::tempdir().unwrap();
    let now = Instant::now();
    let mut stage = Stage::open(dir.path(), 400).unwrap();
    let rows = [1; 100];
    for batch in 0..2 {
        stage
            .write(&of("q", batch), (attempt(0, 0), 0), &rows, now)
            .unwrap();
    }
    let refusal = stage.write(&of("q", 2), (attempt(0, 0), 0), &rows, now);
    assert_eq!(refusal.unwrap_err().code, Code::TooMany);
    stage.on_published(&of("q", 0));
    stage
        .write(&of("q", 2), (attempt(0, 0), 0), &rows, now)
        .unwrap();
    stage.abort(&of("q", 2), &[attempt(1, 1)]);
    assert_eq!(stage.size().1, 2);
    stage.abort(&of("q", 2), &[attempt(0, 0)]);
    stage.abort(&of("q", 3), &[]);
    assert_eq!(stage.size().1, 1);
    assert_eq!(stage.expire(now, Duration::from_secs(1)), 0);
    assert_eq!(
        stage.expire(now + Duration::from_secs(2), Duration::from_secs(1)),
        1
    );
    assert_eq!(stage.size(), (0, 0));
    let refusal = stage.find(&of("q", 1), &[won(0, 0, 1)]).unwrap_err();
    assert!(
        refusal.text.contains("expired") && refusal.text.contains("staged_hours"),
        "{}",
        refusal.text
    );
    let refusal = stage.find(&of("q", 9), &[won(0, 0, 1)]).unwrap_err();
    assert!(refusal.text.contains("never sent"), "{}", refusal.text);
    assert_eq!(fs::read_dir(dir.path().join("staged")).unwrap().count(), 0);

    stage
        .write(&of("q", 4), (attempt(0, 0), 0), &rows, now)
        .unwrap();
    stage
        .write(&of("r", 4), (attempt(0, 0), 0), &rows, now)
        .unwrap();
    drop(stage);
    let mut stage = Stage::open(dir.path(), 400).unwrap();
    stage.forget_published(|query| (query == "q").then_some(5));
    assert_eq!(stage.size().1, 1);
}

#[test]
fn the_staged_parts_of_a_copy_count_once_it_has_the_folders_place() {
    let dir = tempfile::tempdir().unwrap();
    let mut stage = Stage::open(dir.path(), 1 << 20).unwrap();
    let of = of("q", 1);
    let write = |stage: &mut Stage, part: u32, rows: &[u8]| {
        stage.write(&of, (attempt(0, 0), part), rows, Instant::now())?;
        stage.sync(&of)
    };
    write(&mut stage, 0, b"one").unwrap();
    assert_eq!(stage.follow().unwrap(), 0);
    // The copy is made, the next part comes, and the copy takes the place.
    let (folder, copy) = (stage.dir.clone(), dir.path().join("copy"));
    fs::create_dir(&copy).unwrap();
    let name = "000000000000.stage";
    fs::copy(folder.join(name), copy.join(name)).unwrap();
    write(&mut stage, 1, b"two").unwrap();
    fs::rename(&folder, dir.path().join("old")).unwrap();
    fs::rename(&copy, &folder).unwrap();
    let refused = write(&mut stage, 2, b"three").unwrap_err();
    assert!(refused.text.contains("another folder"), "{}", refused.text);

    assert_eq!(stage.follow().unwrap(), 0);
    assert_eq!(read(&stage, &of, &[won(0, 0, 1)]).unwrap(), ["one"]);
    assert!(stage.find(&of, &[won(0, 0, 2)]).is_err());
    write(&mut stage, 1, b"two").unwrap();
    assert_eq!(read(&stage, &of, &[won(0, 0, 2)]).unwrap(), ["one", "two"]);
}

/// Makes a batch use a file that takes data and cannot be synced, as a disk that fails for a moment; returns its own.
fn break_file(stage: &mut Stage, of: &BatchOf) -> Arc<File> {
    let null = fs::OpenOptions::new().write(true).open("/dev/null");
    let staged = stage.batches.get_mut(of).unwrap();
    std::mem::replace(&mut staged.file, Arc::new(null.unwrap()))
}

#[test]
fn parts_that_a_failed_sync_has_lost_take_no_room() {
    let dir = tempfile::tempdir().unwrap();
    let mut stage = Stage::open(dir.path(), 4096).unwrap();
    let of = of("q", 1);
    let rows = [7; 1500];
    let write = |stage: &mut Stage, partition| {
        stage.write(&of, (attempt(partition, 1), 0), &rows, Instant::now())
    };
    write(&mut stage, 0).unwrap();
    stage.sync(&of).unwrap();
    let file = break_file(&mut stage, &of);
    write(&mut stage, 1).unwrap();
    assert!(stage.sync(&of).is_err());
    stage.batches.get_mut(&of).unwrap().file = file;
    write(&mut stage, 2).unwrap();
    assert_eq!(write(&mut stage, 3).unwrap_err().code, Code::TooMany);
}

#[test]
fn a_batch_can_be_staged_after_a_sync_of_it_has_failed() {
    for acknowledged in [true, false] {
        let dir = tempfile::tempdir().unwrap();
        let mut stage = Stage::open(dir.path(), 1 << 20).unwrap();
        let of = of("q", 1);
        let write = |stage: &mut Stage, partition, number, rows: &str| {
            let key = (attempt(partition, number), 0);
            stage.write(&of, key, rows.as_bytes(), Instant::now())
        };
        write(&mut stage, 0, 1, "kept").unwrap();
        if acknowledged {
            stage.sync(&of).unwrap();
        }
        let file = break_file(&mut stage, &of);
        write(&mut stage, 1, 1, "lost").unwrap();
        assert!(stage.sync(&of).is_err());
        stage.batches.get_mut(&of).unwrap().file = file;
        // Also for parts that were written with it.
        assert_eq!(stage.sync(&of).unwrap_err().code, Code::Failed);
        let found = read(&stage, &of, &[won(0, 1, 1)]);
        assert_eq!(found.is_ok(), acknowledged);

        let mut all = vec![won(1, 2, 1), won(2, 1, 1)];
        write(&mut stage, 1, 2, "anew").unwrap();
        write(&mut stage, 2, 1, "more").unwrap();
        stage.sync(&of).unwrap();
        let mut rows = vec!["anew", "more"];
        if acknowledged {
            all.push(won(0, 1, 1));
            rows.push("kept");
        }
        assert_eq!(read(&stage, &of, &all).unwrap(), rows);
        let size = stage.size();
        drop(stage);
        let stage = Stage::open(dir.path(), 1 << 20).unwrap();
        assert_eq!((stage.lost, stage.notes.len()), (0, 0), "{:?}", stage.notes);
        assert_eq!(read(&stage, &of, &all).unwrap(), rows);
        assert_eq!(read(&stage, &of, &[won(1, 1, 1)]), Err(Code::NotStaged));
        assert_eq!(stage.size(), size);
    }
}
