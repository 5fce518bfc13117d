//! Ways into parsers for the fuzzer, outside the public interface: they may change with any version.

use zeroxide_proto::endpoint::Endpoint;
use zeroxide_proto::socket_type::SocketType;

use crate::error::{Error, ErrorKind, Result};
pub use crate::spill::fuzzing::Queues;
use crate::transports::Transports;
pub use crate::transports::fuzzing::Conversation;

/// Checks an endpoint as `bind` and `connect` do, without using it.
///
/// # Errors
/// As theirs.
pub fn check_endpoint(text: &str, socket: SocketType, bind: bool) -> Result<()> {
    let endpoint = Endpoint::parse(text)
        .map_err(|error| Error::with(ErrorKind::Invalid, error.to_string()))?;
    let transport = Transports::new().find(&endpoint.scheme)?;
    transport.check(&endpoint.address, socket, bind)
}
