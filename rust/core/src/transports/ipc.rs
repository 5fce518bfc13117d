//! ipc: Unix domain stream sockets, at a path or (on Linux) under an abstract name.
//!
//! Binding never takes an address from another program. An existing socket at the path is tested first, and replaced
//! only if no program listens there. So is an empty file of this user, which programs make to reserve a unique name. If
//! several programs bind at once, one wins: they take turns by locking the directory.

use std::fs::{self, DirBuilder, File};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process;
use std::time::Duration;

use socket2::{Domain, SockAddr, Socket, Type};
use zeroxide_proto::socket_type::SocketType;

use super::{Arrival, ByteTransport, Listen, Opening, Target, Targets};
use crate::error::{Error, ErrorKind, Result};
use crate::options::{CredentialFilter, Options};
use crate::sys::clock;
use crate::sys::local::{self, LONGEST_PATH};
use crate::sys::sync::thread;

/// The number of attempts for a path that another program changes at the same time.
const ATTEMPTS: usize = 8;
/// The time after which a socket without a listener is tested again, in case it belongs to a program that does not use
/// the lock.
const GRACE: Duration = Duration::from_millis(20);
/// The maximum wait for the lock. Other programs may lock directories for other reasons, which must not block us.
const LOCK_MAX: Duration = Duration::from_secs(1);

/// See the module text.
pub(super) struct Ipc;

pub(super) static IPC: Ipc = Ipc;

impl ByteTransport for Ipc {
    fn scheme(&self) -> &'static str {
        "ipc"
    }

    fn check(&self, address: &str, _: SocketType, bind: bool) -> Result<()> {
        if address == "*" {
            return match bind {
                true => Ok(()),
                false => Err(Error::with(
                    ErrorKind::Invalid,
                    "'*' is for binding; name a path to connect to",
                )),
            };
        }
        socket_address(address).map(drop)
    }

    fn listen(&self, address: &str, options: &Options) -> Result<Box<dyn Listen>> {
        let mut listener = match options.use_fd {
            Some(fd) => adopted(fd)?,
            None if address == "*" => bound_to_temporary(options)?,
            None => bound_to(address, options)?,
        };
        listener.filter = options.ipc_filter.clone();
        listener.buffers = (options.sndbuf, options.rcvbuf);
        Ok(Box::new(listener))
    }

    fn targets(&self, address: &str, _: &Options) -> Result<Targets> {
        let address = socket_address(address)?;
        Ok(Targets::Ready(vec![Target {
            address,
            source: None,
            request: None,
        }]))
    }

    fn open(&self, _: &str, target: &Target, options: &Options) -> Result<Opening> {
        let socket = new_socket()?;
        set_buffers(&socket, (options.sndbuf, options.rcvbuf))?;
        match socket.connect(&target.address) {
            Ok(()) => Ok(Opening {
                stream: OwnedFd::from(socket).into(),
                connected: true,
            }),
            // Unlike TCP, no attempt continues in the background: the listener's backlog is full. This is no refusal,
            // because a socket listens, so RECONNECT_STOP does not apply.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                let text = format!("too many connections wait at {target}");
                Err(Error::with(ErrorKind::Again, text))
            }
            Err(error) => Err(Error::from(error).about(target)),
        }
    }
}

/// A bound path or name.
struct IpcListener {
    socket: Socket,
    endpoint: String,
    /// The path to remove at the end, if we created it.
    owned: Option<Owned>,
    filter: CredentialFilter,
    buffers: Buffers,
}

type Buffers = (Option<usize>, Option<usize>);

/// A path that this process created, with its inode to recognise it.
struct Owned {
    path: PathBuf,
    file: FileId,
    /// The temporary directory created for it.
    directory: Option<PathBuf>,
    pid: u32,
}

/// Identifies the file at a path.
#[derive(PartialEq, Eq, Clone, Copy)]
struct FileId {
    device: u64,
    inode: u64,
}

impl Listen for IpcListener {
    fn accept(&self) -> Result<Option<Arrival>> {
        let Some((fd, _)) = super::accept(self.fd())? else {
            return Ok(None);
        };
        Ok(Some(self.admit(fd)))
    }

