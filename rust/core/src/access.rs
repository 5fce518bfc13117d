//! Access control that is decided in the I/O thread, without a handler and without Python.
//!
//! A list is shared: every socket secured with it, and every clone, sees its changes from the next connection on.
//! Connected peers stay until [`AllowList::disconnect_strangers`] or [`Passwords::disconnect_strangers`] is called.

mod certificates;

use std::collections::HashMap;
use std::hash::Hash;
use std::path::{Path, PathBuf};
use std::{fmt, mem};

use bytes::Bytes;
use zeroize::Zeroizing;
use zeroxide_proto::mechanisms::{Credentials, Shows, Verdict, curve, system_random};
use zeroxide_proto::z85;

use crate::error::{Error, ErrorKind, Result};
use crate::sys::sync::atomic::{AtomicBool, Ordering};
use crate::sys::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, Weak};

/// A public or secret key of CURVE.
pub type Key = [u8; 32];

/// Parses a key: 32 bytes, or 40 characters of Z85 (a terminating zero is allowed).
///
/// # Errors
/// `Invalid`, without showing the key.
pub fn parse_key(text: &[u8]) -> Result<Key> {
    let malformed = |why: String| {
        Error::with(
            ErrorKind::Invalid,
            format!("a CURVE key is 32 bytes or 40 characters of Z85: {why}"),
        )
    };
    let decoded = match text {
        [digits @ .., 0] if digits.len() == 40 => z85::decode(digits),
        digits if digits.len() == 40 => z85::decode(digits),
        raw => Ok(raw.to_vec()),
    };
    let decoded = decoded
        .map(Zeroizing::new)
        .map_err(|error| malformed(error.to_string()))?;
    let key = decoded
        .first_chunk()
        .filter(|_| decoded.len() == size_of::<Key>());
    key.copied().ok_or_else(|| {
        let length = text.len();
        malformed(match text.trim_ascii().len() {
            40 => format!("got {length} bytes; remove the white space around the key"),
            64 => format!("got {length} bytes; a key in hex must be decoded first"),
            _ => format!("got {length} bytes"),
        })
    })
}

/// Creates a pair of keys: the public one, the secret one.
///
/// # Errors
/// If the system provides no random bytes.
pub fn curve_keypair() -> Result<(Key, Key)> {
    let no_random = || Error::with(ErrorKind::NotSupported, "the system has no random bytes");
    let pair = curve::keypair(system_random).ok_or_else(no_random)?;
    Ok((pair.public, *pair.secret))
}

/// The public key of a secret key.
pub fn curve_public(secret_key: &Key) -> Key {
    curve::public_key(secret_key)
}

/// The property of a peer with its public key in Z85, if a list admitted it by its key.
pub const PUBLIC_KEY: &str = "X-Public-Key";

/// The text form of a key.
pub(crate) fn key_text(key: &Key) -> String {
    z85::encode(key).expect("32 is a multiple of 4")
}

/// A connection that a list has admitted.
pub(crate) trait Admitted: Send + Sync {
    /// Ends the connection, because its peer is no longer listed.
    fn revoke(&self);
    /// Whether the connection has ended.
    fn is_over(&self) -> bool;
}

/// The list by which a socket decides about its peers.
#[derive(Clone, Debug)]
pub(crate) enum Gate {
    Keys(AllowList),
    Users(Passwords),
}

/// The decision about a peer.
pub(crate) struct Decision {
    pub(crate) verdict: Verdict,
    /// The reason, if the peer is refused.
    pub(crate) reason: String,
    /// Whether the peer was identified, and not admitted like every other.
    pub(crate) recognised: bool,
}

impl Decision {
    fn yes(user_id: String, recognised: bool) -> Decision {
        let status = 200;
        Decision {
            verdict: Verdict {
                status,
                user_id: Some(user_id),
                ..Verdict::default()
            },
            reason: String::new(),
            recognised,
        }
    }

    /// Records the key that identified the peer, because several keys may have one name.
    fn of_key(mut self, key: &Key) -> Decision {
        let text = Bytes::from(key_text(key));
        self.verdict.metadata.push((PUBLIC_KEY.to_owned(), text));
        self
    }

