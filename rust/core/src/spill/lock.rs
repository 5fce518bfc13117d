//! The lock of a folder: one socket at a time has it.

use std::fs::{self, File, Metadata, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::{Folder, existing_file, foreign};
use crate::error::{Error, ErrorKind, Result};

const NAME: &str = "LOCK";

/// The start of the text in the file.
const HOLDER: &str = "a socket of process ";

/// A file that this socket has locked.
pub(super) struct Lock {
    path: PathBuf,
    /// While it is open, no other file has its identity.
    file: File,
    identity: (u64, u64),
}

impl Lock {
    /// Locks this folder.
    ///
    /// # Errors
    /// `AddressInUse` if another socket has it, `Invalid` if the file is that of another program, and the system's.
    pub(super) fn take(dir: &Path) -> Result<Lock> {
        let path = dir.join(NAME);
        let failed = |error| Folder::failed(dir, "be locked", error);
        if fs::symlink_metadata(&path).is_ok_and(|file| !file.is_file()) {
            return Err(failed(foreign(&path)));
        }
        let file = existing_file().create(true).truncate(false).open(&path);
        let mut file = file.map_err(failed)?;
        let locked = file.try_lock();
        let mut holder = Vec::new();
        let read = (&file).take(100).read_to_end(&mut holder);
        let holder = String::from_utf8_lossy(&holder);
        match locked {
            Ok(()) => read.map(|_| ()).map_err(failed)?,
            Err(TryLockError::WouldBlock) => {
                let holder = match holder.trim() {
                    "" => "another socket",
                    holder => holder,
                };
                let text = format!(
                    "SPILL_DIR {} is in use by {holder}: each socket needs a folder of its own",
                    dir.display()
                );
                return Err(Error::with(ErrorKind::AddressInUse, text));
            }
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
        // A disk without room may have cut it short, and zeros are what a file system leaves for what it had not written.
        let text = holder.trim_end_matches('\0');
        if !text.starts_with(HOLDER) && !HOLDER.starts_with(text) {
            return Err(failed(foreign(&path)));
        }
        // The text is only informative; the lock holds even if there is no room for it.
        let text = format!("{HOLDER}{}\n", std::process::id());
        let _ = file
            .set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| file.write_all(text.as_bytes()));
        let identity = identity(&file.metadata().map_err(failed)?);
        Ok(Lock {
            path,
            file,
            identity,
        })
    }

    /// Checks that no other socket has a folder of this name. That is so if this one's was moved or removed.
    ///
    /// # Errors
    /// `NotFound` if another socket has one, because this one's files are gone. The system's.
    pub(super) fn check(&self) -> io::Result<()> {
        match fs::symlink_metadata(&self.path) {
            Ok(file) if identity(&file) == self.identity => Ok(()),
            Ok(_) => {
                let what = "is that of another socket: the folder was moved or removed";
                let text = format!("{} {what}", self.path.display());
                Err(io::Error::new(io::ErrorKind::NotFound, text))
            }
            // No other socket has locked a folder of this name.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Lets another socket have the folder. Closing the file would not be enough: a child between fork and exec has it open,
    /// too.
    pub(super) fn release(&self) {
        let _ = self.file.unlock();
    }
}

fn identity(file: &Metadata) -> (u64, u64) {
    (file.dev(), file.ino())
}

#[cfg(test)]
mod tests;
