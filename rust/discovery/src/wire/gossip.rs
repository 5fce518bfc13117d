//! The messages of czmq's gossip protocol. Keys and values are bytes, because nodes pass on those of others unchanged.

use super::fields::{Reader, put_long, put_short};

/// The largest message, in bytes.
pub(crate) const MAX_FRAME: usize = 64 * 1024;

const SIGNATURE: [u8; 2] = [0xaa, 0xa0];
const VERSION: u8 = 1;

/// A message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Gossip {
    Hello,
    Publish { key: Vec<u8>, value: Vec<u8> },
    Ping,
    Pong,
    Invalid,
}

impl Gossip {
    /// Returns the frame. A tuple has no time to live, because czmq ignores it.
    pub(crate) fn write(&self) -> Vec<u8> {
        let mut frame = SIGNATURE.to_vec();
        frame.extend([self.kind(), VERSION]);
        if let Gossip::Publish { key, value } = self {
            put_short(&mut frame, key);
            put_long(&mut frame, value);
            frame.extend([0; 4]);
        }
        frame
    }

    /// Returns the message, or `None` if the frame is not one of this protocol.
    pub(crate) fn read(frame: &[u8]) -> Option<Gossip> {
        if frame.len() > MAX_FRAME {
            return None;
        }
        let mut reader = Reader::new(frame.strip_prefix(&SIGNATURE)?);
        let (kind, version) = (reader.u8()?, reader.u8()?);
        if version != VERSION {
            return None;
        }
        Some(match kind {
            1 => Gossip::Hello,
            2 => {
                let (key, value) = (reader.short()?.to_vec(), reader.long()?.to_vec());
                reader.u32()?;
                Gossip::Publish { key, value }
            }
            3 => Gossip::Ping,
            4 => Gossip::Pong,
            5 => Gossip::Invalid,
            _ => return None,
        })
    }

    fn kind(&self) -> u8 {
        match self {
            Gossip::Hello => 1,
            Gossip::Publish { .. } => 2,
            Gossip::Ping => 3,
            Gossip::Pong => 4,
            Gossip::Invalid => 5,
        }
    }
}
