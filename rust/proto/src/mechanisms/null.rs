//! NULL: no security. Both sides send READY with their properties at once, in any order.

use super::{Local, Mechanism, MechanismConfig, MechanismSpec, Peer};
use crate::command;
use crate::error::{CloseReason, ProtocolError};
use bytes::Bytes;

/// The NULL mechanism of ZMTP 3.
pub static NULL: MechanismSpec = MechanismSpec {
    name: "NULL",
    start,
};

fn start(_config: &MechanismConfig, local: Local<'_>) -> Box<dyn Mechanism> {
    Box::new(Null {
        ready: Some([command::READY, local.properties].concat()),
        peer: Properties::Awaited,
    })
}

#[derive(Debug)]
struct Null {
    /// Our READY until it is sent.
    ready: Option<Vec<u8>>,
    peer: Properties,
}

#[derive(Debug)]
enum Properties {
    Awaited,
    Received(Vec<(String, Bytes)>),
    Taken,
}

impl Mechanism for Null {
    fn handle_command(&mut self, name: &[u8], data: &[u8]) -> Result<(), CloseReason> {
        if !matches!(self.peer, Properties::Awaited) {
            return Err(ProtocolError::UnexpectedCommand {
                expected: "messages",
                got: command::printable(name),
            }
            .into());
        }
        match name {
            command::READY => {
                self.peer = Properties::Received(command::parse_properties(data)?);
                Ok(())
            }
            command::ERROR => Err(command::refusal(data)?),
            _ => Err(ProtocolError::UnexpectedCommand {
                expected: "READY",
                got: command::printable(name),
            }
            .into()),
        }
    }

    fn poll_command(&mut self) -> Option<Vec<u8>> {
        self.ready.take()
    }

    fn poll_peer(&mut self) -> Option<Peer> {
        if self.ready.is_some() || !matches!(self.peer, Properties::Received(_)) {
            return None;
        }
        match std::mem::replace(&mut self.peer, Properties::Taken) {
            Properties::Received(properties) => Some(Peer {
                properties,
                user_id: None,
                cipher: None,
            }),
            Properties::Awaited | Properties::Taken => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::socket_type::SocketType;

    const PROPERTIES: &[u8] = b"\x0bSocket-Type\0\0\0\x04PUSH";

    fn null() -> Box<dyn Mechanism> {
        let local = Local {
            socket_type: SocketType::Push,
            as_server: false,
            properties: PROPERTIES,
        };
        start(&MechanismConfig::default(), local)
    }

    #[test]
    fn ready_goes_out_once_and_without_waiting() {
        let mut null = null();
        let ready = null.poll_command().unwrap();
        assert_eq!(ready, b"\x05READY\x0bSocket-Type\0\0\0\x04PUSH");
        assert!(null.poll_command().is_none());
        assert!(null.poll_peer().is_none());
    }

    #[test]
    fn the_order_of_the_two_readys_does_not_matter() {
        for send_first in [true, false] {
            let mut null = null();
            if send_first {
                null.poll_command().unwrap();
            }
            null.handle_command(command::READY, b"\x0bSocket-Type\0\0\0\x04PULL")
                .unwrap();
            if !send_first {
                assert!(null.poll_peer().is_none());
                null.poll_command().unwrap();
            }
            let peer = null.poll_peer().unwrap();
            assert_eq!(
                peer.properties,
                [("Socket-Type".to_owned(), Bytes::from("PULL"))]
            );
            assert!(null.poll_peer().is_none());
        }
    }

    #[test]
    fn only_one_ready_is_welcome() {
        let mut null = null();
        null.handle_command(command::READY, b"").unwrap();
        let again = null.handle_command(command::READY, b"");
        assert!(matches!(
            again,
            Err(CloseReason::Protocol(
                ProtocolError::UnexpectedCommand { .. }
            ))
        ));
        let hello = super::tests::null().handle_command(b"\x05HELLO", b"");
        assert_eq!(hello.unwrap_err().to_string(), "expected READY, got HELLO");
    }

    #[test]
    fn an_error_is_a_status_or_a_text() {
        let handle = |data| null().handle_command(command::ERROR, data).unwrap_err();
        assert_eq!(handle(b"\x03400"), CloseReason::AuthFailed(400));
        assert_eq!(
            handle(b"\x03no\n"),
            CloseReason::Refused("no\\n".to_owned())
        );
        assert!(matches!(handle(b"\x03no"), CloseReason::Protocol(_)));
    }
}
