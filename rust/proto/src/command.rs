//! Commands: their names, their data, and the properties that two peers exchange in the handshake.
//!
//! A mechanism builds its commands with these functions, and parses those of the peer:
//!
//! ```
//! use zeroxide_proto::command;
//!
//! let mut body = command::READY.to_vec();
//! command::put_property(&mut body, "Socket-Type", b"DEALER");
//! let (name, data) = command::split(&body)?;
//! assert_eq!(name, command::READY);
//! let properties = command::parse_properties(data)?;
//! assert_eq!(command::find_property(&properties, "socket-type").unwrap(), "DEALER");
//! # Ok::<(), zeroxide_proto::ProtocolError>(())
//! ```

use crate::error::{CloseReason, ProtocolError};
use crate::message::GROUP_MAX;
use bytes::Bytes;

/// The maximum length of a handshake command, and of any command of a peer that cannot subscribe.
pub(crate) const MAX_COMMAND: u64 = 64 * 1024;
/// The maximum number of properties of a peer, because each takes a heap block.
const MAX_PROPERTIES: usize = 256;
/// The maximum context of a PING that is sent back. A longer one is cut, as libzmq does.
const MAX_CONTEXT: usize = 16;

/// READY with its length byte, as it starts a frame.
pub const READY: &[u8] = b"\x05READY";
/// ERROR with its length byte.
pub const ERROR: &[u8] = b"\x05ERROR";
/// PING with its length byte.
pub(crate) const PING: &[u8] = b"\x04PING";
/// PONG with its length byte.
pub(crate) const PONG: &[u8] = b"\x04PONG";
/// SUBSCRIBE with its length byte.
pub(crate) const SUBSCRIBE: &[u8] = b"\x09SUBSCRIBE";
/// CANCEL with its length byte.
pub(crate) const CANCEL: &[u8] = b"\x06CANCEL";
/// JOIN with its length byte.
pub(crate) const JOIN: &[u8] = b"\x04JOIN";
/// LEAVE with its length byte.
pub(crate) const LEAVE: &[u8] = b"\x05LEAVE";

/// Splits a command into its name, including its length byte, and its data.
///
/// # Errors
/// If it has no name, or one that does not fit.
pub fn split(body: &[u8]) -> Result<(&[u8], &[u8]), ProtocolError> {
    match body.first() {
        Some(&len) if len > 0 && body.len() > usize::from(len) => {
            Ok(body.split_at(1 + usize::from(len)))
        }
        _ => Err(ProtocolError::CommandName),
    }
}

/// Formats a name from [`split`] for an error text.
pub(crate) fn printable(name: &[u8]) -> String {
    name[1..].escape_ascii().to_string()
}

/// The error for a command, named as by [`split`], that is not allowed here.
pub fn unexpected(expected: &'static str, name: &[u8]) -> ProtocolError {
    ProtocolError::UnexpectedCommand {
        expected,
        got: printable(name),
    }
}

/// The data of a PING: its time to live in tenths of a second, and a context to send back.
pub(crate) fn parse_ping(data: &[u8]) -> Result<(u16, &[u8]), ProtocolError> {
    let malformed = |problem| ProtocolError::Malformed {
        command: "PING",
        problem,
    };
    let Some((ttl, context)) = data.split_first_chunk() else {
        return Err(malformed("shorter than its time to live"));
    };
    let kept = context.len().min(MAX_CONTEXT);
    Ok((u16::from_be_bytes(*ttl), &context[..kept]))
}

/// The reason in the data of an ERROR.
pub(crate) fn parse_error(data: &[u8]) -> Result<&[u8], ProtocolError> {
    match data.split_first() {
        Some((&len, reason)) if reason.len() >= usize::from(len) => Ok(&reason[..usize::from(len)]),
        _ => Err(ProtocolError::Malformed {
            command: "ERROR",
            problem: "a reason that does not fit the frame",
        }),
    }
}

/// The meaning of the data of the peer's ERROR: a status of its authenticator, or a text.
///
/// # Errors
/// If the data is malformed.
pub fn refusal(data: &[u8]) -> Result<CloseReason, ProtocolError> {
    Ok(match parse_error(data)? {
        b"300" => CloseReason::AuthFailed(300),
        b"400" => CloseReason::AuthFailed(400),
        b"500" => CloseReason::AuthFailed(500),
        reason => CloseReason::Refused(reason.escape_ascii().to_string()),
    })
}

