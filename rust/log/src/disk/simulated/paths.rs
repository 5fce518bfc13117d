//! Operations on paths: folders, names, and whole files.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::vec::IntoIter;

use super::{Act, Machine, Outcome, World, broken, missing, split, with};

/// A name in a folder.
#[derive(Debug)]
pub struct DirEntry {
    path: PathBuf,
    name: String,
    kind: Kind,
}

/// Whether a name is that of a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    is_folder: bool,
}

impl DirEntry {
    /// The path.
    pub fn path(&self) -> PathBuf {
        self.path.clone()
    }

    /// The name.
    pub fn file_name(&self) -> OsString {
        self.name.clone().into()
    }

    /// Whether it is a folder.
    ///
    /// # Errors
    /// None.
    pub fn file_type(&self) -> io::Result<Kind> {
        Ok(self.kind)
    }
}

impl Kind {
    /// Whether it is a file.
    pub fn is_file(self) -> bool {
        !self.is_folder
    }

    /// Whether it is a folder.
    pub fn is_dir(self) -> bool {
        self.is_folder
    }
}

/// Creates a folder and its missing parents.
///
/// # Errors
/// Those of the disk.
pub fn create_missing(dir: &Path, _mode: u32) -> io::Result<()> {
    let (_, names) = split(dir)?;
    on(dir, |world, machine, who| {
        machine.check()?;
        let mut at = machine.find(&[])?;
        for name in &names {
            at = match machine.nodes.child(at, name) {
                Some(child) => child,
                None => named(world, machine, who, "create a folder", |machine| {
                    machine.nodes.add(at, name, true)
                })?,
            };
        }
        Ok(())
    })
}

/// Has no effect: there is one user.
///
/// # Errors
/// None.
pub fn restrict(_path: &Path, _bits: u32) -> io::Result<()> {
    Ok(())
}

/// Whether there is a file or folder.
pub fn exists(path: &Path) -> bool {
    let found = split(path)
        .and_then(|(_, names)| on(path, |_, machine, _| machine.find(&names).map(|_| ())));
    found.is_ok()
}

/// Distinguishes the file or folder at a path from all others of the machine.
///
/// # Errors
/// There is none, or the machine has stopped.
pub fn identity(path: &Path) -> io::Result<(u64, u64)> {
    let (_, names) = split(path)?;
    on(path, |_, machine, _| {
        machine.check()?;
        machine.find(&names).map(|node| (0, node))
    })
}

/// Whether there is a file.
pub fn is_file(path: &Path) -> bool {
    let found = split(path).and_then(|(_, names)| {
        on(path, |_, machine, _| {
            let node = machine.find(&names)?;
            Ok(!machine.nodes.is_folder(node))
        })
    });
    found.unwrap_or(false)
}

/// Syncs the names in a folder.
///
/// # Errors
/// Those of the disk. The names are then synced by the next sync.
pub fn sync_folder(dir: &Path) -> io::Result<()> {
    let Ok((_, names)) = split(dir) else {
        // The folder of all machines.
        return Ok(());
    };
    on(dir, |world, machine, who| {
        machine.check()?;
        let node = machine.find(&names)?;
        let outcome = machine.decide(world, Act::Sync);
        let done = matches!(outcome, Outcome::Done);
        world.note(who, "sync the folder", node, [0, 0], done);
        match outcome {
            Outcome::Done => {
                machine.nodes.sync_folder(node);
                Ok(())
            }
            Outcome::Fails(error) => Err(error),
            Outcome::Stops => Err(broken()),
        }
    })
}

/// Lists a folder.
///
/// # Errors
/// Those of the disk.
pub fn read_dir(dir: impl AsRef<Path>) -> io::Result<IntoIter<io::Result<DirEntry>>> {
    let dir = dir.as_ref();
    let (_, names) = split(dir)?;
    let list = on(dir, |world, machine, _| {
        machine.check()?;
        if let Outcome::Fails(error) = machine.decide(world, Act::Read) {
            return Err(error);
        }
        let node = machine.find(&names)?;
        let list = machine.nodes.list(node).ok_or_else(missing)?;
        let entries = list.into_iter().map(|(name, node)| {
            let kind = Kind {
                is_folder: machine.nodes.is_folder(node),
            };
            let path = dir.join(&name);
            Ok(DirEntry { path, name, kind })
        });
        Ok(entries.collect::<Vec<_>>())
    })?;
    Ok(list.into_iter())
}

/// Removes a file.
///
/// # Errors
/// Those of the disk.
pub fn remove_file(path: impl AsRef<Path>) -> io::Result<()> {
    let path = path.as_ref();
    let (folder, name) = place(path)?;
    on(path, |world, machine, who| {
        machine.check()?;
        let folder = machine.find(&folder)?;
        let node = machine.nodes.child(folder, &name).ok_or_else(missing)?;
        named(world, machine, who, "remove", |machine| {
            machine.nodes.remove(folder, &name);
            node
        })?;
        Ok(())
    })
}

/// Renames a file within its folder.
///
/// # Errors
/// Those of the disk.
pub fn rename(from: impl AsRef<Path>, to: impl AsRef<Path>) -> io::Result<()> {
    let (folder, name) = place(from.as_ref())?;
    let (same_folder, new_name) = place(to.as_ref())?;
    assert_eq!(folder, same_folder, "files are renamed within their folder");
    on(from.as_ref(), |world, machine, who| {
        machine.check()?;
        let folder = machine.find(&folder)?;
        let node = machine.nodes.child(folder, &name).ok_or_else(missing)?;
        named(world, machine, who, "rename", |machine| {
            machine.nodes.rename(folder, &name, &new_name);
            node
        })?;
        Ok(())
    })
}

/// The names of the folder of a path, and the last name.
pub(super) fn place(path: &Path) -> io::Result<(Vec<String>, String)> {
    let (_, mut names) = split(path)?;
    let name = names.pop().ok_or_else(missing)?;
    Ok((names, name))
}

/// Calls with the machine of a path and its name.
pub(super) fn on<T>(
    path: &Path,
    call: impl FnOnce(&mut World, &mut Machine, &str) -> io::Result<T>,
) -> io::Result<T> {
    let (name, _) = split(path)?;
    with(&name, |world, machine| call(world, machine, &name))
}

/// Changes names, which either happens or does not.
pub(super) fn named(
    world: &mut World,
    machine: &mut Machine,
    who: &str,
    what: &str,
    change: impl FnOnce(&mut Machine) -> u64,
) -> io::Result<u64> {
    let outcome = machine.decide(world, Act::Name);
    let is_done = match &outcome {
        Outcome::Done => true,
        Outcome::Fails(_) => false,
        Outcome::Stops => world.dice.one_in(2),
    };
    let node = if is_done { change(machine) } else { 0 };
    let done = matches!(outcome, Outcome::Done);
    world.note(who, what, node, [0, 0], done);
    match outcome {
        Outcome::Done => Ok(node),
        Outcome::Fails(error) => Err(error),
        Outcome::Stops => Err(broken()),
    }
}
