//! The folder of files that are in use. Another folder may get its path, with files of the same names.

use std::io;
use std::path::{Path, PathBuf};

use crate::disk;
use crate::error::LogError;

/// A folder at its path. Files of an open log are created, renamed and removed by their path, after a look at whether it
/// still leads to this folder.
#[derive(Debug, Clone)]
pub struct Place {
    dir: PathBuf,
    identity: (u64, u64),
}

impl Place {
    /// The folder that is at this path now.
    ///
    /// # Errors
    /// The system's errors.
    pub fn of(dir: &Path) -> io::Result<Place> {
        Ok(Place {
            dir: dir.to_owned(),
            identity: disk::identity(dir)?,
        })
    }

    /// Checks that the path leads to the same folder.
    ///
    /// # Errors
    /// [`LogError::Gone`] if it does not, and the system's errors.
    pub fn check(&self) -> Result<(), LogError> {
        let what = match disk::identity(&self.dir) {
            Ok(identity) if identity == self.identity => return Ok(()),
            Ok(_) => "was replaced by another folder",
            Err(error) if error.kind() == io::ErrorKind::NotFound => MISSING,
            Err(error) => return Err(LogError::from_io("find", &self.dir, error)),
        };
        Err(LogError::Gone {
            path: self.dir.clone(),
            what,
        })
    }
}

/// What happened to a folder that is not at its path.
pub(crate) const MISSING: &str = "was moved or removed";
