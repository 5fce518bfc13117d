//! The datagrams of RADIO and DISH: the length of the group in one byte, the group, and the body.

/// The size in bytes of the largest datagram. libzmq cuts off what exceeds it.
pub const LARGEST: usize = 8192;

/// The bytes of a datagram in addition to the group and the body.
pub const HEAD: usize = 1;

/// The group and the body of a received datagram; `None` if it ends before its group does.
pub fn split(datagram: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = datagram.split_first()?;
    rest.split_at_checked(usize::from(*length))
}

/// The bytes before a body: the length of the group and the group. `None` if the group has more than 255 bytes.
pub fn head(group: &[u8]) -> Option<Vec<u8>> {
    let length = u8::try_from(group.len()).ok()?;
    let mut head = Vec::with_capacity(HEAD + group.len());
    head.push(length);
    head.extend_from_slice(group);
    Some(head)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_datagram_is_split_into_its_parts() {
        for group in [&b""[..], b"g", &[b'x'; 255]] {
            for body in [&b""[..], b"body", &[0; 1000]] {
                let datagram = [&head(group).unwrap(), body].concat();
                assert_eq!(split(&datagram), Some((group, body)));
            }
        }
        assert_eq!(head(&[b'x'; 256]), None);
    }

    #[test]
    fn a_truncated_group_is_refused() {
        for datagram in [&b""[..], b"\x01", b"\x05four", b"\xff", &[255; 255]] {
            assert_eq!(split(datagram), None, "{datagram:?}");
        }
        assert_eq!(split(b"\0"), Some((&b""[..], &b""[..])));
        assert_eq!(split(&[255; 256]), Some((&[255; 255][..], &b""[..])));
    }
}