    fn endpoint(&self) -> String {
        self.endpoint.clone()
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    fn close(&mut self) {
        if let Some(owned) = self.owned.take() {
            owned.remove();
        }
    }
}

impl IpcListener {
    /// Checks the peer of an accepted connection, and prepares it.
    fn admit(&self, fd: OwnedFd) -> Arrival {
        if !self.filter.is_empty() {
            let peer = local::peer_credentials(&fd)?;
            let (uid, gid, pid) = (peer.user, peer.group, peer.process);
            if !self.filter.admits(uid, gid, pid) {
                let text =
                    format!("IPC_FILTER does not admit user {uid}, group {gid}, process {pid}");
                return Err(Error::with(ErrorKind::Access, text));
            }
        }
        let socket = Socket::from(fd);
        set_buffers(&socket, self.buffers)?;
        Ok(OwnedFd::from(socket).into())
    }
}

impl Drop for IpcListener {
    fn drop(&mut self) {
        self.close();
    }
}

impl Owned {
    /// Removes the path, unless another program has put another socket there. A forked child leaves it to its parent.
    fn remove(self) {
        if self.pid != process::id() {
            return;
        }
        if file_id(&self.path).is_ok_and(|file| file == self.file) {
            // Ignore an error: the path is gone already, or may not be removed any more.
            let _ = fs::remove_file(&self.path);
        }
        if let Some(directory) = &self.directory {
            let _ = fs::remove_dir(directory);
        }
    }
}

/// The endpoint of a Unix socket address.
pub(super) fn endpoint(address: &SockAddr) -> String {
    match (address.as_pathname(), local::name(address)) {
        (Some(path), _) => format!("ipc://{}", path.display()),
        (None, Some(name)) => format!("ipc://@{}", String::from_utf8_lossy(name)),
        (None, None) => String::new(),
    }
}

/// The endpoint of a path.
pub(crate) fn endpoint_of(path: &Path) -> String {
    format!("ipc://{}", path.display())
}

/// Whether the socket at a path certainly has no listener.
pub(crate) fn is_abandoned(path: &Path) -> bool {
    SockAddr::unix(path).is_ok_and(|target| is_alive(&target).is_ok_and(|is_alive| !is_alive))
}

fn socket_address(address: &str) -> Result<SockAddr> {
    let invalid = |why: &str| Err(Error::with(ErrorKind::Invalid, why));
    if address.is_empty() || address == "@" {
        return invalid("the path, or the name after '@', is missing");
    }
    if address.contains('\0') {
        return invalid("a path has no zero bytes");
    }
    if address.len() > LONGEST_PATH {
        let length = address.len();
        let text = format!(
            "the path has {length} bytes, and the limit is {LONGEST_PATH}; use a shorter path, a relative one, or @name"
        );
        return Err(Error::with(ErrorKind::NameTooLong, text));
    }
    match address.strip_prefix('@') {
        Some(name) => Ok(local::nameless_path(name)?),
        None => Ok(SockAddr::unix(address)?),
    }
}

fn new_socket() -> Result<Socket> {
    Ok(Socket::new_raw(
        Domain::UNIX,
        Type::STREAM.nonblocking().cloexec(),
        None,
    )?)
}

fn set_buffers(socket: &Socket, (sndbuf, rcvbuf): Buffers) -> Result<()> {
    if let Some(size) = sndbuf {
        socket.set_send_buffer_size(size)?;
    }
    if let Some(size) = rcvbuf {
        socket.set_recv_buffer_size(size)?;
    }
    Ok(())
}

/// Listens at a path or name.
fn bound_to(address: &str, options: &Options) -> Result<IpcListener> {
    let target = socket_address(address)?;
    let path = target.as_pathname().map(Path::to_owned);
    let _turn = path.as_deref().and_then(lock_directory);
    for _ in 0..ATTEMPTS {
        let socket = new_socket()?;
        match socket.bind(&target) {
            Ok(()) => return listening(socket, address, path, options),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
            Err(error) => return Err(cannot_bind(error, address)),
        }
        let Some(path) = &path else {
            return Err(in_use("another socket has that name"));
        };
        make_way(path, &target)?;
    }
    Err(in_use("others keep binding it"))
}

fn listening(
    socket: Socket,
    address: &str,
    path: Option<PathBuf>,
    options: &Options,
) -> Result<IpcListener> {
    // From here on the path is ours, and is removed with the listener if the rest fails.
    let owned = match path {
        Some(path) => Some(Owned {
            file: file_id(&path)?,
            path,
            directory: None,
            pid: process::id(),
        }),
        None => None,
    };
    let listener = IpcListener {
        socket,
        endpoint: format!("ipc://{address}"),
        owned,
        filter: CredentialFilter::default(),
        buffers: (None, None),
    };
    listener.socket.listen(options.backlog)?;
    Ok(listener)
}

/// Listens in a new temporary directory.
fn bound_to_temporary(options: &Options) -> Result<IpcListener> {
    let base = std::env::temp_dir();
    for _ in 0..ATTEMPTS {
        let directory = base.join(format!("zeroxide-{:012x}", random() & 0xffff_ffff_ffff));
        match DirBuilder::new().mode(0o700).create(&directory) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
            Err(error) => return Err(Error::from(error).about(directory.display())),
        }
        let path = directory.join("socket");
        let bound = match path.to_str() {
            Some(path) => bound_to(path, options),
            None => Err(Error::with(
                ErrorKind::Invalid,
                "the directory for temporary files is not in UTF-8",
            )),
        };
        return match bound {
            Ok(mut listener) => {
                if let Some(owned) = &mut listener.owned {
                    owned.directory = Some(directory);
                }
                Ok(listener)
            }
            Err(error) => {
                let _ = fs::remove_dir(&directory);
                Err(error)
            }
        };
    }
    Err(in_use("no name for a temporary directory is free"))
}

