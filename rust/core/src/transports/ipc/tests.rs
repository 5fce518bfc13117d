use std::io::IoSlice;
use std::os::fd::IntoRawFd;
use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};
use std::sync::{Arc, Barrier};

use super::*;
use crate::options::ContextOptions;
use crate::transports::Stream;

fn options() -> Options {
    Options::new(SocketType::Dealer, &ContextOptions::default())
}

/// A directory that is removed with the test.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Scratch {
        let path = std::env::temp_dir().join(format!("ipc-test-{:x}", random()));
        fs::create_dir(&path).unwrap();
        Scratch(path)
    }

    fn file(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).unwrap();
        entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn listen(address: &str) -> Result<Box<dyn Listen>> {
    IPC.check(address, SocketType::Dealer, true)?;
    IPC.listen(address, &options())
}

fn refusal(address: &str) -> ErrorKind {
    listen(address).map(|_| ()).unwrap_err().kind()
}

fn connect(address: &str) -> Result<Stream> {
    IPC.check(address, SocketType::Dealer, false)?;
    let Targets::Ready(targets) = IPC.targets(address, &options())? else {
        panic!("a path needs no resolver")
    };
    let Opening {
        stream, connected, ..
    } = IPC.open("", &targets[0], &options())?;
    assert!(connected);
    Ok(stream)
}

fn peer_endpoint(stream: &Stream) -> String {
    endpoint(&socket2::SockRef::from(&stream.fd).peer_addr().unwrap())
}

#[test]
fn bytes_flow_both_ways_and_the_path_is_removed_at_the_end() {
    let scratch = Scratch::new();
    let path = scratch.file("socket");
    let mut listener = listen(&path).unwrap();
    assert_eq!(listener.endpoint(), format!("ipc://{path}"));
    let mut near = connect(&path).unwrap();
    let mut far = listener.accept().unwrap().unwrap().unwrap();
    assert!(listener.accept().unwrap().is_none());
    far.send(&[IoSlice::new(b"hello")], false).unwrap();
    assert_eq!(far.unsent(), 0, "what was written is the peer's already");
    let mut buffer = Vec::new();
    assert_eq!(near.recv(&mut buffer).unwrap(), 5);
    let uid = rustix::process::getuid().as_raw();
    assert!(
        far.peer_address().starts_with(&format!(":{uid}:")),
        "{}",
        far.peer_address()
    );
    assert!(far.peer_address().ends_with(&format!(":{}", process::id())));
    assert_eq!(peer_endpoint(&near), listener.endpoint());
    near.take_error().unwrap();
    listener.close();
    drop(listener);
    assert!(scratch.names().is_empty());
    assert_eq!(connect(&path).unwrap_err().kind(), ErrorKind::NoEntry);
}

#[test]
fn a_live_socket_keeps_its_path() {
    let scratch = Scratch::new();
    let path = scratch.file("socket");
    let listener = listen(&path).unwrap();
    assert_eq!(refusal(&path), ErrorKind::AddressInUse);
    // The first connection was the test whether the socket is in use; the next one is real.
    drop(listener.accept().unwrap().unwrap().unwrap());
    let _near = connect(&path).unwrap();
    listener.accept().unwrap().unwrap().unwrap();
}

#[test]
fn a_live_socket_with_a_full_backlog_keeps_its_path() {
    let scratch = Scratch::new();
    let path = scratch.file("socket");
    let mut narrow = options();
    narrow.backlog = 0;
    let _listener = IPC.listen(&path, &narrow).unwrap();
    let _waiting = connect(&path).unwrap();
    let full = connect(&path).unwrap_err();
    assert_eq!(full.kind(), ErrorKind::Again, "{full}");
    assert_eq!(refusal(&path), ErrorKind::AddressInUse);
}

