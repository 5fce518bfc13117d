//! Lets programs of the same user see what the sockets of this process do.
//!
//! An observer is a REP socket at an ipc endpoint that only its own user can open, with a context and a thread of its own.
//! The thread sleeps until a request arrives, so observing costs nothing while no program looks. A request is
//! [`PROTOCOL`], optionally with a second part: the number of peers to list for each socket, in decimal digits. The reply
//! is a JSON object: a snapshot, or `error`.

mod folder;

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use zeroxide_proto::message::Message;

use crate::context::Context;
use crate::error::{Error, ErrorKind, Result};
use crate::json::Json;
use crate::patterns::FOR_ANSWERS;
use crate::registry::contexts;
use crate::socket::{Socket, Wait};
use crate::sys::clock;
use crate::sys::local;
use crate::sys::sync::Mutex;
use crate::sys::sync::PoisonError;
use crate::sys::sync::thread::JoinHandle;
use crate::sys::thread::{self, ThreadSettings};
use crate::transports::endpoint_of;

/// The first part of a request. The number is that of the version.
pub const PROTOCOL: &[u8] = b"zeroxide-observe/1";
const VERSION: u64 = 1;

/// The number of peers listed for each socket, unless a request names another.
const MOST_PEERS: usize = 100;

/// A request is a few bytes.
const LONGEST_REQUEST: usize = 1024;

/// The length at which the command line of the program is cut off.
const LONGEST_COMMAND: usize = 200;

/// How long [`Observer::close`] waits for its thread, which only an unfinished snapshot delays.
const LONGEST_CLOSE: Duration = Duration::from_secs(2);

/// Answers programs of the same user that ask what the sockets of this process do, until it is closed or dropped.
///
/// In a forked child it is closed; the child may open one of its own.
#[derive(Debug)]
pub struct Observer {
    endpoint: String,
    running: Mutex<Option<Running>>,
}

#[derive(Debug)]
struct Running {
    context: Context,
    socket: Socket,
    thread: JoinHandle<()>,
}

impl Observer {
    /// Opens an endpoint, named after the process, in this folder, or in [`default_folder`].
    ///
    /// The folder is created if it does not exist. No other user may be able to open it or to put another in its place.
    ///
    /// # Errors
    /// `Access` if others could, and errors of [`Socket::bind`].
    pub fn open(folder: Option<&Path>) -> Result<Observer> {
        let folder = folder.map_or_else(default_folder, Path::to_owned);
        folder::make_private(&folder)?;
        folder::remove_stale(&folder);
        let path = folder.join(format!("{}.sock", process::id()));
        let context = Context::new();
        context.registry().hide();
        let socket = context.socket(FOR_ANSWERS)?;
        socket.set_linger(Some(Duration::ZERO))?;
        socket.set_maxmsgsize(Some(LONGEST_REQUEST))?;
        // The folder keeps other users out. This holds even if its permissions are changed later.
        socket.set_ipc_filter_uid(local::own_user())?;
        let endpoint = socket.bind(&endpoint_of(&path))?;
        fs::set_permissions(&path, Permissions::from_mode(0o600))?;
        let settings = ThreadSettings {
            name: "zeroxide/watch".to_owned(),
            ..ThreadSettings::default()
        };
        let answering = socket.clone();
        let thread = thread::spawn(settings, move || answer_all(&answering))?;
        let running = Running {
            context,
            socket,
            thread,
        };
        Ok(Observer {
            endpoint,
            running: Mutex::new(Some(running)),
        })
    }

    /// The endpoint, as in `ipc:///run/user/1000/zeroxide/4711.sock`.
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// Whether it answers in this process: it is not closed, and was not inherited through a fork.
    pub fn is_open(&self) -> bool {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running
            .as_ref()
            .is_some_and(|running| running.context.is_own_process())
    }

    /// Closes the endpoint and removes its file. In a forked child, nothing happens: the file is the parent's.
    pub fn close(&self) {
        let running = self
            .running
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let Some(running) = running else { return };
        if !running.context.is_own_process() {
            // Dropping it would detach the thread that has its number now.
            std::mem::forget(running.thread);
            return;
        }
        running.socket.close(Some(Some(Duration::ZERO)));
        // The thread has not panicked, and if it has, it has ended.
        let _ = running.thread.join();
        let deadline = clock::now() + LONGEST_CLOSE;
        // If it is interrupted or late, the I/O thread ends later.
        let _ = running.context.term_until(Some(deadline));
    }
}

