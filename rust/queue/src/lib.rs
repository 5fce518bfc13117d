//! Lock-free queues: what lies under zeroxide's message pipes and mailboxes.

mod chunk;
pub mod doorbell;
pub mod mpsc;
mod primitive;
pub mod spsc;
