//! The system's own files.

use std::fs::{DirBuilder, Permissions, metadata, set_permissions};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::sync::OnceLock;

use rustix::buffer::spare_capacity;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

pub use std::fs::{File, OpenOptions, read, read_dir, read_to_string, remove_file, rename};
pub use std::os::unix::fs::FileExt;

/// Options for creating a file that is opened for writing, with these permissions.
pub fn new_file(mode: u32) -> OpenOptions {
    let mut options = OpenOptions::new();
    options.create(true).write(true).mode(mode);
    options
}

/// Creates a folder and its missing parents with these permissions.
///
/// # Errors
/// The system's errors.
pub fn create_missing(dir: &Path, mode: u32) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(mode).create(dir)
}

/// Removes these permission bits of a file or folder, if it has them and belongs to this user.
///
/// # Errors
/// The system's errors, except that it belongs to another user, as the root of a mounted volume does, or that it was
/// removed meanwhile.
pub fn restrict(path: &Path, bits: u32) -> io::Result<()> {
    let changed = metadata(path).and_then(|found| {
        let mode = found.permissions().mode();
        match mode & bits {
            0 => Ok(()),
            _ => set_permissions(path, Permissions::from_mode(mode & !bits)),
        }
    });
    match changed {
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

/// Whether there is a file or folder.
pub fn exists(path: &Path) -> bool {
    path.exists()
}

/// Whether there is a file.
pub fn is_file(path: &Path) -> bool {
    path.is_file()
}

/// Distinguishes the file or folder at a path from all others.
///
/// # Errors
/// The system's errors.
pub fn identity(path: &Path) -> io::Result<(u64, u64)> {
    let found = metadata(path)?;
    Ok((found.dev(), found.ino()))
}

/// Whether an open file still has a name, so that it can be opened again.
///
/// # Errors
/// The system's errors.
pub fn has_name(file: &File) -> io::Result<bool> {
    Ok(file.metadata()?.nlink() > 0)
}

/// Syncs the names in a folder: new and renamed files, and removed ones.
///
/// # Errors
/// The system's errors.
pub fn sync_folder(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}

/// Locks a file for this process, and returns whether no other process has locked it.
///
/// # Errors
/// The system's errors.
pub fn lock(file: &File) -> io::Result<bool> {
    match flock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(true),
        Err(Errno::WOULDBLOCK) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Unlocks a file. Closing it would not be enough: a child between fork and exec has it open, too.
pub fn unlock(file: &File) {
    let _ = flock(file, FlockOperation::Unlock);
}

/// Reads into the spare capacity of `bytes`, from this position of the file on. Returns the number of bytes.
///
/// # Errors
/// The system's errors.
pub fn read_more(file: &File, bytes: &mut Vec<u8>, position: u64) -> io::Result<usize> {
    Ok(rustix::io::pread(file, spare_capacity(bytes), position)?)
}

/// Fills the bytes with random ones.
///
/// # Errors
/// The system's errors.
pub fn random(bytes: &mut [u8]) -> io::Result<()> {
    File::open("/dev/urandom")?.read_exact(bytes)
}

/// The text of one of the system's own files, such as those below `/proc`; None if it cannot be read.
pub fn system_text(path: &str) -> Option<String> {
    read_to_string(path).ok()
}

/// Distinguishes this process from others, including earlier ones with the same process id.
pub fn process() -> String {
    static PROCESS: OnceLock<String> = OnceLock::new();
    let name = || format!("{:016x}", RandomState::new().hash_one(std::process::id()));
    PROCESS.get_or_init(name).clone()
}
