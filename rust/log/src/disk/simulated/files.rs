//! Files with the interface of the standard library, as far as it is used.

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use super::nodes::Content;
use super::paths::{named, on, place};
use super::{Act, Machine, Outcome, World, broken, full, missing, with};

/// An open file.
#[derive(Debug)]
pub struct File {
    machine: String,
    node: u64,
    /// The process that opened it.
    process: u64,
    /// The position of sequential writes.
    position: AtomicU64,
}

/// Options for opening a file.
#[derive(Clone, Debug, Default)]
pub struct OpenOptions {
    create: bool,
    create_new: bool,
    truncate: bool,
}

/// The length of a file.
#[derive(Clone, Copy, Debug)]
pub struct Metadata(u64);

/// Reading and writing at positions.
pub trait FileExt {
    /// Reads at a position.
    ///
    /// # Errors
    /// Those of the disk, and that the file ends.
    fn read_exact_at(&self, bytes: &mut [u8], position: u64) -> io::Result<()>;

    /// Writes at a position.
    ///
    /// # Errors
    /// Those of the disk.
    fn write_all_at(&self, bytes: &[u8], position: u64) -> io::Result<()>;
}

/// Options for creating a file that is opened for writing.
pub fn new_file(_mode: u32) -> OpenOptions {
    let mut options = OpenOptions::new();
    options.create(true);
    options
}

impl OpenOptions {
    /// Options without any set.
    #[allow(clippy::new_without_default)]
    pub fn new() -> OpenOptions {
        OpenOptions::default()
    }

    /// Has no effect: every file can be read.
    pub fn read(&mut self, _: bool) -> &mut OpenOptions {
        self
    }

    /// Has no effect: every file can be written to.
    pub fn write(&mut self, _: bool) -> &mut OpenOptions {
        self
    }

    /// Creates a file that does not exist.
    pub fn create(&mut self, create: bool) -> &mut OpenOptions {
        self.create = create;
        self
    }

    /// Creates a file, and fails if it exists.
    pub fn create_new(&mut self, create_new: bool) -> &mut OpenOptions {
        self.create_new = create_new;
        self
    }

    /// Removes the contents of the file.
    pub fn truncate(&mut self, truncate: bool) -> &mut OpenOptions {
        self.truncate = truncate;
        self
    }

    /// Opens a file.
    ///
    /// # Errors
    /// Those of the disk.
    pub fn open(&self, path: impl AsRef<Path>) -> io::Result<File> {
        let (folder, name) = place(path.as_ref())?;
        let creates = self.create || self.create_new;
        on(path.as_ref(), |world, machine, who| {
            machine.check()?;
            let folder = machine.find(&folder)?;
            let node = match machine.nodes.child(folder, &name) {
                Some(_) if self.create_new => return Err(io::ErrorKind::AlreadyExists.into()),
                Some(node) if machine.nodes.is_folder(node) => return Err(broken()),
                Some(node) => node,
                None if !creates => return Err(missing()),
                None => {
                    if machine.faults.is_full && !world.is_quiet {
                        return Err(full());
                    }
                    named(world, machine, who, "create", |machine| {
                        machine.nodes.add(folder, &name, false)
                    })?
                }
            };
            if self.truncate {
                change(world, machine, who, ("truncate", node), |content| {
                    content.set_length(0);
                })?;
            }
            Ok(File {
                machine: who.to_owned(),
                node,
                process: machine.process,
                position: AtomicU64::new(0),
            })
        })
    }
}

impl File {
    /// Opens a file for reading.
    ///
    /// # Errors
    /// Those of the disk.
    pub fn open(path: impl AsRef<Path>) -> io::Result<File> {
        OpenOptions::new().open(path)
    }

    /// The length of the file.
    ///
    /// # Errors
    /// Those of the disk.
    pub fn metadata(&self) -> io::Result<Metadata> {
        self.with(|content| Ok(Metadata(content.seen.len() as u64)))
    }

    /// Changes the length of the file.
    ///
    /// # Errors
    /// Those of the disk.
    pub fn set_len(&self, length: u64) -> io::Result<()> {
        self.alive(|world, machine| {
            let what = ("set the length of", self.node);
            change(world, machine, &self.machine, what, |content| {
                content.set_length(length);
            })
        })
    }

    /// Writes the file and its length to disk.
    ///
    /// # Errors
    /// Those of the disk. The data may then be lost, and a later sync does not notice.
    pub fn sync_data(&self) -> io::Result<()> {
        self.alive(|world, machine| {
            let outcome = machine.decide(world, Act::Sync);
            let done = matches!(outcome, Outcome::Done);
            world.note(&self.machine, "sync", self.node, [0, 0], done);
            let content = machine.nodes.file(self.node).ok_or_else(broken)?;
            match outcome {
                Outcome::Done => {
                    content.sync();
                    Ok(())
                }
                Outcome::Fails(error) => {
                    content.fail_sync(&mut world.dice);
                    Err(error)
                }
                Outcome::Stops => Err(broken()),
            }
        })
    }

    /// The same.
    ///
    /// # Errors
    /// As for [`sync_data`](Self::sync_data).
    pub fn sync_all(&self) -> io::Result<()> {
        self.sync_data()
    }

