//! The messages of the programs. Every byte of a message follows from its sender and its number, so a receiver sees whether
//! the message is whole.

use zeroxide::{Frame, Message};

use super::dice::mix;

/// A message of one program.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Letter {
    /// The number of the socket that sent it; every socket of a run has another one.
    pub from: u16,
    /// Of this socket's messages.
    pub number: u32,
    /// The letter that it answers.
    pub answers: (u16, u32),
    /// It has one part only.
    pub is_single: bool,
}

/// Topics and groups.
pub const TOPICS: [u8; 4] = *b"abcd";
/// The length of the first part without its filling.
const HEAD: usize = 15;

impl Letter {
    /// Its topic, which is its first byte.
    pub fn topic(&self) -> u8 {
        TOPICS[self.hash(0) as usize % TOPICS.len()]
    }

    /// The bodies of its parts.
    pub fn parts(&self) -> Vec<Vec<u8>> {
        let count = match (self.is_single, self.hash(1) % 4) {
            (true, _) => 1,
            (false, many) => [1, 1, 2, 4][many as usize],
        };
        (0..count).map(|part| self.part(part, count)).collect()
    }

    /// The message, with nothing in front of it.
    pub fn message(&self) -> Message {
        let parts = self.parts();
        Message::from_frames(parts.iter().map(|part| Frame::copy_from(part)))
    }

    /// Reads a message, of which the first `skipped` frames are not the letter's.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn read(message: &Message, skipped: usize) -> Result<Letter, String> {
        let head = message.get(skipped).map(Frame::as_slice);
        let found = head.and_then(|head| Some((head, name(head)?)));
        let (head, (from, number)) = found.ok_or_else(|| format!("no letter: {message:?}"))?;
        let letter = Letter {
            from,
            number,
            answers: (
                u16::from_le_bytes([head[7], head[8]]),
                u32::from_le_bytes([head[9], head[10], head[11], head[12]]),
            ),
            is_single: head[13] != 0,
        };
        let parts = letter.parts();
        let found = message.iter().skip(skipped).map(Frame::as_slice);
        match found.eq(parts.iter().map(Vec::as_slice)) {
            true => Ok(letter),
            false => Err(format!("{letter:?} is not whole: {message:?}")),
        }
    }

    fn part(&self, part: usize, count: usize) -> Vec<u8> {
        let mut body = vec![self.topic()];
        body.extend(self.from.to_le_bytes());
        body.extend(self.number.to_le_bytes());
        body.extend(self.answers.0.to_le_bytes());
        body.extend(self.answers.1.to_le_bytes());
        body.extend([u8::from(self.is_single), (part * 16 + count) as u8]);
        let hash = self.hash(2 + part as u64);
        let filling = match hash % 16 {
            0 => hash >> 8 & 0x3fff,
            1..4 => hash >> 8 & 0x7ff,
            _ => hash >> 8 & 0x3f,
        };
        body.extend((0..filling).map(|at| (hash >> (at % 40)) as u8));
        body
    }

    fn hash(&self, what: u64) -> u64 {
        mix(u64::from(self.from) << 40 ^ u64::from(self.number) << 8 ^ what)
    }
}

/// The topic of a letter, which does not depend on what it answers.
pub fn topic_of(from: u16, number: u32) -> u8 {
    let letter = Letter {
        from,
        number,
        answers: (0, 0),
        is_single: true,
    };
    letter.topic()
}

/// The sender and the number in the first part of a letter; `None` if it is too short for one.
pub fn name(part: &[u8]) -> Option<(u16, u32)> {
    let head = part.first_chunk::<HEAD>()?;
    let from = u16::from_le_bytes([head[1], head[2]]);
    let number = u32::from_le_bytes([head[3], head[4], head[5], head[6]]);
    Some((from, number))
}
