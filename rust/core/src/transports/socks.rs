//! The client side of SOCKS5 (RFC 1928), with user name and password if the proxy requires them (RFC 1929).
//!
//! A [`Layer`] that is over once the proxy has connected. Names are passed unchanged to
//! the proxy, which resolves them. A reply has at most [`REPLY_MAX`] bytes, and nothing is stored beyond one.

use std::io::{self, IoSlice};
use std::net::IpAddr;
use std::sync::Arc;

use super::layers::{Layer, Phase};
use crate::error::{Error, ErrorKind, Result};
use crate::sys::errno;

const VERSION: u8 = 5;
/// The version of the user name and password exchange.
const AUTHENTICATION: u8 = 1;

const GONE: &str = "the proxy ended the connection";

/// Methods of authentication.
const NONE: u8 = 0;
const PASSWORD: u8 = 2;
const NO_METHOD: u8 = 0xff;

const CONNECT: u8 = 1;
const RESERVED: u8 = 0;

/// Types of addresses.
const IPV4: u8 = 1;
const NAME: u8 = 3;
const IPV6: u8 = 4;

/// The bytes before an address in a reply, and the port after it.
const HEAD: usize = 4;
const PORT: usize = 2;

/// The maximum length of a reply: with a name of maximum length.
const REPLY_MAX: usize = HEAD + 1 + u8::MAX as usize + PORT;

/// The requested connection, and the credentials for the proxy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Request {
    destination: Destination,
    port: u16,
    credentials: Option<(String, String)>,
}

/// A host in the proxy's format.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Destination {
    Ip(IpAddr),
    Name(String),
}

impl Request {
    /// An empty user name means none.
    ///
    /// # Errors
    /// `Invalid` if a name, user name or password is longer than the maximum of 255 bytes.
    pub(super) fn new(
        destination: Destination,
        port: u16,
        username: &str,
        password: &str,
    ) -> Result<Request> {
        let name = match &destination {
            Destination::Name(name) => name,
            Destination::Ip(_) => "",
        };
        for (what, text) in [
            ("a host name", name),
            ("SOCKS_USERNAME", username),
            ("SOCKS_PASSWORD", password),
        ] {
            if u8::try_from(text.len()).is_err() {
                let text = format!("{what} of more than 255 bytes cannot be told to a proxy");
                return Err(Error::with(ErrorKind::Invalid, text));
            }
        }
        let credentials =
            (!username.is_empty()).then(|| (username.to_owned(), password.to_owned()));
        Ok(Request {
            destination,
            port,
            credentials,
        })
    }

    fn greeting(&self) -> Vec<u8> {
        match self.credentials {
            None => vec![VERSION, 1, NONE],
            Some(_) => vec![VERSION, 2, NONE, PASSWORD],
        }
    }

    fn login(&self) -> Option<Vec<u8>> {
        let (username, password) = self.credentials.as_ref()?;
        let mut login = vec![AUTHENTICATION];
        push_short(&mut login, username.as_bytes());
        push_short(&mut login, password.as_bytes());
        Some(login)
    }

    fn connect(&self) -> Vec<u8> {
        let mut connect = vec![VERSION, CONNECT, RESERVED];
        match &self.destination {
            Destination::Ip(IpAddr::V4(ip)) => {
                connect.push(IPV4);
                connect.extend(ip.octets());
            }
            Destination::Ip(IpAddr::V6(ip)) => {
                connect.push(IPV6);
                connect.extend(ip.octets());
            }
            Destination::Name(name) => {
                connect.push(NAME);
                push_short(&mut connect, name.as_bytes());
            }
        }
        connect.extend(self.port.to_be_bytes());
        connect
    }
}

/// Appends a length byte and the bytes; [`Request::new`] has checked the length.
fn push_short(buffer: &mut Vec<u8>, bytes: &[u8]) {
    let len = bytes.len().min(usize::from(u8::MAX));
    buffer.push(len as u8);
    buffer.extend(&bytes[..len]);
}

/// The conversation with a proxy, until it confirms the connection.
#[derive(Debug)]
pub(crate) struct Socks {
    request: Arc<Request>,
    awaits: Reply,
    outgoing: Vec<u8>,
    received: Vec<u8>,
    phase: Phase,
    /// The bytes after the last reply, which are the peer's.
    behind: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
enum Reply {
    Method,
    Login,
    Connect,
}

impl Socks {
    pub(super) fn new(request: Arc<Request>) -> Socks {
        Socks {
            outgoing: request.greeting(),
            request,
            awaits: Reply::Method,
            received: Vec::new(),
            phase: Phase::Opening,
            behind: Vec::new(),
        }
    }

