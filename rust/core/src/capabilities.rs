//! [`has`]: what this build supports.

use zeroxide_proto::mechanisms::{self, MECHANISMS};

use crate::transports;

/// Whether a transport or a security mechanism is built in, by its name in lower case. `tcp` and `inproc` always are,
/// and have no such name. [`Context::has`](crate::Context::has) knows those that were added to a context, too.
pub fn has(capability: &str) -> bool {
    let is_transport = transports::is_capability(capability);
    let mut real = MECHANISMS
        .iter()
        .filter(|spec| **spec != mechanisms::none());
    is_transport || real.any(|spec| spec.name.to_ascii_lowercase() == capability)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capabilities_are_those_of_the_tables() {
        for there in ["ipc", "curve", "plain"] {
            assert!(has(there), "{there}");
        }
        for not_there in ["tcp", "inproc", "null", "CURVE", "gssapi", "draft", ""] {
            assert!(!has(not_there), "{not_there}");
        }
    }
}