/// A listening socket created by other code, which will remove it.
fn adopted(fd: i32) -> Result<IpcListener> {
    let socket = super::adopted(fd, "Unix", SockAddr::is_unix, |_| Ok(()))?;
    Ok(IpcListener {
        endpoint: endpoint(&socket.local_addr()?),
        socket,
        owned: None,
        filter: CredentialFilter::default(),
        buffers: (None, None),
    })
}

/// The lock on a directory.
struct Turn(File);

impl Drop for Turn {
    /// Unlocks. Closing the file does not, if a forked child has it, too.
    fn drop(&mut self) {
        // It is locked, so this does not fail.
        let _ = self.0.unlock();
    }
}

/// Waits for the lock on the directory of a path; `None` if it cannot be locked.
fn lock_directory(path: &Path) -> Option<Turn> {
    let directory = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    let lock = File::open(directory.unwrap_or(Path::new("."))).ok()?;
    let deadline = clock::now() + LOCK_MAX;
    while lock.try_lock().is_err() {
        if clock::now() >= deadline {
            return None;
        }
        thread::sleep(Duration::from_millis(2));
    }
    Some(Turn(lock))
}

/// Removes an unused socket, or an empty file of this user, at the path.
///
/// # Errors
/// `AddressInUse` if it is in use, or is another kind of file.
fn make_way(path: &Path, target: &SockAddr) -> Result<()> {
    let found = match fs::symlink_metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(Error::from(error).about(path.display())),
    };
    if is_placeholder(&found) {
        return remove_unchanged(path, &found);
    }
    if !found.file_type().is_socket() {
        return Err(in_use(
            "the file at the path is not a socket; remove it or choose another path",
        ));
    }
    if is_alive(target)? || {
        thread::sleep(GRACE);
        is_alive(target)?
    } {
        return Err(in_use("another socket listens there"));
    }
    remove_unchanged(path, &found)
}

/// Whether the file only reserves its name, as those of `mkstemp` do: it is empty and belongs to this user.
fn is_placeholder(found: &fs::Metadata) -> bool {
    found.file_type().is_file() && found.len() == 0 && found.uid() == local::own_user()
}

/// Removes what was found at the path. If another program has changed it since, nothing is removed, and the caller looks
/// again.
fn remove_unchanged(path: &Path, found: &fs::Metadata) -> Result<()> {
    match fs::symlink_metadata(path) {
        Ok(now) if FileId::of(&now) == FileId::of(found) && now.len() == found.len() => {
            fs::remove_file(path).map_err(|error| cannot_bind(error, &path.display().to_string()))
        }
        _ => Ok(()),
    }
}

/// Whether a program listens there.
fn is_alive(target: &SockAddr) -> Result<bool> {
    match new_socket()?.connect(target) {
        Ok(()) => Ok(true),
        Err(error) => local::shows_listener(&error).ok_or_else(|| error.into()),
    }
}

fn file_id(path: &Path) -> io::Result<FileId> {
    fs::symlink_metadata(path).map(|found| FileId::of(&found))
}

impl FileId {
    fn of(found: &fs::Metadata) -> FileId {
        FileId {
            device: found.dev(),
            inode: found.ino(),
        }
    }
}

/// Different in each call; for names that only must not collide by accident.
fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}

fn in_use(why: &str) -> Error {
    Error::with(ErrorKind::AddressInUse, why)
}

fn cannot_bind(error: io::Error, path: &str) -> Error {
    let error = Error::from(error);
    match error.kind() {
        ErrorKind::NoEntry => {
            let cure = match path.starts_with("~/") {
                true => "; '~' has no meaning in an endpoint, so expand it first",
                false => "",
            };
            error.about(format_args!("the directory of {path} does not exist{cure}"))
        }
        ErrorKind::Access => error.about(format_args!("the directory of {path} must be writable")),
        _ => error.about(path),
    }
}

#[cfg(test)]
mod tests;
