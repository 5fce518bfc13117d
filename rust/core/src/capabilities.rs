//! [`has`]: what this build supports.

use zeroxide_proto::mechanisms::{self, MECHANISMS};
use zeroxide_proto::wires::WIRES;

use crate::transports;

/// Whether a transport, a security mechanism or a wire protocol is built in, by its name in lower case. `tcp`, `inproc`
/// and ZMTP always are, and have no such name. `draft` stands for the socket types that are drafts in libzmq, and `sp`
/// for the scalability protocols of nanomsg and nng. Both are always built in.
/// [`Context::has`](crate::Context::has) also knows those that were added to a context.
pub fn has(capability: &str) -> bool {
    let is_draft = capability == "draft";
    let mut wires = WIRES.iter().filter(|wire| !wire.is_default());
    let is_wire = wires.any(|wire| wire.name.to_ascii_lowercase() == capability);
    let is_transport = transports::is_capability(capability);
    let mut real = MECHANISMS
        .iter()
        .filter(|spec| **spec != mechanisms::none());
    is_draft
        || is_wire
        || is_transport
        || real.any(|spec| spec.name.to_ascii_lowercase() == capability)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capabilities_are_those_of_the_tables() {
        for there in [
            "ipc", "udp", "tls", "tls+tcp", "vsock", "tipc", "sctp", "curve", "plain", "draft",
            "sp",
        ] {
            assert!(has(there), "{there}");
        }
        for not_there in ["tcp", "inproc", "null", "CURVE", "gssapi", ""] {
            assert!(!has(not_there), "{not_there}");
        }
    }
}
