//! ZRE's messages: RFC 36, and what Zyre has added to it since.

use std::collections::BTreeMap;

use zeroxide::{Frame, Message};

use super::fields::{Reader, SHORT_MAX, put_count, put_long, put_short, text};

pub(crate) const MAX_HEADERS: usize = 256;
pub(crate) const MAX_GROUPS: usize = 256;

/// The largest first frame, in bytes. The content of a message is in the frames after it.
pub(crate) const MAX_HELLO: usize = 64 * 1024;

const SIGNATURE: [u8; 2] = [0xaa, 0xa1];
const VERSION: u8 = 2;

/// A message and its number.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Packet {
    pub(crate) sequence: u16,
    pub(crate) body: Body,
}

/// The message. `member` is the challenger or the leader of an election.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Body {
    Hello(Hello),
    Whisper(Message),
    Shout { group: String, content: Message },
    Join { group: String, status: u8 },
    Leave { group: String, status: u8 },
    Ping,
    PingOk,
    Elect { group: String, member: String },
    Leader { group: String, member: String },
    Goodbye,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Hello {
    pub(crate) endpoint: String,
    pub(crate) groups: Vec<String>,
    pub(crate) status: u8,
    pub(crate) name: String,
    pub(crate) headers: BTreeMap<String, String>,
}

impl Packet {
    /// Returns the message, ready to send.
    pub(crate) fn write(self) -> Message {
        let mut frame = SIGNATURE.to_vec();
        frame.extend([self.body.kind(), VERSION]);
        frame.extend(self.sequence.to_be_bytes());
        let mut content = None;
        match self.body {
            Body::Hello(hello) => hello.write(&mut frame),
            Body::Whisper(parts) => content = Some(parts),
            Body::Shout {
                group,
                content: parts,
            } => {
                put_short(&mut frame, group.as_bytes());
                content = Some(parts);
            }
            Body::Join { group, status } | Body::Leave { group, status } => {
                put_short(&mut frame, group.as_bytes());
                frame.push(status);
            }
            Body::Elect { group, member } | Body::Leader { group, member } => {
                put_short(&mut frame, group.as_bytes());
                put_short(&mut frame, member.as_bytes());
            }
            Body::Ping | Body::PingOk | Body::Goodbye => {}
        }
        match content {
            None => Message::from(frame),
            Some(mut message) => {
                message.push_front(Frame::from(frame));
                message
            }
        }
    }

    /// Returns the message, or `None` if the frames are not one of this protocol.
    pub(crate) fn read(mut message: Message) -> Option<Packet> {
        let head = match message.pop_front() {
            Some(head) => head,
            // Only one frame is left, so there is no content.
            None => std::mem::take(&mut message).into_head(),
        };
        let frame = head.as_slice();
        if frame.len() > MAX_HELLO {
            return None;
        }
        let mut reader = Reader::new(frame.strip_prefix(&SIGNATURE)?);
        let (kind, version, sequence) = (reader.u8()?, reader.u8()?, reader.u16()?);
        if version != VERSION {
            return None;
        }
        let body = match kind {
            1 => Body::Hello(Hello::read(&mut reader)?),
            2 => Body::Whisper(message),
            3 => {
                let group = text(reader.short()?);
                Body::Shout {
                    group,
                    content: message,
                }
            }
            4 => {
                let (group, status) = (text(reader.short()?), reader.u8()?);
                Body::Join { group, status }
            }
            5 => {
                let (group, status) = (text(reader.short()?), reader.u8()?);
                Body::Leave { group, status }
            }
            6 => Body::Ping,
            7 => Body::PingOk,
            8 => {
                let (group, member) = (text(reader.short()?), text(reader.short()?));
                Body::Elect { group, member }
            }
            9 => {
                let (group, member) = (text(reader.short()?), text(reader.short()?));
                Body::Leader { group, member }
            }
            10 => Body::Goodbye,
            _ => return None,
        };
        Some(Packet { sequence, body })
    }
}

impl Body {
    fn kind(&self) -> u8 {
        match self {
            Body::Hello(_) => 1,
            Body::Whisper(_) => 2,
            Body::Shout { .. } => 3,
            Body::Join { .. } => 4,
            Body::Leave { .. } => 5,
            Body::Ping => 6,
            Body::PingOk => 7,
            Body::Elect { .. } => 8,
            Body::Leader { .. } => 9,
            Body::Goodbye => 10,
        }
    }
}

impl Hello {
    fn write(&self, frame: &mut Vec<u8>) {
        put_short(frame, self.endpoint.as_bytes());
        put_count(frame, self.groups.len());
        for group in &self.groups {
            put_long(frame, group.as_bytes());
        }
        frame.push(self.status);
        put_short(frame, self.name.as_bytes());
        put_count(frame, self.headers.len());
        for (key, value) in &self.headers {
            put_short(frame, key.as_bytes());
            put_long(frame, value.as_bytes());
        }
    }

    /// A group with a longer name than others could mention makes the whole message invalid.
    fn read(reader: &mut Reader<'_>) -> Option<Hello> {
        let endpoint = text(reader.short()?);
        let mut groups = Vec::new();
        for _ in 0..reader.count(MAX_GROUPS)? {
            let group = reader.long()?;
            if group.len() > SHORT_MAX {
                return None;
            }
            groups.push(text(group));
        }
        let (status, name) = (reader.u8()?, text(reader.short()?));
        let mut headers = BTreeMap::new();
        for _ in 0..reader.count(MAX_HEADERS)? {
            let key = text(reader.short()?);
            headers.insert(key, text(reader.long()?));
        }
        Some(Hello {
            endpoint,
            groups,
            status,
            name,
            headers,
        })
    }
}