    fn no(reason: impl Into<String>) -> Decision {
        let status = 400;
        Decision {
            verdict: Verdict {
                status,
                ..Verdict::default()
            },
            reason: reason.into(),
            recognised: false,
        }
    }
}

impl Gate {
    /// Decides about a peer, and registers the connection if it is admitted.
    pub(crate) fn judge(
        &self,
        peer: &Credentials,
        shows: Shows,
        connection: Weak<dyn Admitted>,
    ) -> Decision {
        match (self, shows, &peer.credentials[..]) {
            (Gate::Keys(keys), Shows::Key, [key]) => match Key::try_from(&key[..]) {
                Ok(key) => keys.judge(key, connection),
                Err(_) => Decision::no("the public key is not one"),
            },
            (Gate::Users(users), Shows::Password, [user, password]) => {
                users.judge(user, password, connection)
            }
            // The mechanism was changed after the list was set.
            _ => Decision::no(format!("no peer is accepted with {}", peer.mechanism)),
        }
    }
}

/// The public keys that may connect to a CURVE server, each with the name of its owner.
///
/// ```
/// use zeroxide::AllowList;
///
/// let allowed = AllowList::new();
/// allowed.add([7; 32], "alice");
/// assert!(allowed.contains(&[7; 32]));
/// allowed.remove(&[7; 32]);
/// assert!(allowed.is_empty());
/// ```
#[derive(Clone, Default)]
pub struct AllowList {
    shared: Arc<Keys>,
}

#[derive(Default)]
struct Keys {
    names: Roster<Key, String>,
    anybody: AtomicBool,
    folder: Mutex<Option<PathBuf>>,
}

impl AllowList {
    /// An empty list, which admits no client.
    pub fn new() -> AllowList {
        AllowList::default()
    }

    /// A list that admits every client that knows the server's public key: encryption without authentication.
    pub fn anybody() -> AllowList {
        let list = AllowList::new();
        list.shared.anybody.store(true, Ordering::Release);
        list
    }

    /// Reads the keys of the certificates (files `*.key`) in a folder, see [`reload`](Self::reload).
    ///
    /// # Errors
    /// The system's errors from reading; `Invalid` if a file is not a certificate.
    pub fn folder(path: impl AsRef<Path>) -> Result<AllowList> {
        let list = AllowList::new();
        *lock(&list.shared.folder) = Some(path.as_ref().to_owned());
        list.reload()?;
        Ok(list)
    }

    /// Reads the list's folder again, and returns the number of its keys. Other changes of the list are discarded.
    /// After an error the list is unchanged.
    ///
    /// # Errors
    /// As for [`folder`](Self::folder); `Invalid` if the list does not come from a folder.
    pub fn reload(&self) -> Result<usize> {
        let Some(folder) = lock(&self.shared.folder).clone() else {
            return Err(Error::with(
                ErrorKind::Invalid,
                "this allow-list was not made from a folder",
            ));
        };
        let certificates = certificates::read(&folder)?;
        let count = certificates.len();
        self.replace(certificates);
        Ok(count)
    }

    /// Whether every client is admitted.
    pub fn admits_anybody(&self) -> bool {
        self.shared.anybody.load(Ordering::Acquire)
    }

    /// Adds a key. The name becomes the User-Id of its owner's messages; without a name, that is the key in Z85.
    pub fn add(&self, key: Key, name: &str) {
        self.shared
            .names
            .add(curve::canonical_key(&key), name.to_owned());
    }

    /// Removes a key. Returns whether it was listed.
    pub fn remove(&self, key: &Key) -> bool {
        self.shared.names.remove(&curve::canonical_key(key))
    }

    /// Replaces all keys in one step.
    pub fn replace(&self, keys: impl IntoIterator<Item = (Key, String)>) {
        self.shared.anybody.store(false, Ordering::Release);
        let keys = keys.into_iter();
        self.shared
            .names
            .replace(keys.map(|(key, name)| (curve::canonical_key(&key), name)));
    }

    /// Ends the connections that this list has admitted and would no longer admit. Returns how many.
    ///
    /// No message that is sent after this call reaches their peers. Messages that they sent before can still be
    /// received.
    pub fn disconnect_strangers(&self) -> usize {
        let shared = &self.shared;
        let stays = |key: &Key| self.admits_anybody() || shared.names.contains(key);
        shared.names.disconnect_unless(stays)
    }

