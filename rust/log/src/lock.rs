//! One writer at a time.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::error::LogError;
use crate::private;

const NAME: &str = "LOCK";

/// The lock of a folder, held until this is dropped or the process ends in any way.
#[derive(Debug)]
pub(crate) struct Lock(File);

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing the file would not be enough: a child between fork and exec has it open, too.
        let _ = flock(&self.0, FlockOperation::Unlock);
    }
}

/// Locks the folder.
pub(crate) fn take(dir: &Path) -> Result<Lock, LogError> {
    let path = dir.join(NAME);
    let file = private::new_file().truncate(false).open(&path);
    let mut file = file.map_err(|error| LogError::from_io("open", &path, error))?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        Err(Errno::WOULDBLOCK) => {
            let said = fs::read_to_string(&path).unwrap_or_default();
            let by = Some(said.trim()).filter(|by| !by.is_empty());
            return Err(LogError::Locked {
                dir: dir.to_owned(),
                by: by.unwrap_or("an unknown process").to_owned(),
            });
        }
        Err(error) => return Err(LogError::from_io("lock", &path, error.into())),
    }
    // The name is only informative; the lock holds even if there is no room for it.
    let _ = file
        .set_len(0)
        .and_then(|()| file.write_all(holder().as_bytes()));
    Ok(Lock(file))
}

/// Describes this process.
fn holder() -> String {
    let name = fs::read_to_string("/proc/self/comm").unwrap_or_default();
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    format!(
        "process {} ({}) on {}\n",
        std::process::id(),
        name.trim(),
        host.trim()
    )
}