/// Checks the data of a JOIN or LEAVE, a group.
pub(crate) fn check_group(command: &'static str, group: &[u8]) -> Result<(), ProtocolError> {
    let malformed = |problem| Err(ProtocolError::Malformed { command, problem });
    if group.len() > GROUP_MAX {
        return malformed("a group longer than 255 bytes");
    }
    if group.contains(&0) {
        return malformed("a group with a zero byte");
    }
    Ok(())
}

/// The data of an ERROR command; a long reason is cut.
pub fn error_data(reason: &str) -> Vec<u8> {
    let reason = &reason.as_bytes()[..reason.len().min(255)];
    let mut data = vec![reason.len() as u8];
    data.extend_from_slice(reason);
    data
}

/// Adds one property to a READY (or INITIATE) under construction.
///
/// A property whose name or value does not fit its length field is left out.
pub fn put_property(body: &mut Vec<u8>, name: &str, value: &[u8]) {
    if let (Ok(name_len), Ok(value_len)) = (u8::try_from(name.len()), u32::try_from(value.len())) {
        body.push(name_len);
        body.extend_from_slice(name.as_bytes());
        body.extend_from_slice(&value_len.to_be_bytes());
        body.extend_from_slice(value);
    }
}

/// The properties in the data of a READY (or INITIATE), in the order received.
///
/// A name has 1 to 255 bytes of any value, because libzmq sends and accepts all of them although RFC 23 does not. The
/// bytes of one that is not UTF-8 become the characters with the same numbers.
///
/// # Errors
/// If they are malformed, or a peer could use them to exhaust memory: a name that occurs twice, or more than 256.
pub fn parse_properties(data: &[u8]) -> Result<Vec<(String, Bytes)>, ProtocolError> {
    parse(data, Again::Refused)
}

/// The same, but the first value of a name that occurs twice counts.
///
/// # Errors
/// If they are malformed, or more than 256.
pub(crate) fn parse_first_properties(data: &[u8]) -> Result<Vec<(String, Bytes)>, ProtocolError> {
    parse(data, Again::Ignored)
}

/// What happens to the second property of a name.
enum Again {
    Refused,
    Ignored,
}

fn parse(mut data: &[u8], again: Again) -> Result<Vec<(String, Bytes)>, ProtocolError> {
    let mut properties: Vec<(String, Bytes)> = Vec::new();
    while let Some((&name_len, rest)) = data.split_first() {
        let cut = ProtocolError::Metadata("a property that does not fit the command");
        let Some((name, rest)) = rest.split_at_checked(usize::from(name_len)) else {
            return Err(cut);
        };
        let Some((value_len, rest)) = rest.split_first_chunk() else {
            return Err(cut);
        };
        let value_len = u32::from_be_bytes(*value_len);
        let Some((value, rest)) = usize::try_from(value_len)
            .ok()
            .and_then(|len| rest.split_at_checked(len))
        else {
            return Err(cut);
        };
        data = rest;
        if name.is_empty() {
            return Err(ProtocolError::Metadata("a property without a name"));
        }
        let name = match std::str::from_utf8(name) {
            Ok(name) => name.to_owned(),
            Err(_) => name.iter().copied().map(char::from).collect(),
        };
        if find_property(&properties, &name).is_some() {
            match again {
                Again::Refused => {
                    return Err(ProtocolError::Metadata("a property that comes twice"));
                }
                Again::Ignored => continue,
            }
        }
        if properties.len() == MAX_PROPERTIES {
            return Err(ProtocolError::Metadata("more than 256 properties"));
        }
        properties.push((name, Bytes::copy_from_slice(value)));
    }
    Ok(properties)
}

