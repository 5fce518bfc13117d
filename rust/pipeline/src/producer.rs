//! The producer: rows in, acknowledged batches in a collector's log.

pub mod window;
