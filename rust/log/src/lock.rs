//! One writer at a time.

use std::io::Write;
use std::path::Path;

use crate::disk::{self, File};
use crate::error::LogError;
use crate::place::Place;
use crate::private;

const NAME: &str = "LOCK";

/// The lock of a folder, held until this is dropped or the process ends in any way.
#[derive(Debug)]
pub(crate) struct Lock {
    file: File,
    /// The folder itself, which keeps others out even if its file is removed. None where folders cannot be locked, such
    /// as on NFS.
    folder: Option<File>,
}

impl Drop for Lock {
    fn drop(&mut self) {
        if let Some(folder) = &self.folder {
            disk::unlock(folder);
        }
        disk::unlock(&self.file);
    }
}

/// Locks the folder, and returns which folder it is.
pub(crate) fn take(dir: &Path) -> Result<(Lock, Place), LogError> {
    let place = Place::of(dir).map_err(|error| LogError::from_io("find", dir, error))?;
    let path = dir.join(NAME);
    let file = private::new_file().truncate(false).open(&path);
    let mut file = file.map_err(|error| LogError::from_io("open", &path, error))?;
    let is_free = disk::lock(&file).map_err(|error| LogError::from_io("lock", &path, error))?;
    let folder = File::open(dir).ok();
    let locked = folder.as_ref().map(disk::lock);
    if !is_free || matches!(locked, Some(Ok(false))) {
        let said = disk::read_to_string(&path).unwrap_or_default();
        let by = Some(said.trim()).filter(|by| !by.is_empty());
        return Err(LogError::Locked {
            dir: dir.to_owned(),
            by: by.unwrap_or("an unknown process").to_owned(),
        });
    }
    // It may have been moved while its file was opened.
    place.check()?;
    // The name is only informative; the lock holds even if there is no room for it.
    let _ = file
        .set_len(0)
        .and_then(|()| file.write_all(holder().as_bytes()));
    let folder = folder.filter(|_| matches!(locked, Some(Ok(true))));
    Ok((Lock { file, folder }, place))
}

/// Describes this process.
fn holder() -> String {
    let name = disk::system_text("/proc/self/comm").unwrap_or_default();
    let host = disk::system_text("/proc/sys/kernel/hostname").unwrap_or_default();
    format!(
        "process {} ({}) on {}\n",
        std::process::id(),
        name.trim(),
        host.trim()
    )
}
