//! The only door of the log and of the pipeline to files. With `--cfg zeroxide_disk`, it leads to simulated disks, whose
//! machines lose power and whose operations fail; otherwise, it is the standard library and costs nothing.

#[cfg(zeroxide_disk)]
pub mod simulated;
#[cfg(not(zeroxide_disk))]
mod system;

#[cfg(zeroxide_disk)]
pub use simulated::{
    File, FileExt, OpenOptions, create_missing, exists, has_name, identity, is_file, lock,
    new_file, process, random, read, read_dir, read_more, read_to_string, remove_file, rename,
    restrict, sync_folder, system_text, unlock,
};
#[cfg(not(zeroxide_disk))]
pub use system::{
    File, FileExt, OpenOptions, create_missing, exists, has_name, identity, is_file, lock,
    new_file, process, random, read, read_dir, read_more, read_to_string, remove_file, rename,
    restrict, sync_folder, system_text, unlock,
};

use std::io;
use std::path::Path;

/// Creates a folder and its missing parents with these permissions. The names of a folder without files are on disk
/// afterwards. A folder with files had them there before the first file was created.
///
/// # Errors
/// The system's errors.
pub fn create_folders(dir: &Path, mode: u32) -> io::Result<()> {
    create_missing(dir, mode)?;
    if read_dir(dir)?.next().is_none() {
        for folder in dir.ancestors() {
            sync_name(folder)?;
        }
    }
    Ok(())
}

/// Syncs the name of a folder. Without the right to read its parent, and on file systems that cannot sync folders, there
/// is no way to do so.
fn sync_name(dir: &Path) -> io::Result<()> {
    let Some(parent) = dir.parent() else {
        return Ok(());
    };
    let is_here = parent.as_os_str().is_empty();
    match sync_folder(if is_here { Path::new(".") } else { parent }) {
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::PermissionDenied
                    | io::ErrorKind::InvalidInput
                    | io::ErrorKind::Unsupported
            ) =>
        {
            Ok(())
        }
        synced => synced,
    }
}
