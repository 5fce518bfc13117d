//! Messages as datagrams: each part is its length in four bytes, and its body.

use zeroxide::{Frame, Message};

/// The longest payload of a datagram.
pub(crate) const LONGEST: usize = 65_507;

/// The datagram of a message; `None` if it would be too long.
pub(crate) fn encode(message: &Message) -> Option<Vec<u8>> {
    let mut datagram = Vec::new();
    for part in message {
        let body = part.as_slice();
        if datagram.len() + 4 + body.len() > LONGEST {
            return None;
        }
        let length = u32::try_from(body.len()).ok()?;
        datagram.extend(length.to_be_bytes());
        datagram.extend(body);
    }
    Some(datagram)
}

/// The message of a datagram; `None` if the datagram is something else.
pub(crate) fn decode(mut datagram: &[u8]) -> Option<Message> {
    let mut parts = Vec::new();
    while let Some((length, rest)) = datagram.split_first_chunk() {
        let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
        let (body, rest) = rest.split_at_checked(length)?;
        parts.push(Frame::copy_from(body));
        datagram = rest;
    }
    (datagram.is_empty() && !parts.is_empty()).then(|| Message::from_vec(parts))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_survives() {
        let message = Message::from_vec(vec![Frame::from("head"), Frame::new(), Frame::from("x")]);
        let datagram = encode(&message).unwrap();
        assert_eq!(decode(&datagram).unwrap(), message);
    }

    #[test]
    fn other_datagrams_are_no_messages() {
        for datagram in [&b""[..], b"abc", b"\0\0\0\x09short", b"\xff\xff\xff\xff"] {
            assert!(decode(datagram).is_none(), "{datagram:?}");
        }
    }

    #[test]
    fn a_message_of_the_longest_datagram_is_the_longest() {
        let fits = Message::from(vec![0; LONGEST - 4]);
        assert!(encode(&fits).is_some());
        assert!(encode(&Message::from(vec![0; LONGEST - 3])).is_none());
    }
}
