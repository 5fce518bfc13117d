//! One writer at a time.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::error::LogError;
use crate::private;

const NAME: &str = "LOCK";

/// A folder that was taken, until this is dropped, or the process ends, however that comes.
#[derive(Debug)]
pub(crate) struct Lock(File);

impl Drop for Lock {
    fn drop(&mut self) {
        // Not left to closing the file: a child that is about to become another program has it open, too.
        let _ = flock(&self.0, FlockOperation::Unlock);
    }
}

/// Takes the folder.
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
    // The name is for people; without room for it the lock holds all the same.
    let _ = file
        .set_len(0)
        .and_then(|()| file.write_all(holder().as_bytes()));
    Ok(Lock(file))
}

/// Who this is.
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