impl Drop for Observer {
    fn drop(&mut self) {
        self.close();
    }
}

/// The folder of this user's observers: `zeroxide` in `XDG_RUNTIME_DIR`, or else `/tmp/zeroxide-UID`.
pub fn default_folder() -> PathBuf {
    folder::default()
}

/// Returns what an observer of this process answers: a JSON object with the counters of every socket of every context,
/// and of at most `most_peers` peers of each socket, those with the longest queues first.
pub fn snapshot(most_peers: usize) -> String {
    let contexts = contexts::all();
    Json::build(|json| {
        json.number("version", VERSION);
        json.text("zeroxide", env!("CARGO_PKG_VERSION"));
        json.number("pid", u64::from(process::id()));
        json.text("command", &command());
        let now = SystemTime::now();
        let now = now.duration_since(UNIX_EPOCH).unwrap_or_default();
        json.raw("time", &format!("{:.6}", now.as_secs_f64()));
        json.list("contexts", &contexts, |json, context| {
            context.describe(json, most_peers);
        });
    })
}

/// The program's command line.
fn command() -> String {
    let words = std::env::args_os().map(|word| word.to_string_lossy().into_owned());
    let mut text = words.collect::<Vec<_>>().join(" ");
    if let Some((end, _)) = text.char_indices().nth(LONGEST_COMMAND) {
        text.truncate(end);
    }
    text
}

fn answer_all(socket: &Socket) {
    loop {
        match socket.recv(Wait::Forever) {
            // A program that asked and does not read the answer gets none.
            Ok(request) => drop(socket.send(answer(&request), Wait::Dont)),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => return,
        }
    }
}

fn answer(request: &Message) -> String {
    match most_peers(request) {
        Ok(most_peers) => snapshot(most_peers),
        Err(error) => Json::build(|json| {
            json.number("version", VERSION);
            json.text("error", &error.to_string());
        }),
    }
}

fn most_peers(request: &Message) -> Result<usize> {
    let wrong = |what| Err(Error::with(ErrorKind::Invalid, what));
    let mut parts = request.iter();
    if parts.next().map(|part| part.as_slice()) != Some(PROTOCOL) {
        return wrong("the first part is not zeroxide-observe/1");
    }
    let Some(number) = parts.next() else {
        return Ok(MOST_PEERS);
    };
    let number = std::str::from_utf8(number.as_slice()).unwrap_or_default();
    match number.parse() {
        Ok(number) => Ok(number),
        Err(_) => wrong("the second part is not the number of peers, in decimal digits"),
    }
}

#[cfg(test)]
mod tests {
    use zeroxide_proto::socket_type::SocketType;

    use super::*;

    #[test]
    fn requests_name_the_protocol_and_perhaps_the_number_of_peers() {
        let number = |parts: &[&str]| {
            let parts: Vec<String> = parts.iter().map(|part| (*part).to_owned()).collect();
            most_peers(&Message::from(parts)).ok()
        };
        assert_eq!(number(&["zeroxide-observe/1"]), Some(MOST_PEERS));
        assert_eq!(number(&["zeroxide-observe/1", "7"]), Some(7));
        assert_eq!(number(&["zeroxide-observe/1", "-7"]), None);
        assert_eq!(number(&["zeroxide-observe/1", ""]), None);
        assert_eq!(number(&["zeroxide-observe/2"]), None);
        assert!(answer(&Message::from("")).starts_with(r#"{"version":1,"error":""#));
    }

    #[test]
    fn an_observers_own_context_is_not_seen() {
        let folder = std::env::temp_dir().join(format!("zeroxide-observer-{}", process::id()));
        let observer = Observer::open(Some(&folder)).unwrap();
        let context = Context::new();
        let socket = context.socket(SocketType::Push).unwrap();
        socket.connect("inproc://seen").unwrap();
        let asker = context.socket(SocketType::Req).unwrap();
        asker.connect(observer.endpoint()).unwrap();
        asker.send(PROTOCOL, Wait::Forever).unwrap();
        let reply = asker.recv(Wait::Forever).unwrap();
        let reply = String::from_utf8(reply.head().as_slice().to_vec()).unwrap();
        assert!(
            reply.contains(r#""connected":["inproc://seen"]"#),
            "{reply}"
        );
        assert!(!reply.contains(r#""type":"REP""#), "{reply}");
        assert!(observer.is_open());
        observer.close();
        assert!(!observer.is_open() && fs::read_dir(&folder).unwrap().next().is_none());
        fs::remove_dir(&folder).unwrap();
    }
}