#[test]
fn a_dead_socket_is_replaced() {
    let scratch = Scratch::new();
    let path = scratch.file("socket");
    drop(UnixListener::bind(&path).unwrap());
    assert_eq!(scratch.names(), ["socket"]);
    let listener = listen(&path).unwrap();
    let _near = connect(&path).unwrap();
    listener.accept().unwrap().unwrap().unwrap();
    assert_eq!(scratch.names(), ["socket"]);
}

#[test]
fn a_file_that_is_not_a_stream_socket_stays() {
    let scratch = Scratch::new();
    let (file, datagram, directory) = (
        scratch.file("file"),
        scratch.file("datagram"),
        scratch.file("directory"),
    );
    fs::write(&file, "precious").unwrap();
    fs::create_dir(&directory).unwrap();
    let _socket = UnixDatagram::bind(&datagram).unwrap();
    for path in [&file, &datagram, &directory] {
        assert_eq!(refusal(path), ErrorKind::AddressInUse, "{path}");
    }
    assert_eq!(fs::read_to_string(&file).unwrap(), "precious");
    let link = scratch.file("link");
    std::os::unix::fs::symlink(&file, &link).unwrap();
    assert_eq!(refusal(&link), ErrorKind::AddressInUse);
    assert_eq!(scratch.names().len(), 4);
}

#[test]
fn an_empty_file_of_this_user_is_replaced() {
    let scratch = Scratch::new();
    let path = scratch.file("reserved");
    fs::write(&path, "").unwrap();
    let link = scratch.file("link");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    assert_eq!(refusal(&link), ErrorKind::AddressInUse);
    let mut listener = listen(&path).unwrap();
    drop(connect(&path).unwrap());
    listener.accept().unwrap().unwrap().unwrap();
    listener.close();
    assert_eq!(scratch.names(), ["link"]);
}

#[test]
fn only_our_own_path_is_removed() {
    let scratch = Scratch::new();
    let path = scratch.file("socket");
    let listener = listen(&path).unwrap();
    fs::remove_file(&path).unwrap();
    let successor = listen(&path).unwrap();
    drop(listener);
    assert_eq!(scratch.names(), ["socket"]);
    drop(successor);
    assert!(scratch.names().is_empty());
    let listener = listen(&path).unwrap();
    fs::remove_file(&path).unwrap();
    drop(listener);
}

#[test]
fn of_two_binders_one_wins() {
    let scratch = Scratch::new();
    let path = scratch.file("socket");
    for _ in 0..20 {
        drop(UnixListener::bind(&path).unwrap());
        let start = Arc::new(Barrier::new(4));
        let binders: Vec<_> = (0..4)
            .map(|_| {
                let (path, start) = (path.clone(), start.clone());
                thread::spawn(move || {
                    start.wait();
                    listen(&path).map(|listener| (start, listener))
                })
            })
            .collect();
        let bound: Vec<_> = binders
            .into_iter()
            .map(|binder| binder.join().unwrap())
            .collect();
        let winners = bound.iter().filter(|bound| bound.is_ok()).count();
        assert_eq!(winners, 1);
        UnixStream::connect(&path).unwrap();
        drop(bound);
        assert!(scratch.names().is_empty());
    }
}

#[test]
fn abstract_names_need_no_file() {
    let name = format!("@zeroxide-test-{:x}", random());
    let listener = listen(&name).unwrap();
    assert_eq!(listener.endpoint(), format!("ipc://{name}"));
    assert_eq!(refusal(&name), ErrorKind::AddressInUse);
    let near = connect(&name).unwrap();
    assert_eq!(peer_endpoint(&near), listener.endpoint());
    drop(listener);
    assert_eq!(
        connect(&name).unwrap_err().kind(),
        ErrorKind::ConnectionRefused
    );
    assert!(!Path::new(&name).exists());
}