    /// Whether a key is listed.
    pub fn contains(&self, key: &Key) -> bool {
        self.shared.names.contains(&curve::canonical_key(key))
    }

    /// The keys with their names, in any order.
    pub fn keys(&self) -> Vec<(Key, String)> {
        self.shared.names.entries()
    }

    /// The number of keys.
    pub fn len(&self) -> usize {
        self.shared.names.len()
    }

    /// Whether the list has no keys.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn judge(&self, key: Key, connection: Weak<dyn Admitted>) -> Decision {
        self.shared.names.judge(key, connection, |name| match name {
            Some(name) if name.is_empty() => Decision::yes(key_text(&key), true).of_key(&key),
            Some(name) => Decision::yes(name.clone(), true).of_key(&key),
            None if self.admits_anybody() => Decision::yes(key_text(&key), false).of_key(&key),
            None => Decision::no(format!("no allow-list has its key {}", key_text(&key))),
        })
    }
}

impl fmt::Debug for AllowList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.admits_anybody() {
            true => f.write_str("AllowList(anybody)"),
            false => write!(f, "AllowList({} keys)", self.len()),
        }
    }
}

/// The users that may connect to a PLAIN server, and their passwords.
#[derive(Clone, Default)]
pub struct Passwords {
    shared: Arc<Roster<Bytes, Zeroizing<Vec<u8>>>>,
}

impl Passwords {
    /// An empty table, which admits no user.
    pub fn new() -> Passwords {
        Passwords::default()
    }

    /// Adds a user, whose name becomes the User-Id of its messages. It replaces an earlier password.
    pub fn add(&self, user: &str, password: impl Into<Vec<u8>>) {
        let user = Bytes::copy_from_slice(user.as_bytes());
        self.shared.add(user, Zeroizing::new(password.into()));
    }

    /// Removes a user. Returns whether it was listed.
    pub fn remove(&self, user: &str) -> bool {
        self.shared.remove(&Bytes::copy_from_slice(user.as_bytes()))
    }

    /// Replaces all users in one step.
    pub fn replace<P: Into<Vec<u8>>>(&self, users: impl IntoIterator<Item = (String, P)>) {
        let users = users.into_iter();
        let entries =
            users.map(|(user, password)| (Bytes::from(user), Zeroizing::new(password.into())));
        self.shared.replace(entries);
    }

    /// Ends the connections of users that are not listed any more. Returns how many. Users whose password has changed
    /// stay.
    ///
    /// No message that is sent after this call reaches their peers. Messages that they sent before can still be
    /// received.
    pub fn disconnect_strangers(&self) -> usize {
        self.shared
            .disconnect_unless(|user| self.shared.contains(user))
    }

    /// Whether a user is listed.
    pub fn contains(&self, user: &str) -> bool {
        self.shared
            .contains(&Bytes::copy_from_slice(user.as_bytes()))
    }

    /// The names, in any order.
    pub fn users(&self) -> Vec<String> {
        let text = |user: Bytes| String::from_utf8_lossy(&user).into_owned();
        let entries = self.shared.entries().into_iter();
        entries.map(|(user, _)| text(user)).collect()
    }

    /// The number of users.
    pub fn len(&self) -> usize {
        self.shared.len()
    }

    /// Whether the table has no users.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn judge(&self, user: &Bytes, password: &[u8], connection: Weak<dyn Admitted>) -> Decision {
        self.shared.judge(user.clone(), connection, |expected| {
            // An unknown user takes as long as a wrong password, and cannot be distinguished from one.
            let right = is_same(expected.map_or(&[], |known| known), password);
            match expected {
                Some(_) if right => Decision::yes(String::from_utf8_lossy(user).into_owned(), true),
                _ => Decision::no("unknown user or wrong password"),
            }
        })
    }
}

impl fmt::Debug for Passwords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Passwords({} users)", self.len())
    }
}

/// The maximum length of a password in PLAIN.
const PASSWORD_MAX: usize = 255;

