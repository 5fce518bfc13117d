//! [`Endpoint`]: where to bind or connect, as `scheme://address`.

use std::fmt;
use std::str::FromStr;

/// An endpoint in its two parts. The transport interprets the address.
///
/// ```
/// use zeroxide_proto::endpoint::Endpoint;
///
/// let endpoint = Endpoint::parse("tcp://127.0.0.1:5555")?;
/// assert_eq!(endpoint.scheme, "tcp");
/// assert_eq!(endpoint.address, "127.0.0.1:5555");
/// assert_eq!(endpoint.to_string(), "tcp://127.0.0.1:5555");
/// # Ok::<(), zeroxide_proto::endpoint::EndpointError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Endpoint {
    /// The transport: `tcp`, `ipc`, `inproc`...
    pub scheme: String,
    /// The address, in the transport's own format; never empty.
    pub address: String,
}

/// The reason why a text is not an endpoint.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EndpointError {
    /// There is no `://`.
    #[error("{text:?} is not an endpoint: expected scheme://address, as in tcp://127.0.0.1:5555")]
    NoSeparator {
        /// The whole text.
        text: String,
    },
    /// The text before `://` is empty.
    #[error(
        "endpoint {text:?} has no scheme before \"://\": expected tcp, ipc, inproc or another transport"
    )]
    NoScheme {
        /// The whole text.
        text: String,
    },
    /// The scheme has a character that is not allowed, often a blank or a stray quote.
    #[error(
        "endpoint {text:?} has {found:?} in its scheme: expected letters, digits, '+', '-' and '.' only, a letter first"
    )]
    BadScheme {
        /// The whole text.
        text: String,
        /// The first invalid character.
        found: char,
    },
    /// The text after `://` is empty.
    #[error("endpoint {text:?} has no address after \"://\"")]
    NoAddress {
        /// The whole text.
        text: String,
    },
    /// The address has a NUL character, which the system's calls do not accept.
    #[error("endpoint {text:?} has a NUL character in its address")]
    NulInAddress {
        /// The whole text.
        text: String,
    },
}

impl Endpoint {
    /// Parses `scheme://address`. Nothing is trimmed, guessed or ignored.
    pub fn parse(text: &str) -> Result<Endpoint, EndpointError> {
        let owned = || text.to_owned();
        let Some((scheme, address)) = text.split_once("://") else {
            return Err(EndpointError::NoSeparator { text: owned() });
        };
        if scheme.is_empty() {
            return Err(EndpointError::NoScheme { text: owned() });
        }
        if let Some(found) = misplaced(scheme) {
            return Err(EndpointError::BadScheme {
                text: owned(),
                found,
            });
        }
        if address.is_empty() {
            return Err(EndpointError::NoAddress { text: owned() });
        }
        if address.contains('\0') {
            return Err(EndpointError::NulInAddress { text: owned() });
        }
        Ok(Endpoint {
            scheme: scheme.to_owned(),
            address: address.to_owned(),
        })
    }
}

impl FromStr for Endpoint {
    type Err = EndpointError;

    fn from_str(text: &str) -> Result<Endpoint, EndpointError> {
        Endpoint::parse(text)
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.scheme, self.address)
    }
}

/// The first character of a scheme that RFC 3986 section 3.1 does not allow there.
fn misplaced(scheme: &str) -> Option<char> {
    let allowed = |at: usize, c: char| {
        c.is_ascii_alphabetic() || at > 0 && (c.is_ascii_digit() || matches!(c, '+' | '-' | '.'))
    };
    let mut characters = scheme.char_indices();
    characters.find_map(|(at, c)| (!allowed(at, c)).then_some(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_known_form_survives_a_round_trip() {
        for text in [
            "tcp://127.0.0.1:5555",
            "tcp://*:*",
            "tcp://[::1%lo]:80",
            "tcp://eth0;10.0.0.1:5555",
            "ipc:///tmp/a b.sock",
            "ipc://@abstract",
            "ipc://*",
            "inproc://a://b",
            "inproc:// leading blank",
            "tls+tcp://host:1",
            "vsock://-1:9",
            "udp://eth0;239.0.0.1:7",
            "ws://host:80/path?query#fragment",
            "inproc://ünï/コード",
        ] {
            let endpoint = Endpoint::parse(text).unwrap();
            assert_eq!(endpoint.to_string(), text);
            assert_eq!(text.parse(), Ok(endpoint));
        }
        let endpoint = Endpoint::parse("inproc://a://b").unwrap();
        assert_eq!((&*endpoint.scheme, &*endpoint.address), ("inproc", "a://b"));
    }

    #[test]
    fn errors_contain_the_text() {
        for (text, says) in [
            ("", "\"\" is not an endpoint"),
            ("localhost:5555", "\"localhost:5555\" is not an endpoint"),
            (
                "tcp:/127.0.0.1:1",
                "\"tcp:/127.0.0.1:1\" is not an endpoint",
            ),
            ("://x", "\"://x\" has no scheme"),
            (" tcp://x:1", "\" tcp://x:1\" has ' ' in its scheme"),
            ("1tcp://x:1", "has '1' in its scheme"),
            ("t_p://x:1", "has '_' in its scheme"),
            ("tĉp://x:1", "has 'ĉ' in its scheme"),
            ("tcp://", "\"tcp://\" has no address"),
            ("ipc:///tmp/\0x", "\"ipc:///tmp/\\0x\" has a NUL"),
        ] {
            let error = Endpoint::parse(text).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
    }
}
