//! The folder of observers, which no other user can open.

use std::env;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use crate::error::{Error, ErrorKind, Result};
use crate::sys::local;
use crate::transports::is_abandoned;

/// The permissions of others to open a folder, to list it, and to change it.
const OTHERS: u32 = 0o077;
const OTHERS_WRITE: u32 = 0o022;
/// In a folder with this bit, as in `/tmp`, only the owner of a file can replace it.
const STICKY: u32 = 0o1000;

pub(super) fn default() -> PathBuf {
    let runtime = env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    match runtime.filter(|folder| folder.is_absolute() && folder.is_dir()) {
        Some(folder) => folder.join("zeroxide"),
        None => env::temp_dir().join(format!("zeroxide-{}", local::own_user())),
    }
}

/// Creates the folder, unless it exists, and checks that it is this user's alone.
///
/// # Errors
/// `Access` if another user could open or replace it, and the system's errors.
pub(super) fn make_private(folder: &Path) -> Result<()> {
    let about = |error: io::Error| Error::from(error).about(folder.display());
    match DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(about(error)),
        _ => {}
    }
    let user = local::own_user();
    // Not what a link points to: its owner could point it elsewhere.
    let found = fs::symlink_metadata(folder).map_err(about)?;
    let refuse = |why: &str| {
        let text = format!("{}: {why}", folder.display());
        Err(Error::with(ErrorKind::Access, text))
    };
    if !found.is_dir() {
        return refuse("sockets are observed in a folder of your own, and this is none");
    }
    if found.uid() != user {
        return refuse(
            "sockets are observed in a folder of your own, and this one is another user's",
        );
    }
    if found.mode() & OTHERS != 0 {
        return refuse("other users may open this folder; run chmod 700 on it, or name another");
    }
    let parent = match folder.parent() {
        Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
        Some(parent) => parent,
        None => folder,
    };
    let above = fs::metadata(parent).map_err(about)?;
    let is_ours = above.uid() == user || above.uid() == 0;
    let is_open = above.mode() & OTHERS_WRITE != 0 && above.mode() & STICKY == 0;
    if !is_ours || is_open {
        return refuse(
            "other users may replace this folder; name one in a folder that they cannot write",
        );
    }
    Ok(())
}

/// Removes the sockets of processes that have ended without closing theirs, as killed ones and forked children do. A
/// process in a container may use the folder, too, and have a number that no process has here. Its socket has a
/// listener.
pub(super) fn remove_stale(folder: &Path) {
    let processes = Path::new("/proc");
    if !processes.join("self").exists() {
        return;
    }
    // Ignore errors: what cannot be removed does no harm.
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let pid = name.to_str().and_then(|name| name.strip_suffix(".sock"));
        let pid = pid.and_then(|pid| pid.parse::<u32>().ok());
        let has_ended = pid.is_some_and(|pid| !processes.join(pid.to_string()).exists());
        let path = entry.path();
        if has_ended && entry.file_type().is_ok_and(|kind| kind.is_socket()) && is_abandoned(&path)
        {
            let _ = fs::remove_file(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn only_sockets_of_processes_that_have_ended_are_removed() {
        let folder = env::temp_dir().join(format!("zeroxide-stale-{}", std::process::id()));
        make_private(&folder).unwrap();
        // No process has such a number.
        let (ended, mine) = (4_200_000, std::process::id());
        let socket = |pid: u32| drop(UnixListener::bind(folder.join(format!("{pid}.sock"))));
        socket(ended);
        socket(mine);
        drop(UnixListener::bind(folder.join("other.sock")));
        // A process that this one cannot see.
        let elsewhere = folder.join(format!("{}.sock", ended + 2));
        let _listens = UnixListener::bind(elsewhere).unwrap();
        fs::write(folder.join(format!("{}.sock", ended + 1)), "a file").unwrap();
        remove_stale(&folder);
        let mut left: Vec<_> = fs::read_dir(&folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        left.sort();
        let mut expected = [
            format!("{mine}.sock"),
            format!("{}.sock", ended + 1),
            format!("{}.sock", ended + 2),
            "other.sock".to_owned(),
        ];
        expected.sort();
        assert_eq!(left, expected);
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_folder_that_others_can_open_or_replace_is_refused() {
        let root = env::temp_dir().join(format!("zeroxide-folder-{}", std::process::id()));
        DirBuilder::new().mode(0o700).create(&root).unwrap();
        let set = |path: &Path, mode| fs::set_permissions(path, Permissions::from_mode(mode));
        let refusal = |path: &Path| make_private(path).unwrap_err().to_string();

        let folder = root.join("new");
        make_private(&folder).unwrap();
        assert_eq!(fs::metadata(&folder).unwrap().mode() & 0o777, 0o700);
        make_private(&folder).unwrap();

        set(&folder, 0o710).unwrap();
        assert!(
            refusal(&folder).contains("chmod 700"),
            "{}",
            refusal(&folder)
        );
        set(&folder, 0o700).unwrap();

        let link = root.join("link");
        symlink(&folder, &link).unwrap();
        assert!(
            refusal(&link).contains("this is none"),
            "{}",
            refusal(&link)
        );

        set(&root, 0o777).unwrap();
        assert!(refusal(&folder).contains("replace"), "{}", refusal(&folder));
        set(&root, 0o1777).unwrap();
        make_private(&folder).unwrap();

        set(&root, 0o700).unwrap();
        fs::remove_dir_all(&root).unwrap();
    }
}
