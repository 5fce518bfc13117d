//! A producer, a collector, its log and its readers on simulated disks, in one thread. A seed chooses the settings, what
//! each part does in which order, and the faults. See docs/reliability.md.
//!
//! | part | what is real | what is simulated |
//! | --- | --- | --- |
//! | producers | conversation, window, spool | the thread and the connection |
//! | collector | server, writer, staging, publishing, fetching, the log | its threads, the socket, and plain peers |
//! | sinks and readers | the messages, and how the log answers them | the programs |
//! | disks | nothing below the calls to the file system | [`zeroxide_log::disk::simulated`] |

#[cfg(test)]
mod cases;
mod makers;
mod model;
mod readers;
mod runner;
mod sinks;
mod world;

pub use runner::main;
