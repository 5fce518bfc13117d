//! Extras for language bindings, outside the public interface: they may change with any version, and the documentation
//! does not show them.

pub use crate::json::Json;
pub use crate::pace::BACKLOG_LARGE;
#[cfg(feature = "ablation")]
pub use crate::pace::{Policy, switch_off};
pub use crate::signal::{Wakes, deferring_wakes, interrupted_by};
pub use crate::socket::{Attempt, Direction, PartsReceiver, Receipt, Receipts, SocketInternals};
pub use crate::sys::clock::since_boot;
pub use crate::sys::interfaces::own_addresses;
pub use crate::sys::parting::{prepare_for_exit, sleep_instead_of_exit};
pub use crate::sys::selector::Trouble;
pub use crate::sys::thread::spawn_without_signals;
pub use zeroxide_proto::copies::Copies;

/// Makes what is made once per process. A binding calls this when it is loaded. A child that was forked while another
/// thread made it would wait for that thread forever.
pub fn prepare_for_forks() {
    crate::registry::prepare_for_forks();
}

/// Returns freed memory to the system, for objects that a binding releases later than the connection that has sent
/// them. Returns false if that was done only just: then try again later.
pub fn give_memory_back() -> bool {
    crate::sys::memory::give_back().is_none()
}