    /// Processes received bytes. Once the connection is established, returns the bytes after the reply, which are the
    /// peer's; until then `None`.
    ///
    /// # Errors
    /// If the proxy refuses, with its reason in words, or does not use SOCKS5.
    fn hear<'a>(&mut self, mut bytes: &'a [u8]) -> Result<Option<&'a [u8]>> {
        loop {
            let missing = self.reply_len().saturating_sub(self.received.len());
            let (now, later) = bytes.split_at(missing.min(bytes.len()));
            self.received.extend_from_slice(now);
            bytes = later;
            if self.received.len() < self.reply_len() {
                if bytes.is_empty() {
                    return Ok(None);
                }
                continue;
            }
            let done = self.handle_reply()?;
            self.received.clear();
            if done {
                return Ok(Some(bytes));
            }
        }
    }

    /// The length of the reply, as far as its beginning shows.
    fn reply_len(&self) -> usize {
        match (self.awaits, self.received.as_slice()) {
            (Reply::Method | Reply::Login, _) => 2,
            // Some proxies omit the bound address when they refuse.
            (Reply::Connect, [version, code, ..]) if *version != VERSION || *code != 0 => 2,
            (Reply::Connect, [_, _, _, IPV4, ..]) => HEAD + 4 + PORT,
            (Reply::Connect, [_, _, _, IPV6, ..]) => HEAD + 16 + PORT,
            (Reply::Connect, [_, _, _, NAME, len, ..]) => HEAD + 1 + usize::from(*len) + PORT,
            (Reply::Connect, [_, _, _, NAME]) => HEAD + 1,
            (Reply::Connect, _) => HEAD,
        }
    }

    /// Handles a reply. Returns whether it was the last one.
    fn handle_reply(&mut self) -> Result<bool> {
        debug_assert!(self.received.len() <= REPLY_MAX);
        let (version, said) = (self.received[0], self.received[1]);
        let (expected, meaning) = match self.awaits {
            Reply::Method | Reply::Connect => (VERSION, "a SOCKS version"),
            Reply::Login => (AUTHENTICATION, "a version of its authentication"),
        };
        if version != expected {
            return Err(garbage(format_args!("{version} for {meaning}")));
        }
        match (self.awaits, said) {
            (Reply::Method, PASSWORD) => match self.request.login() {
                Some(login) => self.say(login, Reply::Login),
                None => return Err(garbage(format_args!("a method that was not offered"))),
            },
            (Reply::Method, NONE) | (Reply::Login, 0) => {
                self.say(self.request.connect(), Reply::Connect);
            }
            (Reply::Method, NO_METHOD) => {
                let text = match self.request.credentials {
                    None => "the proxy wants authentication; set SOCKS_USERNAME and SOCKS_PASSWORD",
                    Some(_) => {
                        "the proxy accepts neither anonymous clients nor a user name and password"
                    }
                };
                return Err(Error::with(ErrorKind::Access, text));
            }
            (Reply::Method, other) => {
                return Err(garbage(format_args!(
                    "method {other}, which was not offered"
                )));
            }
            (Reply::Login, _) => {
                let text = "the proxy does not admit SOCKS_USERNAME with SOCKS_PASSWORD";
                return Err(Error::with(ErrorKind::Access, text));
            }
            (Reply::Connect, 0) => {
                let address = self.received[3];
                if !matches!(address, IPV4 | IPV6 | NAME) {
                    return Err(garbage(format_args!("address type {address}")));
                }
                return Ok(true);
            }
            (Reply::Connect, code) => return Err(refusal(code)),
        }
        Ok(false)
    }

    fn say(&mut self, bytes: Vec<u8>, awaits: Reply) {
        self.outgoing.extend(bytes);
        self.awaits = awaits;
    }
}

impl Layer for Socks {
    fn phase(&self) -> Phase {
        self.phase
    }

    fn handle_input(&mut self, bytes: &[u8]) -> Result<()> {
        if let Some(behind) = self.hear(bytes)? {
            self.behind = behind.to_vec();
            self.phase = Phase::Over;
        }
        Ok(())
    }

    fn handle_end(&mut self, error: Option<io::Error>) -> Result<()> {
        Err(match error {
            None => Error::with(ErrorKind::Os(errno::CONNECTION_RESET), GONE),
            Some(error) => Error::from(error).about(GONE),
        })
    }

    fn has_input(&self) -> bool {
        !self.behind.is_empty()
    }

    fn poll_input(&mut self, buffer: &mut Vec<u8>) -> Result<()> {
        let room = buffer.capacity() - buffer.len();
        let count = self.behind.len().min(room);
        buffer.extend(self.behind.drain(..count));
        Ok(())
    }

    fn is_at_peer(&self) -> bool {
        false
    }