/// The value of a property; names are compared without regard to case.
pub fn find_property<'a>(properties: &'a [(String, Bytes)], name: &str) -> Option<&'a Bytes> {
    properties
        .iter()
        .find(|(known, _)| known.eq_ignore_ascii_case(name))
        .map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_split_off_with_their_length() {
        assert_eq!(split(b"\x05READYrest"), Ok((READY, &b"rest"[..])));
        assert_eq!(split(b"\x04PING"), Ok((PING, &b""[..])));
        for body in [&b""[..], b"\0", b"\0READY", b"\x05READ", b"\xff"] {
            assert_eq!(split(body), Err(ProtocolError::CommandName));
        }
        assert_eq!(printable(b"\x03A\xffB"), "A\\xffB");
    }

    #[test]
    fn length_bytes_fit_the_names() {
        for name in [READY, ERROR, PING, PONG, SUBSCRIBE, CANCEL, JOIN, LEAVE] {
            assert_eq!(split(name), Ok((name, &b""[..])));
        }
    }

    #[test]
    fn a_ping_has_a_ttl_and_up_to_16_bytes_of_context() {
        assert_eq!(parse_ping(b"\xff\xff"), Ok((65535, &b""[..])));
        assert_eq!(parse_ping(b"\0\x0aabc"), Ok((10, &b"abc"[..])));
        assert_eq!(
            parse_ping(&[0; 18]).map(|(_, context)| context.len()),
            Ok(16)
        );
        // A longer context is cut.
        let long: Vec<u8> = (0..200).collect();
        assert_eq!(parse_ping(&long), Ok((1, &long[2..18])));
        for data in [&b""[..], b"\0"] {
            assert!(parse_ping(data).is_err());
        }
    }

    #[test]
    fn a_group_is_bounded_and_has_no_zero_byte() {
        for group in [&b""[..], b"g", &[255; 255]] {
            assert!(check_group("JOIN", group).is_ok());
        }
        for group in [&[1; 256][..], b"\0", b"a\0"] {
            assert!(check_group("JOIN", group).is_err());
        }
    }

    #[test]
    fn an_error_has_a_reason() {
        assert_eq!(parse_error(b"\x03400"), Ok(&b"400"[..]));
        assert_eq!(parse_error(b"\0"), Ok(&b""[..]));
        for data in [&b""[..], b"\x04400"] {
            assert!(parse_error(data).is_err());
        }
        assert_eq!(error_data("no"), b"\x02no");
        let long = error_data(&"x".repeat(300));
        assert_eq!(parse_error(&long).map(<[u8]>::len), Ok(255));
    }

    #[test]
    fn properties_have_the_form_of_the_rfc() {
        let mut body = Vec::new();
        put_property(&mut body, "Socket-Type", b"REQ");
        put_property(&mut body, "Identity", b"");
        assert_eq!(body, b"\x0bSocket-Type\0\0\0\x03REQ\x08Identity\0\0\0\0");
        let properties = parse_properties(&body).unwrap();
        assert_eq!(properties.len(), 2);
        assert_eq!(find_property(&properties, "socket-type").unwrap(), "REQ");
        assert_eq!(find_property(&properties, "Identity").unwrap(), "");
        assert!(find_property(&properties, "Resource").is_none());
    }

    #[test]
    fn a_property_that_does_not_fit_is_left_out() {
        let mut body = Vec::new();
        put_property(&mut body, &"x".repeat(256), b"");
        assert!(body.is_empty());
    }

    #[test]
    fn broken_properties_are_refused() {
        let cases: &[&[u8]] = &[
            b"\x05",
            b"\x02ab",
            b"\x02ab\0\0\0",
            b"\x02ab\0\0\0\x01",
            b"\x02ab\xff\xff\xff\xff1",
            b"\0\0\0\0\0",
            b"\x01a\0\0\0\0\x01A\0\0\0\0",
        ];
        for data in cases {
            assert!(parse_properties(data).is_err(), "{}", data.escape_ascii());
        }
        assert_eq!(parse_properties(b""), Ok(Vec::new()));
    }

    #[test]
    fn a_name_has_any_bytes() {
        let long = [b"\xff", &[0xe9; 255][..], b"\0\0\0\0"].concat();
        let cases: &[(&[u8], &str)] = &[
            (b"\x01 \0\0\0\0", " "),
            (b"\x05X-a\tb\0\0\0\0", "X-a\tb"),
            (b"\x04X-\xc3\xa9\0\0\0\0", "X-\u{e9}"),
            (b"\x03X-\xff\0\0\0\0", "X-\u{ff}"),
            (b"\x01\0\0\0\0\0", "\0"),
            (&long, &"\u{e9}".repeat(255)),
        ];
        for (data, name) in cases {
            let properties = parse_properties(data).unwrap();
            assert_eq!(properties, [((*name).to_owned(), Bytes::new())]);
        }
    }

    #[test]
    fn the_first_of_two_properties_counts_only_for_an_authenticator() {
        let mut body = Vec::new();
        put_property(&mut body, "A", b"1");
        put_property(&mut body, "a", b"2");
        put_property(&mut body, "B", b"3");
        assert!(parse_properties(&body).is_err());
        let first = parse_first_properties(&body).unwrap();
        assert_eq!(first, [("A".into(), "1".into()), ("B".into(), "3".into())]);
        assert!(parse_first_properties(b"\0\0\0\0\0").is_err());
    }

    #[test]
    fn the_number_of_properties_is_bounded() {
        let mut body = Vec::new();
        for index in 0..256 {
            put_property(&mut body, &format!("X-{index}"), b"");
        }
        assert_eq!(parse_properties(&body).unwrap().len(), 256);
        put_property(&mut body, "X-more", b"");
        assert!(parse_properties(&body).is_err());
    }
}
