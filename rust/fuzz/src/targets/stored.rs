//! One stored frame, as a collector sends it to readers. Its checksums are corrected first.

use bytes::Bytes;
use zeroxide_log::{FrameInfo, SegmentInfo, Stored};

use super::{batch, log};
use crate::{Target, guard};

pub(super) const TARGET: Target = Target {
    name: "stored",
    about: "frames of the log, as a collector sends them to readers",
    run,
    seeds,
    words: &[b"ZXF1", b"ZXLOG\r\n\x01"],
    longest: 4000,
};

fn run(input: &[u8]) {
    let mut bytes = input.to_vec();
    log::correct_frames(&mut bytes);
    let bytes = Bytes::from(bytes);
    let stored = guard::bounded(input.len(), || {
        let _ = (FrameInfo::peek(&bytes), SegmentInfo::read(&bytes));
        let stored = Stored::parse(bytes.clone()).ok()?;
        batch::touch(&stored.batch);
        for row in 0..stored.rows() {
            assert!((stored.first_offset..stored.end).contains(&stored.offset(row)));
            let _ = stored.seq(row);
        }
        Some(stored)
    });
    if let Some(stored) = stored {
        let info = FrameInfo::peek(&bytes)
            .expect("a header")
            .expect("a whole one");
        assert_eq!(
            (info.first_offset, info.end),
            (stored.first_offset, stored.end)
        );
        assert_eq!(info.origin, stored.origin);
        assert_eq!(info.length, bytes.len());
    }
}

fn seeds() -> Vec<Vec<u8>> {
    let files = log::written();
    let mut segments = files.iter().filter(|(name, _)| name.ends_with(".zlog"));
    let (_, segment) = segments.next().expect("a log has a segment");
    let start = SegmentInfo::read(segment).expect("a header").start;
    let (mut at, mut frames) = (start, vec![segment[..start].to_vec()]);
    while let Ok(Some(info)) = FrameInfo::peek(&segment[at..]) {
        frames.push(segment[at..at + info.length].to_vec());
        at += info.length;
    }
    frames
}