    fn handle_output(&mut self, _: &[IoSlice<'_>]) -> usize {
        0
    }

    fn poll_transmit(&self) -> &[u8] {
        &self.outgoing
    }

    fn transmitted(&mut self, count: usize) {
        self.outgoing.drain(..count.min(self.outgoing.len()));
    }
}

fn garbage(what: std::fmt::Arguments<'_>) -> Error {
    let text = format!("the proxy does not speak SOCKS5: it answered {what}");
    Error::with(ErrorKind::Os(errno::PROTOCOL), text)
}

/// Only code 5 says that no socket listens at the destination. The others are no refusal for RECONNECT_STOP, because a later
/// attempt may succeed.
fn refusal(code: u8) -> Error {
    let (kind, why) = match code {
        2 => (ErrorKind::Access, "its rules do not allow it"),
        3 => (ErrorKind::HostUnreachable, "the network is unreachable"),
        4 => (ErrorKind::HostUnreachable, "the host is unreachable"),
        5 => (ErrorKind::ConnectionRefused, "the host refused"),
        6 => (ErrorKind::TimedOut, "the time to live is over"),
        7 => (ErrorKind::HostUnreachable, "it does not connect at all"),
        8 => (
            ErrorKind::HostUnreachable,
            "it does not know this type of address",
        ),
        _ => (ErrorKind::HostUnreachable, "it failed"),
    };
    let text = format!("the proxy did not make the connection: {why} (code {code})");
    Error::with(kind, text)
}

#[cfg(test)]
mod tests {
    use std::net::Ipv6Addr;

    use super::*;

    fn to_name(name: &str) -> Destination {
        Destination::Name(name.to_owned())
    }

    fn socks(destination: Destination, username: &str, password: &str) -> Socks {
        let request = Request::new(destination, 5555, username, password).unwrap();
        Socks::new(Arc::new(request))
    }

    /// All bytes that the client sends, taken a few at a time.
    fn said(socks: &mut Socks) -> Vec<u8> {
        let mut said = Vec::new();
        while let [first, ..] = socks.poll_transmit() {
            said.push(*first);
            socks.transmitted(1);
        }
        said
    }

    /// Feeds `bytes` in two pieces; returns the bytes after the last reply.
    fn feed(socks: &mut Socks, bytes: &[u8], cut: usize) -> Result<Option<Vec<u8>>> {
        let (first, second) = bytes.split_at(cut);
        let before = socks.hear(first)?.map(<[u8]>::to_vec);
        match before {
            None => Ok(socks.hear(second)?.map(<[u8]>::to_vec)),
            Some(behind) => Ok(Some([&behind, second].concat())),
        }
    }

    #[test]
    fn a_name_is_left_to_the_proxy() {
        let mut socks = socks(to_name("collector.example"), "", "");
        assert_eq!(said(&mut socks), [5, 1, 0]);
        assert_eq!(socks.hear(&[5, 0]).unwrap(), None);
        let expected = [&[5, 1, 0, 3, 17][..], b"collector.example", &[0x15, 0xb3]].concat();
        assert_eq!(said(&mut socks), expected);
        let reply = [5, 0, 0, 1, 127, 0, 0, 1, 0x15, 0xb3];
        assert_eq!(socks.hear(&reply).unwrap(), Some(&[][..]));
        assert!(socks.poll_transmit().is_empty());
    }

    #[test]
    fn literal_addresses_travel_as_such() {
        let mut v4 = socks(Destination::Ip([10, 0, 0, 7].into()), "", "");
        v4.hear(&[5, 0]).unwrap();
        assert_eq!(said(&mut v4)[3..], [5, 1, 0, 1, 10, 0, 0, 7, 0x15, 0xb3]);
        let mut v6 = socks(Destination::Ip(Ipv6Addr::LOCALHOST.into()), "", "");
        v6.hear(&[5, 0]).unwrap();
        let mut expected = vec![5, 1, 0, 4];
        expected.extend(Ipv6Addr::LOCALHOST.octets());
        expected.extend([0x15, 0xb3]);
        assert_eq!(said(&mut v6)[3..], expected);
    }

    #[test]
    fn credentials_are_sent_only_to_a_proxy_that_requests_them() {
        let mut wants = socks(to_name("h"), "mole", "");
        assert_eq!(said(&mut wants), [5, 2, 0, 2]);
        wants.hear(&[5, 2]).unwrap();
        assert_eq!(said(&mut wants), *b"\x01\x04mole\x00");
        wants.hear(&[1, 0]).unwrap();
        assert_eq!(said(&mut wants), *b"\x05\x01\x00\x03\x01h\x15\xb3");
        let mut does_not = socks(to_name("h"), "mole", "secret");
        does_not.hear(&[5, 0]).unwrap();
        assert_eq!(said(&mut does_not)[4..], *b"\x05\x01\x00\x03\x01h\x15\xb3");
    }

