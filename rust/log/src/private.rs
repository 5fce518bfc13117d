//! Folders and files that only their owner may read: rows are as confidential as the messages they were.

use std::fs::{self, DirBuilder, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

const FOLDER: u32 = 0o700;
const FILE: u32 = 0o600;
/// What others than the owner may do.
const OTHERS: u32 = 0o077;

/// Makes a folder that only its owner may enter, and takes the permissions of others away from one that is there, and
/// from the files in it. A folder that belongs to somebody else stays as it is.
///
/// # Errors
/// What making or listing the folder says.
pub fn make_folder(dir: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(FOLDER).create(dir)?;
    restrict(dir)?;
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        // Not through a link: that would change what it points to.
        if entry.file_type()?.is_file() {
            restrict(&entry.path())?;
        }
    }
    Ok(())
}

/// How a file is made that only its owner may read or write.
pub fn new_file() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.create(true).write(true).mode(FILE);
    options
}

fn restrict(path: &Path) -> io::Result<()> {
    let changed = fs::metadata(path).and_then(|found| {
        let mode = found.permissions().mode();
        match mode & OTHERS {
            0 => Ok(()),
            _ => fs::set_permissions(path, Permissions::from_mode(mode & !OTHERS)),
        }
    });
    match changed {
        // Somebody else's, as the root of a mounted volume is; or gone meanwhile.
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::PermissionDenied | io::ErrorKind::NotFound
            ) =>
        {
            Ok(())
        }
        changed => changed,
    }
}

#[cfg(test)]
mod tests {
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

        for path in [&dir.join("rows"), &outside] {
            fs::write(path, "rows").unwrap();
            fs::set_permissions(path, Permissions::from_mode(0o644)).unwrap();
        }
        std::os::unix::fs::symlink(&outside, dir.join("link")).unwrap();
        fs::set_permissions(&dir, Permissions::from_mode(0o755)).unwrap();
        make_folder(&dir).unwrap();
        assert_eq!(mode(&dir), FOLDER);
        assert_eq!(mode(&dir.join("rows")), FILE);
        assert_eq!(mode(&outside), 0o644);
    }

    #[test]
    fn a_new_file_is_its_owners() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("file");
        new_file().open(&path).unwrap();
        assert_eq!(mode(&path), FILE);
    }
}
