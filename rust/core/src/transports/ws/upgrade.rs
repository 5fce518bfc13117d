//! The upgrade from HTTP to WebSocket (RFC 6455, section 4): what each side says, and whether the other's answer is right.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use httparse::{EMPTY_HEADER, Header, Request, Response, Status};
use sha1::{Digest, Sha1};

use super::dialect::Dialect;
use crate::error::{Error, ErrorKind, Result};
use crate::sys::errno;

/// The longest request or answer.
pub(super) const HEAD_MAX: usize = 8 * 1024;
const HEADERS_MAX: usize = 64;
/// nng asks like this if its address has no path, which HTTP does not allow.
const NO_PATH: &[u8] = b"GET  ";
const PATH: &[u8] = b"GET / ";
/// From RFC 6455.
const GUID: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

const PROTOCOL: ErrorKind = ErrorKind::Os(errno::PROTOCOL);

/// An answer of the server: what it sends, and what the connection carries or why it refuses.
pub(super) struct Answer {
    pub(super) text: String,
    pub(super) outcome: Result<Dialect>,
}

/// # Errors
/// `Invalid` if the path cannot be in a request.
pub(super) fn check_path(path: &str) -> Result<()> {
    let is_legal = |byte: u8| byte.is_ascii_graphic() && byte != b'#';
    match path.bytes().all(is_legal) && path.len() <= 2048 {
        true => Ok(()),
        false => Err(Error::with(
            ErrorKind::Invalid,
            "a path has at most 2048 visible ASCII characters without '#'; write others as %XX",
        )),
    }
}

/// A client's key: 16 random bytes.
pub(super) fn key(random: [u8; 16]) -> String {
    STANDARD.encode(random)
}

pub(super) fn request(host: &str, path: &str, key: &str, dialect: Dialect) -> String {
    let path = if path.is_empty() { "/" } else { path };
    let protocol = dialect.protocol(true);
    format!(
        "GET {path} HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: {key}\r\nSec-WebSocket-Protocol: {protocol}\r\nSec-WebSocket-Version: 13\r\n\r\n"
    )
}

/// Answers a request for this path, once it is complete. Returns the answer and the length of the request.
pub(super) fn answer(bytes: &[u8], path: &str, own: Dialect) -> Option<(Answer, usize)> {
    if let Some(rest) = bytes.strip_prefix(NO_PATH) {
        let whole = [PATH, rest].concat();
        let added = PATH.len() - NO_PATH.len();
        return answer(&whole, path, own).map(|(answer, len)| (answer, len.saturating_sub(added)));
    }
    let mut headers = [EMPTY_HEADER; HEADERS_MAX];
    let mut request = Request::new(&mut headers);
    let len = match request.parse(bytes) {
        Ok(Status::Complete(len)) => len,
        Ok(Status::Partial) if bytes.len() < HEAD_MAX => return None,
        Ok(Status::Partial) => {
            return Some(refuse(
                "431 Request Header Fields Too Large",
                "sends a request of more than 8 KiB",
                own,
            ));
        }
        Err(httparse::Error::TooManyHeaders) => {
            return Some(refuse(
                "431 Request Header Fields Too Large",
                &format!("sends a request with more than {HEADERS_MAX} header fields"),
                own,
            ));
        }
        Err(_) => {
            return Some(refuse(
                "400 Bad Request",
                "does not speak WebSocket: it sends no HTTP request",
                own,
            ));
        }
    };
    let answer = match accept(&request, path, own) {
        Ok((text, dialect)) => Answer {
            text,
            outcome: Ok(dialect),
        },
        Err((status, why)) => refuse(status, &why, own).0,
    };
    Some((answer, len))
}

fn accept(
    request: &Request<'_, '_>,
    path: &str,
    own: Dialect,
) -> std::result::Result<(String, Dialect), (&'static str, String)> {
    let headers = &*request.headers;
    let asked = request.path.unwrap_or_default();
    let path = if path.is_empty() { "/" } else { path };
    if request.method != Some("GET")
        || !has_word(headers, "Upgrade", "websocket")
        || !has_word(headers, "Connection", "upgrade")
    {
        return Err(("426 Upgrade Required", "asks for no WebSocket".to_owned()));
    }
    if asked != path {
        return Err((
            "404 Not Found",
            format!("asks for the path {asked:?}, expected {path:?}"),
        ));
    }
    if value(headers, "Sec-WebSocket-Version").map(str::trim) != Some("13") {
        return Err((
            "426 Upgrade Required",
            "speaks another version of WebSocket".to_owned(),
        ));
    }
    let key = value(headers, "Sec-WebSocket-Key")
        .map(str::trim)
        .unwrap_or_default();
    if STANDARD.decode(key).map_or(0, |key| key.len()) != 16 {
        return Err((
            "400 Bad Request",
            "sends no Sec-WebSocket-Key of 16 bytes".to_owned(),
        ));
    }
    let mut accepted = own.accepted();
    let offers =
        |dialect: &Dialect| has_word(headers, "Sec-WebSocket-Protocol", &dialect.protocol(false));
    let Some(dialect) = accepted.find(offers) else {
        let offered: Vec<&str> = values(headers, "Sec-WebSocket-Protocol").collect();
        let offered = offered.join(",");
        let mut why = format!(
            "offers the protocols {offered:?}, expected {}",
            own.protocol(false)
        );
        let mut names = offered.split(',');
        if let Some(hint) = names.find_map(|name| own.hint(name.trim())) {
            why = format!("{why}; {hint}");
        }
        return Err(("400 Bad Request", why));
    };
    let (accept, protocol) = (accept_key(key), dialect.protocol(false));
    let text = format!(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {accept}\r\nSec-WebSocket-Protocol: {protocol}\r\n\r\n"
    );
    Ok((text, dialect))
}

