//! NULL: no security. Both sides send READY with their properties at once, in any order.

use super::{Inquiry, Local, Mechanism, MechanismConfig, MechanismSpec, Peer, Shows, Started};
use crate::command;
use crate::error::CloseReason;
use bytes::Bytes;

/// The NULL mechanism of ZMTP 3.
pub static NULL: MechanismSpec = MechanismSpec {
    inquiry: Inquiry::Address,
    shows: Shows::Nothing,
    ..MechanismSpec::new("NULL", 0, start)
};

fn start(_: &MechanismConfig, local: Local<'_>) -> Started {
    Ok(Box::new(Null {
        ready: Some([command::READY, local.properties].concat()),
        admission: if local.authenticate {
            Admission::Unasked
        } else {
            Admission::Granted
        },
        peer: Properties::Awaited,
    }))
}

#[derive(Debug)]
struct Null {
    /// Our READY until it is sent, which is not before the peer is admitted.
    ready: Option<Vec<u8>>,
    admission: Admission,
    peer: Properties,
}

#[derive(Debug, PartialEq, Eq)]
enum Admission {
    Unasked,
    Asked,
    Granted,
}

#[derive(Debug)]
enum Properties {
    Awaited,
    Received(Vec<(String, Bytes)>),
    Taken,
}

impl Mechanism for Null {
    fn handle_command(&mut self, body: &[u8]) -> Result<(), CloseReason> {
        let (name, data) = command::split(body)?;
        if !matches!(self.peer, Properties::Awaited) {
            return Err(command::unexpected("messages", name).into());
        }
        match name {
            command::READY => {
                self.peer = Properties::Received(command::parse_properties(data)?);
                Ok(())
            }
            command::ERROR => Err(command::refusal(data)?),
            _ => Err(command::unexpected("READY", name).into()),
        }
    }

    fn poll_command(&mut self) -> Option<Vec<u8>> {
        self.ready.take_if(|_| self.admission == Admission::Granted)
    }

    /// No credentials, but at once, so that a peer from a refused address receives nothing from us.
    fn poll_credentials(&mut self) -> Option<Vec<Bytes>> {
        if self.admission != Admission::Unasked {
            return None;
        }
        self.admission = Admission::Asked;
        Some(Vec::new())
    }

    fn accept(&mut self) {
        self.admission = Admission::Granted;
    }

    fn poll_peer(&mut self) -> Option<Peer> {
        if self.ready.is_some() || !matches!(self.peer, Properties::Received(_)) {
            return None;
        }
        match std::mem::replace(&mut self.peer, Properties::Taken) {
            Properties::Received(properties) => Some(Peer {
                properties,
                user_id: None,
                key: None,
                cipher: None,
            }),
            Properties::Awaited | Properties::Taken => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ProtocolError;
    use crate::mechanisms::Greeted;
    use crate::socket_type::SocketType;

    const PROPERTIES: &[u8] = b"\x0bSocket-Type\0\0\0\x04PUSH";

    fn null() -> Box<dyn Mechanism> {
        asking(false)
    }

    fn asking(authenticate: bool) -> Box<dyn Mechanism> {
        let local = Local {
            socket_type: SocketType::Push,
            as_server: false,
            authenticate,
            properties: PROPERTIES,
            random: crate::mechanisms::system_random,
            peer: Greeted {
                minor: 1,
                libzmq: true,
            },
        };
        start(&MechanismConfig::default(), local).unwrap()
    }

    #[test]
    fn ready_is_sent_once_and_without_waiting() {
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
            null.handle_command(b"\x05READY\x0bSocket-Type\0\0\0\x04PULL")
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
        null.handle_command(command::READY).unwrap();
        let again = null.handle_command(command::READY);
        assert!(matches!(
            again,
            Err(CloseReason::Protocol(
                ProtocolError::UnexpectedCommand { .. }
            ))
        ));
        let hello = super::tests::null().handle_command(b"\x05HELLO");
        assert_eq!(hello.unwrap_err().to_string(), "expected READY, got HELLO");
    }

    #[test]
    fn an_error_is_a_status_or_a_text() {
        let handle = |body| null().handle_command(body).unwrap_err();
        assert_eq!(handle(b"\x05ERROR\x03400"), CloseReason::AuthFailed(400));
        assert_eq!(
            handle(b"\x05ERROR\x03no\n"),
            CloseReason::Refused("no\\n".to_owned())
        );
        assert!(matches!(
            handle(b"\x05ERROR\x03no"),
            CloseReason::Protocol(_)
        ));
    }

    #[test]
    fn nothing_is_said_before_the_verdict() {
        let mut null = asking(true);
        assert!(null.poll_command().is_none());
        assert_eq!(null.poll_credentials(), Some(Vec::new()));
        assert_eq!(null.poll_credentials(), None);
        null.handle_command(command::READY).unwrap();
        assert!(null.poll_command().is_none() && null.poll_peer().is_none());
        null.accept();
        assert!(null.poll_command().is_some() && null.poll_peer().is_some());
        assert_eq!(null.error_command("400"), b"\x05ERROR\x03400");
    }
}