#[test]
fn a_wildcard_has_its_own_directory() {
    let listener = listen("*").unwrap();
    let endpoint = listener.endpoint();
    let path = PathBuf::from(endpoint.strip_prefix("ipc://").unwrap());
    let directory = path.parent().unwrap().to_owned();
    assert_eq!(fs::metadata(&directory).unwrap().mode() & 0o777, 0o700);
    assert_ne!(listen("*").unwrap().endpoint(), endpoint);
    connect(path.to_str().unwrap()).unwrap();
    drop(listener);
    assert!(!directory.exists());
    assert_eq!(connect("*").unwrap_err().kind(), ErrorKind::Invalid);
}

#[test]
fn lengths_are_checked_before_anything_is_touched() {
    let scratch = Scratch::new();
    let room = LONGEST_PATH - scratch.file("").len();
    let longest = scratch.file(&"x".repeat(room));
    let too_long = scratch.file(&"x".repeat(room + 1));
    fs::write(&too_long, "precious").unwrap();
    let error = listen(&too_long).map(|_| ()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NameTooLong);
    assert!(error.to_string().contains("108 bytes"), "{error}");
    assert!(Path::new(&too_long).exists());
    drop(listen(&longest).unwrap());
    // An unused socket is replaced even if its path leaves no room for a longer name in an address.
    drop(UnixListener::bind(&longest).unwrap());
    drop(listen(&longest).unwrap());
    let name = format!("@{}", "x".repeat(106));
    drop(listen(&name).unwrap());
    for wrong in ["", "@", "a\0b"] {
        assert_eq!(refusal(wrong), ErrorKind::Invalid, "{wrong:?}");
    }
}

#[test]
fn a_turn_ends_although_a_forked_child_has_its_file() {
    let scratch = Scratch::new();
    let path = PathBuf::from(scratch.file("socket"));
    let turn = lock_directory(&path).unwrap();
    let _inherited = turn.0.try_clone().unwrap();
    drop(turn);
    assert!(lock_directory(&path).is_some());
}

#[test]
fn a_failed_bind_gives_the_reason() {
    let scratch = Scratch::new();
    assert_eq!(refusal(&scratch.file("nowhere/socket")), ErrorKind::NoEntry);
    fs::write(scratch.file("file"), "").unwrap();
    assert_eq!(
        refusal(&scratch.file("file/socket")),
        ErrorKind::Os(libc::ENOTDIR)
    );
}

#[test]
fn a_listening_descriptor_is_adopted_and_its_path_left() {
    let scratch = Scratch::new();
    let path = scratch.file("socket");
    let mut options = options();
    options.use_fd = Some(UnixListener::bind(&path).unwrap().into_raw_fd());
    let listener = IPC.listen("/elsewhere", &options).unwrap();
    assert_eq!(listener.endpoint(), format!("ipc://{path}"));
    let _near = connect(&path).unwrap();
    listener.accept().unwrap().unwrap().unwrap();
    drop(listener);
    assert_eq!(scratch.names(), ["socket"]);
    options.use_fd = Some(UnixDatagram::unbound().unwrap().into_raw_fd());
    assert_eq!(
        IPC.listen(&path, &options).map(|_| ()).unwrap_err().kind(),
        ErrorKind::Invalid
    );
}

#[test]
fn filters_admit_and_refuse() {
    let scratch = Scratch::new();
    let mut options = options();
    options
        .ipc_filter
        .uids
        .push(rustix::process::getuid().as_raw() + 1);
    let path = scratch.file("strangers");
    let listener = IPC.listen(&path, &options).unwrap();
    let _near = connect(&path).unwrap();
    let turned_away = listener.accept().unwrap().unwrap().unwrap_err();
    assert_eq!(turned_away.kind(), ErrorKind::Access);
    options.ipc_filter.pids.push(process::id() as i32);
    let path = scratch.file("friends");
    let listener = IPC.listen(&path, &options).unwrap();
    let _near = connect(&path).unwrap();
    listener.accept().unwrap().unwrap().unwrap();
}
