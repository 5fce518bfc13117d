//! Calls that secure a socket, and state which clients are accepted.

use std::sync::Arc;

use zeroize::Zeroizing;
use zeroxide_proto::mechanisms::{curve::CURVE, plain::PLAIN};

use super::Socket;
use crate::access::{AllowList, Gate, Key, Passwords};
use crate::error::{Error, ErrorKind, Result};
use crate::options::{Security, ids};

impl Socket {
    /// Makes this socket a CURVE server: clients are authenticated, all traffic is encrypted, and only the keys in
    /// `allowed` are accepted. The list stays shared, so later changes to it apply to the next client. The `User-Id` of
    /// a client's messages is the name of its key in the list, or the key in Z85 if it has no name.
    ///
    /// ```
    /// use zeroxide::{AllowList, Context, SocketType, curve_keypair};
    ///
    /// let (server_public, server_secret) = curve_keypair()?;
    /// let (alice_public, alice_secret) = curve_keypair()?;
    /// let allowed = AllowList::new();
    /// allowed.add(alice_public, "alice");
    ///
    /// let context = Context::new();
    /// let server = context.socket(SocketType::Rep)?;
    /// server.secure_server(&server_secret, &allowed)?;
    /// server.bind("tcp://127.0.0.1:*")?;
    ///
    /// let alice = context.socket(SocketType::Req)?;
    /// alice.secure_client(&server_public, Some(&alice_secret))?;
    /// # Ok::<(), zeroxide::Error>(())
    /// ```
    ///
    /// # Errors
    /// `Invalid` when the socket is already bound or connected, because existing endpoints would not be secured.
    /// `Terminated`, `NotSocket`.
    pub fn secure_server(&self, secret_key: &Key, allowed: &AllowList) -> Result<()> {
        self.secure(|security| {
            security.remove(ids::CURVE_PUBLICKEY);
            security.store(ids::CURVE_SECRETKEY, secret_key.to_vec());
            security.gate = Some(Gate::Keys(allowed.clone()));
            security.set_role(&CURVE, true);
        })
    }

    /// Makes this socket a CURVE client of the server with this public key. Without a secret key of its own, the client
    /// gets a new one. Only a server that accepts every key ([`AllowList::anybody`]) accepts such a client.
    ///
    /// # Errors
    /// As [`secure_server`](Self::secure_server).
    pub fn secure_client(&self, server_key: &Key, secret_key: Option<&Key>) -> Result<()> {
        let secret_key = match secret_key {
            Some(key) => Zeroizing::new(*key),
            None => crate::access::curve_keypair()?.1.into(),
        };
        self.secure(|security| {
            security.remove(ids::CURVE_PUBLICKEY);
            security.store(ids::CURVE_SECRETKEY, secret_key.to_vec());
            security.store(ids::CURVE_SERVERKEY, server_key.to_vec());
            security.set_role(&CURVE, false);
        })
    }

    /// Makes this socket a PLAIN server that accepts the users in a list. The list stays shared, as in
    /// [`secure_server`](Self::secure_server). PLAIN sends everything unencrypted, so use it only on networks that are
    /// protected otherwise.
    ///
    /// # Errors
    /// As [`secure_server`](Self::secure_server).
    pub fn password_server(&self, users: &Passwords) -> Result<()> {
        self.secure(|security| {
            security.gate = Some(Gate::Users(users.clone()));
            security.set_role(&PLAIN, true);
        })
    }

    /// Makes this socket a PLAIN client.
    ///
    /// # Errors
    /// As [`secure_server`](Self::secure_server); `Invalid` if the user name or the password is longer than 255 bytes.
    pub fn password_client(&self, user: &str, password: &[u8]) -> Result<()> {
        if user.len() > 255 || password.len() > 255 {
            return Err(Error::with(
                ErrorKind::Invalid,
                "PLAIN limits the user name and the password to 255 bytes each",
            ));
        }
        self.secure(|security| {
            security.store(ids::PLAIN_USERNAME, user.as_bytes().to_vec());
            security.store(ids::PLAIN_PASSWORD, password.to_vec());
            security.set_role(&PLAIN, false);
        })
    }

    fn secure(&self, settings: impl FnOnce(&mut Security)) -> Result<()> {
        let mut state = self.core().lock_open()?;
        self.core().process(&mut state);
        if !state.endpoints.is_empty() {
            return Err(Error::with(
                ErrorKind::Invalid,
                "secure a socket before it is bound or connected: existing endpoints would stay open to every peer",
            ));
        }
        let security = &mut Arc::make_mut(&mut state.options).security;
        security.gate = None;
        settings(security);
        Ok(())
    }
}
