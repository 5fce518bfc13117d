//! The files of a producer's spool: its log, its name and its sequence numbers.

use std::fs;

use zeroxide_pipeline::fuzzing;

use super::{Parts, folder, log};
use crate::{Target, guard};

pub(super) const TARGET: Target = Target {
    name: "spool",
    about: "a producer's spool, from any files",
    run,
    seeds,
    words: &[
        b"-",
        b" ",
        b"/",
        b"\n",
        b"9223372036854775807",
        b"-9223372036854775808",
        b"18446744073709551615",
    ],
    longest: 8000,
};

/// The number with which `log` would pack another file.
const NUMBERS: u8 = 0x7f;

fn run(input: &[u8]) {
    let folder = folder();
    let dir = folder.path().join(fuzzing::SPOOL);
    fs::create_dir(&dir).expect("a folder");
    let mut parts = Parts(input);
    // The numbers come first: a line of text, whose checksum is corrected.
    let (kind, length) = (parts.byte(), parts.short());
    let text = parts.text(length);
    let numbers = match kind & 1 {
        0 => text,
        _ => format!("{:08x} {text}\n", crc32c::crc32c(text.as_bytes())),
    };
    if kind != NUMBERS {
        fs::write(dir.join("base"), &numbers).expect("written");
        fs::write(folder.path().join("producer"), &numbers).expect("written");
    }
    log::unpack(parts, &dir);
    guard::bounded_files(input.len(), || fuzzing::spool(folder.path()));
}

fn seeds() -> Vec<Vec<u8>> {
    let files = log::pack(&log::written(), 0x80);
    let texts = [
        "-5 7 2/1780000000000000 07070707070707070707070707070707 1790000000000000 3",
        "-5 7 2 - 3 4",
        "42\n",
        "p",
    ];
    let packed =
        |text: &str, kind: u8| [&[kind, text.len() as u8, 0][..], text.as_bytes(), &files].concat();
    texts
        .into_iter()
        .flat_map(|text| [packed(text, 0), packed(text, 1)])
        .collect()
}