/// A refusal. It contains the protocol of this server, so that the client can name the mistake, too.
fn refuse(status: &str, why: &str, own: Dialect) -> (Answer, usize) {
    let protocol = own.protocol(false);
    let answer = Answer {
        text: format!(
            "HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: 0\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: {protocol}\r\n\r\n"
        ),
        outcome: Err(Error::with(PROTOCOL, format!("the client {why}"))),
    };
    (answer, 0)
}

/// Checks a server's answer to a request with this key. Returns its length, or `None` if it is incomplete.
///
/// # Errors
/// If the server refuses, or its answer is wrong.
pub(super) fn check_answer(bytes: &[u8], key: &str, dialect: Dialect) -> Result<Option<usize>> {
    let wrong = |why: String| Error::with(PROTOCOL, format!("the server {why}"));
    let mut headers = [EMPTY_HEADER; HEADERS_MAX];
    let mut response = Response::new(&mut headers);
    let len = match response.parse(bytes) {
        Ok(Status::Complete(len)) => len,
        Ok(Status::Partial) if bytes.len() < HEAD_MAX => return Ok(None),
        Ok(Status::Partial) => return Err(wrong("sends an answer of more than 8 KiB".to_owned())),
        Err(httparse::Error::TooManyHeaders) => {
            let text = format!("sends an answer with more than {HEADERS_MAX} header fields");
            return Err(wrong(text));
        }
        Err(_) => {
            return Err(wrong(
                "does not speak WebSocket: it sends no HTTP answer".to_owned(),
            ));
        }
    };
    let headers = &*response.headers;
    match response.code {
        Some(101) => {}
        code => {
            let reason = response.reason.unwrap_or_default();
            let mut text = format!(
                "refuses with HTTP status {} {reason}",
                code.unwrap_or_default()
            );
            let ours = dialect.protocol(true);
            let theirs = value(headers, "Sec-WebSocket-Protocol").map(str::trim);
            if let Some(theirs) = theirs.filter(|theirs| *theirs != ours)
                && let Some(hint) = dialect.hint(theirs)
            {
                text = format!("{text}: it speaks {theirs}, this socket {ours}; {hint}");
            }
            return Err(wrong(text));
        }
    }
    if !has_word(headers, "Upgrade", "websocket") || !has_word(headers, "Connection", "upgrade") {
        return Err(wrong(
            "switches to another protocol than WebSocket".to_owned(),
        ));
    }
    let accepts = values(headers, "Sec-WebSocket-Accept").map(str::trim);
    if !accepts.eq([accept_key(key)]) {
        return Err(wrong("sends a wrong Sec-WebSocket-Accept".to_owned()));
    }
    if value(headers, "Sec-WebSocket-Extensions").is_some_and(|names| !names.trim().is_empty()) {
        let text = "uses an extension of WebSocket that this client has not offered";
        return Err(wrong(text.to_owned()));
    }
    let (chosen, protocol) = (
        value(headers, "Sec-WebSocket-Protocol"),
        dialect.protocol(true),
    );
    if chosen.map(str::trim) != Some(&*protocol) {
        let chosen = chosen.unwrap_or("none");
        return Err(wrong(format!(
            "chooses the protocol {chosen:?}, expected {protocol}"
        )));
    }
    Ok(Some(len))
}

fn accept_key(key: &str) -> String {
    let mut hash = Sha1::new();
    hash.update(key.as_bytes());
    hash.update(GUID);
    STANDARD.encode(hash.finalize())
}

fn values<'a>(headers: &'a [Header<'a>], name: &'a str) -> impl Iterator<Item = &'a str> {
    let named = headers
        .iter()
        .filter(move |header| header.name.eq_ignore_ascii_case(name));
    named.filter_map(|header| std::str::from_utf8(header.value).ok())
}

fn value<'a>(headers: &'a [Header<'a>], name: &'a str) -> Option<&'a str> {
    values(headers, name).next()
}

/// Whether a header's list has a word, in capitals or not.
fn has_word(headers: &[Header<'_>], name: &str, word: &str) -> bool {
    let mut words = values(headers, name).flat_map(|value| value.split(','));
    words.any(|found| found.trim().eq_ignore_ascii_case(word))
}
