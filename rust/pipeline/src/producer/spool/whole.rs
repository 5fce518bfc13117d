//! Tells whether a spool may lack rows that its last run had written but not synced. A process that is killed loses
//! none of these, and a machine that is restarted does.

use std::path::Path;

use zeroxide_log::disk;

use crate::producer::spool::files;

/// The file that says how the spool was used last.
const FILE: &str = "use";

/// Each batch was synced, or the spool was closed.
const SAFE: &str = "safe";

/// Whether all rows of the last run are there. False if that is unknown.
pub(super) fn is_whole(dir: &Path) -> bool {
    let Some(kept) = disk::read(dir.join(FILE))
        .ok()
        .as_deref()
        .and_then(files::read_twice)
    else {
        return false;
    };
    kept == SAFE || machine_run().is_some_and(|run| kept == run)
}

/// Records that rows may be lost from now on if the machine stops, or that they are `safe`.
pub(super) fn note(dir: &Path, safe: bool) {
    let path = dir.join(FILE);
    let text = match safe {
        true => Some(SAFE.to_owned()),
        false => machine_run(),
    };
    let written = text.is_some_and(|text| files::write_twice(&path, &text).is_ok());
    if !written {
        // There is room to remove a file on a full disk, too.
        forget(dir);
    }
}

/// Records that it is uncertain which rows are there.
pub(super) fn forget(dir: &Path) {
    let _ = disk::remove_file(dir.join(FILE));
}

/// Differs each time the machine starts; `None` if the system does not tell.
fn machine_run() -> Option<String> {
    let text = disk::system_text("/proc/sys/kernel/random/boot_id")?;
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}

// In folders of the system.
#[cfg(all(test, not(zeroxide_disk)))]
mod tests {
    use super::*;

    #[test]
    fn rows_are_certain_until_the_machine_starts_again() {
        let dir = tempfile::tempdir().unwrap();
        assert!(!is_whole(dir.path()));
        note(dir.path(), false);
        assert!(is_whole(dir.path()));
        files::write_twice(&dir.path().join(FILE), "another start").unwrap();
        assert!(!is_whole(dir.path()));
        note(dir.path(), true);
        assert!(is_whole(dir.path()));
    }
}