    #[test]
    fn replies_may_be_cut_anywhere_and_later_bytes_are_the_peers() {
        let bound: [&[u8]; 4] = [
            &[1, 127, 0, 0, 1],
            &[4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1],
            b"\x03\x05proxy",
            b"\x03\x00",
        ];
        for bound in bound {
            for greeting in [&b""[..], b"\xff\0\0\0\0\0\0\0\x01\x7f\x03"] {
                let reply = [&[5, 2, 1, 0, 5, 0, 0], bound, &[0, 80], greeting].concat();
                for cut in 0..=reply.len() {
                    let mut socks = socks(to_name("host"), "user", "password");
                    let behind = feed(&mut socks, &reply, cut).unwrap();
                    assert_eq!(behind.as_deref(), Some(greeting), "cut at {cut}");
                }
                // Byte by byte.
                let mut socks = socks(to_name("host"), "user", "password");
                let whole = reply.len() - greeting.len();
                for (index, byte) in reply[..whole].iter().enumerate() {
                    let done = socks.hear(&[*byte]).unwrap().is_some();
                    assert_eq!(done, index + 1 == whole);
                }
            }
        }
    }

    #[test]
    fn every_refusal_says_why() {
        let fails = |username: &str, reply: &[u8], kind, word: &str| {
            for cut in 0..=reply.len() {
                let mut socks = socks(to_name("host"), username, "password");
                let error = feed(&mut socks, reply, cut).unwrap_err();
                assert_eq!(error.kind(), kind, "{error}");
                assert!(error.to_string().contains(word), "{error}");
            }
        };
        fails("", &[5, 0xff], ErrorKind::Access, "SOCKS_USERNAME");
        fails("user", &[5, 0xff], ErrorKind::Access, "neither");
        fails("user", &[5, 2, 1, 1], ErrorKind::Access, "does not admit");
        for (code, kind) in [
            (1, ErrorKind::HostUnreachable),
            (2, ErrorKind::Access),
            (3, ErrorKind::HostUnreachable),
            (4, ErrorKind::HostUnreachable),
            (5, ErrorKind::ConnectionRefused),
            (6, ErrorKind::TimedOut),
            (7, ErrorKind::HostUnreachable),
            (8, ErrorKind::HostUnreachable),
            (99, ErrorKind::HostUnreachable),
        ] {
            let reply = [5, 0, 5, code, 0, 1, 0, 0, 0, 0, 0, 0];
            fails("", &reply, kind, &format!("code {code}"));
            fails("", &[5, 0, 5, code], kind, &format!("code {code}"));
        }
        let garbage = ErrorKind::Os(errno::PROTOCOL);
        fails("", b"HTTP/1.1 400", garbage, "72 for a SOCKS version");
        fails("", &[4, 0x5a], garbage, "4 for a SOCKS version");
        fails("", &[5, 1], garbage, "method 1");
        fails("", &[5, 2], garbage, "not offered");
        fails("user", &[5, 2, 5, 0], garbage, "5 for a version of its");
        fails("", &[5, 0, 4, 0, 0, 1], garbage, "4 for a SOCKS version");
        fails("", &[5, 0, 5, 0, 0, 9], garbage, "address type 9");
    }

    #[test]
    fn no_bytes_make_it_panic_or_keep_much() {
        let mut random = 0x9e37_79b9_7f4a_7c15_u64;
        for _ in 0..20_000 {
            let mut socks = socks(to_name("host"), "user", "password");
            let mut bytes = vec![5, 2, 1, 0, 5, 0, 0];
            for _ in 0..40 {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                bytes.push(random as u8);
            }
            let place = (random >> 32) as usize % bytes.len();
            bytes[place] = (random >> 8) as u8;
            let _ = feed(&mut socks, &bytes, place);
            assert!(socks.received.len() <= REPLY_MAX);
            assert!(socks.outgoing.len() <= 3 * REPLY_MAX);
        }
    }

    #[test]
    fn fields_longer_than_a_length_byte_allows_are_refused() {
        let long = "x".repeat(256);
        for (name, username, password) in [(&long[..], "", ""), ("h", &long, ""), ("h", "u", &long)]
        {
            let error = Request::new(to_name(name), 1, username, password).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Invalid);
            assert!(error.to_string().contains("255"), "{error}");
        }
        let fits = "x".repeat(255);
        let mut socks = socks(to_name(&fits), &fits, &fits);
        assert_eq!(said(&mut socks), [5, 2, 0, 2]);
        socks.hear(&[5, 2]).unwrap();
        assert_eq!(said(&mut socks).len(), 1 + 256 + 256);
    }
}
