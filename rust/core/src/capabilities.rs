//! [`has`]: what this build supports on this machine.

use zeroxide_proto::mechanisms::{self, MECHANISMS};
use zeroxide_proto::wires::WIRES;

use crate::transports;

/// Whether a transport, a security mechanism or a wire protocol can be used, by its name in lower case. Transports that
/// need a protocol of the kernel, which are `vsock`, `tipc` and `sctp`, can be used if the kernel makes sockets of it for
/// this process now. ZMTP is always there, and has no such name. `draft` stands for the socket types that are drafts in
/// libzmq, and `sp` for the scalability protocols of nanomsg and nng. Both are always built in.
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
            "tcp", "inproc", "ipc", "udp", "tls", "tls+tcp", "curve", "plain", "draft", "sp",
        ] {
            assert!(has(there), "{there}");
        }
        for not_there in ["null", "zmtp", "CURVE", "gssapi", ""] {
            assert!(!has(not_there), "{not_there}");
        }
    }
}