/// Compares in a time that reveals neither the first difference of two texts nor their lengths.
fn is_same(expected: &[u8], got: &[u8]) -> bool {
    // PLAIN carries at most 255 bytes. The time of a comparison with a longer text reveals that it is longer.
    if expected.len().max(got.len()) > PASSWORD_MAX {
        return expected == got;
    }
    let padded = |text: &[u8]| {
        let mut room = [0; PASSWORD_MAX];
        room[..text.len()].copy_from_slice(text);
        std::hint::black_box(room)
    };
    let (left, right) = (padded(expected), padded(got));
    let lengths = expected.len() ^ got.len();
    let differing = |sum: u8, (left, right): (&u8, &u8)| std::hint::black_box(sum | (left ^ right));
    let bytes = left.iter().zip(&right).fold(0, differing);
    std::hint::black_box(lengths | usize::from(bytes)) == 0
}

/// Entries, and the connections that were admitted because of them.
struct Roster<K, V> {
    entries: RwLock<HashMap<K, V>>,
    /// Includes connections that have ended, up to the number of the others.
    admitted: Mutex<Vec<(K, Weak<dyn Admitted>)>>,
}

impl<K, V> Default for Roster<K, V> {
    fn default() -> Roster<K, V> {
        Roster {
            entries: RwLock::default(),
            admitted: Mutex::default(),
        }
    }
}

impl<K: Eq + Hash + Clone, V: Clone> Roster<K, V> {
    fn read<T>(&self, look: impl FnOnce(&HashMap<K, V>) -> T) -> T {
        look(&self.entries.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn write<T>(&self, change: impl FnOnce(&mut HashMap<K, V>) -> T) -> T {
        change(&mut self.entries.write().unwrap_or_else(PoisonError::into_inner))
    }

    fn add(&self, key: K, value: V) {
        self.write(|entries| entries.insert(key, value));
    }

    fn remove(&self, key: &K) -> bool {
        self.write(|entries| entries.remove(key)).is_some()
    }

    fn replace(&self, fresh: impl IntoIterator<Item = (K, V)>) {
        let fresh = fresh.into_iter().collect();
        self.write(|entries| *entries = fresh);
    }

    fn contains(&self, key: &K) -> bool {
        self.read(|entries| entries.contains_key(key))
    }

    fn entries(&self) -> Vec<(K, V)> {
        let pair = |(key, value): (&K, &V)| (key.clone(), value.clone());
        self.read(|entries| entries.iter().map(pair).collect())
    }

    fn len(&self) -> usize {
        self.read(HashMap::len)
    }

    /// Decides by the entry of `key`, and registers the connection if it is admitted.
    fn judge(
        &self,
        key: K,
        connection: Weak<dyn Admitted>,
        decide: impl FnOnce(Option<&V>) -> Decision,
    ) -> Decision {
        // Held during the decision: a thread that removes the entry and then ends its connections either finds this
        // one, or this one is not admitted.
        let mut admitted = lock(&self.admitted);
        let decision = self.read(|entries| decide(entries.get(&key)));
        if decision.verdict.status == 200 {
            // A session that connects is admitted at each reconnect, perhaps with a different peer.
            admitted.retain(|(_, earlier)| !earlier.ptr_eq(&connection));
            if admitted.len() == admitted.capacity() {
                admitted.retain(|(_, connection)| is_live(connection));
            }
            admitted.push((key, connection));
        }
        decision
    }

    fn disconnect_unless(&self, stays: impl Fn(&K) -> bool) -> usize {
        let leaving: Vec<_> = {
            let mut admitted = lock(&self.admitted);
            let (staying, leaving) = mem::take(&mut *admitted)
                .into_iter()
                .filter(|(_, connection)| is_live(connection))
                .partition(|(key, _)| stays(key));
            *admitted = staying;
            leaving
        };
        for connection in leaving.iter().filter_map(|(_, leaving)| leaving.upgrade()) {
            connection.revoke();
        }
        leaving.len()
    }
}

fn is_live(connection: &Weak<dyn Admitted>) -> bool {
    connection
        .upgrade()
        .is_some_and(|connection| !connection.is_over())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // The data is changed in single steps, so a panic in another thread leaves it consistent.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