    /// Calls with the machine, if the process that opened the file is alive.
    fn alive<T>(
        &self,
        call: impl FnOnce(&mut World, &mut Machine) -> io::Result<T>,
    ) -> io::Result<T> {
        with(&self.machine, |world, machine| {
            machine.check()?;
            if machine.process != self.process {
                return Err(broken());
            }
            call(world, machine)
        })
    }

    /// Calls with the content, for reading.
    fn with<T>(&self, call: impl FnOnce(&mut Content) -> io::Result<T>) -> io::Result<T> {
        self.alive(|world, machine| {
            if let Outcome::Fails(error) = machine.decide(world, Act::Read) {
                world.note(&self.machine, "read", self.node, [0, 0], false);
                return Err(error);
            }
            let content = machine.nodes.file(self.node).ok_or_else(broken)?;
            call(content)
        })
    }
}

impl Metadata {
    /// The length of the file.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> u64 {
        self.0
    }
}

impl FileExt for File {
    fn read_exact_at(&self, bytes: &mut [u8], position: u64) -> io::Result<()> {
        self.with(|content| {
            let start = (position as usize).min(content.seen.len());
            let there = &content.seen[start..];
            let there = there
                .get(..bytes.len())
                .ok_or(io::ErrorKind::UnexpectedEof)?;
            bytes.copy_from_slice(there);
            Ok(())
        })
    }

    fn write_all_at(&self, bytes: &[u8], position: u64) -> io::Result<()> {
        self.alive(|world, machine| {
            let is_full = machine.faults.is_full && !world.is_quiet;
            let content = machine.nodes.file(self.node).ok_or_else(broken)?;
            let room = content.seen.len().saturating_sub(position as usize);
            if is_full && room < bytes.len() {
                let fits = &bytes[..room];
                world.note(
                    &self.machine,
                    "write",
                    self.node,
                    [position, room as u64],
                    false,
                );
                content.write(position, fits);
                return Err(full());
            }
            let numbers = [position, bytes.len() as u64];
            let outcome = machine.decide(world, Act::Write);
            let done = matches!(outcome, Outcome::Done);
            world.note(&self.machine, "write", self.node, numbers, done);
            let content = machine.nodes.file(self.node).ok_or_else(broken)?;
            match outcome {
                Outcome::Done => {
                    content.write(position, bytes);
                    Ok(())
                }
                Outcome::Fails(error) => {
                    content.write(position, &bytes[..world.dice.below(bytes.len() + 1)]);
                    Err(error)
                }
                Outcome::Stops => {
                    content.write(position, &bytes[..world.dice.below(bytes.len() + 1)]);
                    Err(broken())
                }
            }
        })
    }
}

impl io::Write for File {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let position = self.position.load(Ordering::Relaxed);
        self.write_all_at(bytes, position)?;
        self.position
            .store(position + bytes.len() as u64, Ordering::Relaxed);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Reads a file.
///
/// # Errors
/// Those of the disk.
pub fn read(path: impl AsRef<Path>) -> io::Result<Vec<u8>> {
    File::open(path)?.with(|content| Ok(content.seen.clone()))
}

/// Reads a file with text.
///
/// # Errors
/// Those of the disk, and that the file is not UTF-8.
pub fn read_to_string(path: impl AsRef<Path>) -> io::Result<String> {
    String::from_utf8(read(path)?).map_err(|_| io::ErrorKind::InvalidData.into())
}

/// Reads into the spare capacity of `bytes`.
///
/// # Errors
/// Those of the disk.
pub fn read_more(file: &File, bytes: &mut Vec<u8>, position: u64) -> io::Result<usize> {
    file.with(|content| {
        let start = (position as usize).min(content.seen.len());
        let there = &content.seen[start..];
        let length = there.len().min(bytes.capacity() - bytes.len());
        bytes.extend_from_slice(&there[..length]);
        Ok(length)
    })
}

/// Whether an open file still has a name.
///
/// # Errors
/// The machine has stopped.
pub fn has_name(file: &File) -> io::Result<bool> {
    file.alive(|_, machine| Ok(machine.nodes.has_name(file.node)))
}

/// Locks a file for this process.
///
/// # Errors
/// Those of the disk.
pub fn lock(file: &File) -> io::Result<bool> {
    file.alive(|_, machine| {
        let content = machine.nodes.file(file.node).ok_or_else(broken)?;
        Ok(!std::mem::replace(&mut content.is_locked, true))
    })
}

/// Unlocks a file.
pub fn unlock(file: &File) {
    let _ = file.alive(|_, machine| {
        let content = machine.nodes.file(file.node).ok_or_else(broken)?;
        content.is_locked = false;
        Ok(())
    });
}

/// Changes the content of a file, which either happens or does not.
fn change(
    world: &mut World,
    machine: &mut Machine,
    who: &str,
    (what, node): (&str, u64),
    change: impl FnOnce(&mut Content),
) -> io::Result<()> {
    let outcome = machine.decide(world, Act::Write);
    let is_done = match &outcome {
        Outcome::Done => true,
        Outcome::Fails(_) => false,
        Outcome::Stops => world.dice.one_in(2),
    };
    let content = machine.nodes.file(node).ok_or_else(broken)?;
    if is_done {
        change(content);
    }
    let done = matches!(outcome, Outcome::Done);
    world.note(who, what, node, [0, 0], done);
    match outcome {
        Outcome::Done => Ok(()),
        Outcome::Fails(error) => Err(error),
        Outcome::Stops => Err(broken()),
    }
}
