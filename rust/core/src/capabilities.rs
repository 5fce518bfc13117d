//! [`has`]: what this build supports.

use zeroxide_proto::mechanisms::MECHANISMS;

use crate::transports;

/// Whether a transport or a security mechanism is built in, by its name in lower case. `tcp` and `inproc` always are,
/// and have no such name.
pub fn has(capability: &str) -> bool {
    let is_transport = transports::is_capability(capability);
    // NULL is the lack of a mechanism.
    let mut mechanisms = MECHANISMS.iter().filter(|spec| spec.number != 0);
    is_transport || mechanisms.any(|spec| spec.name.to_ascii_lowercase() == capability)
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
