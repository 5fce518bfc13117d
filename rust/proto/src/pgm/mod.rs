//! PGM (RFC 3208) without I/O: messages to many receivers by multicast, with repair of what was lost.
//!
//! A [`Sender`] numbers its packets and keeps the newest ones. A [`Receiver`] finds gaps in the numbers, requests what is
//! missing after a random back-off, and delivers in order. Both are values: their driver passes in datagrams and the
//! time, and takes datagrams, events and the next deadline. The streams of bytes that they carry are those of libzmq
//! ([`Packer`]).
//!
//! Every program that can send datagrams can send any packet, in the name of any sender. So a receiver keeps only what
//! it has received, of a limited number of senders, requests a limited number of packets at a time, and believes a jump
//! of the numbers only if two packets agree.

mod dice;
mod packer;
mod packet;
mod receiver;
mod sender;
mod unpacker;
mod window;

pub use self::packer::{Packed, Packer};
pub use self::packet::{DATA_HEAD, Malformed, Tsi};
pub use self::receiver::{Event, Receiver, ReceiverConfig, Transmit};
pub use self::sender::{Sender, SenderConfig};

/// The largest window, in packets. Half of the numbers must be outside of it, to tell old from new.
pub const WINDOW_MAX: u32 = 1 << 24;
