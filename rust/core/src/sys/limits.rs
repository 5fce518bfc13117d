//! The limits of this process.

use rustix::process::{Resource, getrlimit};

/// The number of descriptors that it may have; `None` if there is no limit.
pub(crate) fn descriptors() -> Option<u64> {
    getrlimit(Resource::Nofile).current
}
