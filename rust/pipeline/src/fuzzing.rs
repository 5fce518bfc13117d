//! Ways into parsers for the fuzzer, outside the public interface: they may change with any version.

use std::path::Path;

use crate::producer::spool::{self, Spool};

/// The folder of the spool that [`spool()`] opens, below its folder.
pub const SPOOL: &str = "tcp___h_1";

/// Opens the spool in a folder as a producer does, and reads its rows. Fails silently where a producer reports an error.
pub fn spool(dir: &Path) {
    let endpoint = "tcp://h:1";
    let Ok(name) = spool::name_of(dir, None, "p") else {
        return;
    };
    let _ = spool::check_others(dir, &[endpoint.to_owned()]);
    let Ok(mut spool) = Spool::open(dir, &name, endpoint, true) else {
        return;
    };
    let _ = (spool.notes(), spool.next_epoch(), spool.has_lost_numbers());
    let mut places = Vec::new();
    let _ = spool.left(|left| places.push(left.place));
    for place in places {
        let _ = spool.read(place);
    }
    if let Some(numbers) = spool.numbers() {
        let _ = spool.set_numbers(&numbers);
        assert_eq!(spool.numbers(), Some(numbers), "numbers that were recorded");
    }
    spool.close();
}
