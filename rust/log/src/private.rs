//! Folders and files that only their owner may read, because rows are as confidential as the messages they were.

use std::ffi::OsStr;
use std::io;
use std::path::Path;

use crate::disk::{self, OpenOptions};

const FOLDER: u32 = 0o700;
const FILE: u32 = 0o600;
/// The permission bits of users other than the owner.
const OTHERS: u32 = 0o077;

/// Names of the files of logs, of their staged batches, and of spools.
const NAMES: [&str; 8] = [
    "LOCK",
    "snapshot",
    "durable",
    "generations",
    "owners",
    "producer",
    "base",
    "acknowledged",
];
const ENDINGS: [&str; 4] = ["zlog", "preparing", "stage", "new"];
/// Names of folders inside logs and spools, and of file systems' own folders.
const FOLDERS: [&str; 3] = ["staged", "set-aside", "lost+found"];

/// Creates a folder that only its owner may enter, with its name on disk. In an existing folder, other users lose their permissions on files
/// of logs and spools, and on the folder itself unless it holds anything else. Files of other users stay as they are.
///
/// # Errors
/// The system's errors from creating or listing the folder.
pub fn make_folder(dir: &Path) -> io::Result<()> {
    disk::create_folders(dir, FOLDER)?;
    let mut is_ours_alone = true;
    for entry in disk::read_dir(dir)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        // Not through a link, because that would change its target.
        if kind.is_file() && is_ours(&entry.path()) {
            disk::restrict(&entry.path(), OTHERS)?;
        } else {
            is_ours_alone &= kind.is_dir() && is_our_folder(&entry.path());
        }
    }
    match is_ours_alone {
        true => disk::restrict(dir, OTHERS),
        false => Ok(()),
    }
}

fn is_ours(file: &Path) -> bool {
    let named = |names: &[&str], text: Option<&OsStr>| {
        text.and_then(OsStr::to_str)
            .is_some_and(|text| names.contains(&text))
    };
    named(&NAMES, file.file_name()) || named(&ENDINGS, file.extension())
}

fn is_our_folder(dir: &Path) -> bool {
    let name = dir.file_name().and_then(OsStr::to_str);
    name.is_some_and(|name| FOLDERS.contains(&name)) || disk::is_file(&dir.join("LOCK"))
}

/// Options for creating a file that only its owner may read or write.
pub fn new_file() -> OpenOptions {
    disk::new_file(FILE)
}

// In folders of the system.
#[cfg(all(test, not(zeroxide_disk)))]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn a_folder_that_others_could_read_is_closed_to_them() {
        let place = tempfile::tempdir().unwrap();
        let (dir, outside) = (place.path().join("a/log"), place.path().join("outside"));
        make_folder(&dir).unwrap();
        assert_eq!(mode(&dir), FOLDER);
        assert_eq!(mode(&place.path().join("a")), FOLDER);

        for path in [&dir.join("0.zlog"), &outside] {
            fs::write(path, "rows").unwrap();
            fs::set_permissions(path, Permissions::from_mode(0o644)).unwrap();
        }
        fs::set_permissions(&dir, Permissions::from_mode(0o755)).unwrap();
        make_folder(&dir).unwrap();
        assert_eq!(mode(&dir), FOLDER);
        assert_eq!(mode(&dir.join("0.zlog")), FILE);
    }

    #[test]
    fn files_that_do_not_belong_to_a_log_are_unchanged() {
        let place = tempfile::tempdir().unwrap();
        let (dir, outside) = (place.path().join("shared"), place.path().join("outside"));
        fs::create_dir(&dir).unwrap();
        for path in [&dir.join("letter"), &dir.join("0.zlog"), &outside] {
            fs::write(path, "text").unwrap();
            fs::set_permissions(path, Permissions::from_mode(0o644)).unwrap();
        }
        fs::set_permissions(&dir, Permissions::from_mode(0o1777)).unwrap();
        std::os::unix::fs::symlink(&outside, dir.join("LOCK")).unwrap();
        make_folder(&dir).unwrap();
        assert_eq!(mode(&dir.join("0.zlog")), FILE);
        let others = [&dir, &dir.join("letter"), &outside].map(|path| mode(path));
        assert_eq!(others, [0o777, 0o644, 0o644]);
    }

    #[test]
    fn a_new_file_is_its_owners() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("file");
        new_file().open(&path).unwrap();
        assert_eq!(mode(&path), FILE);
    }
}
