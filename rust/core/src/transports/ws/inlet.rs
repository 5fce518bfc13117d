//! [`Inlet`]: what arrives after the upgrade, as frames of the engine.
//!
//! Bodies pass through as they arrive, so the inlet holds no message: only the start of a frame, a control frame, and
//! what one read has brought. The length of a message in fragments is not known until its end. Its bytes are therefore
//! passed on in pieces, which the engine joins within its limits.

use super::dialect::Dialect;
use super::frames::{self, COMMAND, MORE, Mask, Start};
use crate::error::{Error, ErrorKind, Result};
use crate::sys::errno;
use crate::transports::layers::outgoing::SPARE_MAX;

/// The fragments of a message that may be empty. No program sends any, and each costs work but brings nothing.
const EMPTY_FRAGMENTS_MAX: u32 = 1024;

/// See the module text.
#[derive(Debug)]
pub(super) struct Inlet {
    /// Whether the peer is the client, which masks its frames.
    from_client: bool,
    dialect: Dialect,
    /// The start of a frame.
    head: Vec<u8>,
    state: State,
    /// The message whose fragments arrive.
    fragments: Option<Fragments>,
    /// Where in `ready` the header of the current piece for above is to be.
    piece: Option<usize>,
    /// Bytes for above.
    ready: Vec<u8>,
}

/// A complete control frame.
#[derive(Debug)]
pub(super) struct Control {
    pub(super) opcode: u8,
    pub(super) payload: Vec<u8>,
}

#[derive(Debug)]
enum State {
    Start,
    /// The first byte of a whole message of ZWS, which has its flags. `left` counts that byte.
    Flags {
        left: u64,
        mask: Mask,
    },
    Body {
        left: u64,
        at: u64,
        mask: Mask,
    },
    Fragment {
        left: u64,
        at: u64,
        mask: Mask,
        is_last: bool,
    },
    Control {
        opcode: u8,
        left: usize,
        mask: Mask,
        payload: Vec<u8>,
    },
}

#[derive(Debug)]
struct Fragments {
    /// The flags of ZWS, once their byte has arrived.
    flags: Option<u8>,
    /// The number of empty ones.
    empty: u32,
}

impl Inlet {
    pub(super) fn new(from_client: bool, dialect: Dialect) -> Inlet {
        Inlet {
            from_client,
            dialect,
            head: Vec::new(),
            state: State::Start,
            fragments: None,
            piece: None,
            ready: dialect.greeting(),
        }
    }

    /// Takes bytes, up to the end of the next control frame, which it returns. Call [`end_read`](Self::end_read) when
    /// all are taken.
    ///
    /// # Errors
    /// If the peer does not follow the protocol.
    pub(super) fn decode(&mut self, bytes: &mut &[u8]) -> Result<Option<Control>> {
        // A buffer that grew step by step would be copied at each step.
        self.ready.reserve(bytes.len());
        while !bytes.is_empty() {
            match &mut self.state {
                State::Start => {
                    let Some(start) = self.next_start(bytes)? else {
                        continue;
                    };
                    self.start(start)?;
                }
                State::Flags { left, mask } => {
                    let (mut flags, mask, left) = ([take(bytes, 1)[0]], *mask, *left - 1);
                    mask.apply(&mut flags, 0);
                    let flags = checked(flags[0], self.dialect)?;
                    self.dialect.put_header(flags, left, &mut self.ready);
                    self.state = match left {
                        0 => State::Start,
                        left => State::Body { left, at: 1, mask },
                    };
                }
                State::Body { left, at, mask } => {
                    let part = take(bytes, *left);
                    let start = self.ready.len();
                    self.ready.extend_from_slice(part);
                    mask.apply(&mut self.ready[start..], *at);
                    *left -= part.len() as u64;
                    *at += part.len() as u64;
                    if *left == 0 {
                        self.state = State::Start;
                    }
                }
                State::Fragment { .. } => self.fragment(bytes)?,
                State::Control { left, payload, .. } => {
                    let part = take(bytes, *left as u64);
                    payload.extend_from_slice(part);
                    *left -= part.len();
                }
            }
            if let State::Control { left: 0, .. } = self.state {
                return Ok(self.control());
            }
        }
        Ok(None)
    }

    /// Takes the start of a frame, or what there is of it.
    fn next_start(&mut self, bytes: &mut &[u8]) -> Result<Option<Start>> {
        if self.head.is_empty()
            && let Some((start, length)) = frames::parse(bytes, self.from_client)?
        {
            take(bytes, length as u64);
            return Ok(Some(start));
        }
        self.head.extend(take(bytes, 1));
        let parsed = frames::parse(&self.head, self.from_client)?;
        if parsed.is_some() {
            self.head.clear();
        }
        Ok(parsed.map(|(start, _)| start))
    }

    /// All bytes of a read are taken, so the piece of this read is complete.
    pub(super) fn end_read(&mut self) {
        self.end_piece(false);
    }

    /// Whether it has bytes for above.
    pub(super) fn has_input(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Appends bytes for above to `buffer`, up to its capacity.
    pub(super) fn poll_input(&mut self, buffer: &mut Vec<u8>) {
        let room = buffer.capacity() - buffer.len();
        let count = self.ready.len().min(room);
        buffer.extend_from_slice(&self.ready[..count]);
        match count == self.ready.len() && self.ready.capacity() > SPARE_MAX {
            true => self.ready = Vec::new(),
            false => drop(self.ready.drain(..count)),
        }
    }

    fn start(&mut self, start: Start) -> Result<()> {
        match start {
            Start::Control { opcode, size, mask } => {
                self.state = State::Control {
                    opcode,
                    left: size,
                    mask,
                    payload: Vec::new(),
                };
            }
            Start::Data { is_first, .. } if is_first == self.fragments.is_some() => {
                return Err(wrong(match is_first {
                    true => "begins a message in the middle of another one",
                    false => "continues a message that it has not begun",
                }));
            }
            Start::Data {
                is_first: true,
                is_last: true,
                size,
                mask,
            } => {
                let has_flags = self.dialect.has_flags();
                self.state = match size {
                    0 if has_flags => return Err(wrong("sends a message without flags")),
                    left if has_flags => State::Flags { left, mask },
                    size => {
                        self.dialect.put_header(0, size, &mut self.ready);
                        match size {
                            0 => State::Start,
                            left => State::Body { left, at: 0, mask },
                        }
                    }
                };
            }
            Start::Data {
                is_last,
                size,
                mask,
                ..
            } => {
                let flags = (!self.dialect.has_flags()).then_some(0);
                let fragments = self.fragments.get_or_insert(Fragments { flags, empty: 0 });
                if size > 0 {
                    self.state = State::Fragment {
                        left: size,
                        at: 0,
                        mask,
                        is_last,
                    };
                    return Ok(());
                }
                fragments.empty += 1;
                if fragments.empty > EMPTY_FRAGMENTS_MAX {
                    return Err(wrong("sends a message with too many empty fragments"));
                }
                self.end_fragment(is_last)?;
            }
        }
        Ok(())
    }

    /// Takes bytes of a fragment.
    fn fragment(&mut self, bytes: &mut &[u8]) -> Result<()> {
        let (
            State::Fragment {
                left,
                at,
                mask,
                is_last,
            },
            Some(fragments),
        ) = (&mut self.state, &mut self.fragments)
        else {
            return Ok(());
        };
        let Some(flags) = fragments.flags else {
            let mut flags = [take(bytes, 1)[0]];
            mask.apply(&mut flags, *at);
            *left -= 1;
            *at += 1;
            let (is_over, is_last) = (*left == 0, *is_last);
            fragments.flags = Some(checked(flags[0], self.dialect)?);
            return match is_over {
                true => self.end_fragment(is_last),
                false => Ok(()),
            };
        };
        if self.piece.is_none() {
            self.piece = Some(self.ready.len());
            self.dialect.put_piece(flags, &mut self.ready);
        }
        let part = take(bytes, *left);
        let start = self.ready.len();
        self.ready.extend_from_slice(part);
        mask.apply(&mut self.ready[start..], *at);
        *left -= part.len() as u64;
        *at += part.len() as u64;
        match *left {
            0 => {
                let is_last = *is_last;
                self.end_fragment(is_last)
            }
            _ => Ok(()),
        }
    }

    fn end_fragment(&mut self, is_last: bool) -> Result<()> {
        self.state = State::Start;
        if is_last && let Some(fragments) = self.fragments.take() {
            let Some(flags) = fragments.flags else {
                return Err(wrong("sends a message without flags"));
            };
            if self.piece.is_none() {
                // The last piece may be empty, but the message needs its end.
                self.piece = Some(self.ready.len());
                self.dialect.put_piece(flags, &mut self.ready);
            }
            self.end_piece(true);
        }
        Ok(())
    }

    /// Completes the piece for above that is being collected.
    fn end_piece(&mut self, is_last: bool) {
        if let Some(at) = self.piece.take() {
            self.dialect.end_piece(is_last, &mut self.ready[at..]);
        }
    }

    fn control(&mut self) -> Option<Control> {
        let State::Control {
            opcode,
            mask,
            mut payload,
            ..
        } = std::mem::replace(&mut self.state, State::Start)
        else {
            return None;
        };
        mask.apply(&mut payload, 0);
        Some(Control { opcode, payload })
    }
}

/// Checks flags of ZWS (RFC 45, "Framing").
fn checked(flags: u8, dialect: Dialect) -> Result<u8> {
    if flags & !(MORE | COMMAND) != 0 {
        return Err(wrong("sets flags that ZWS 2.0 does not have"));
    }
    if flags & COMMAND != 0 && !dialect.has_commands() {
        let text = "sends a command, which ZWS 2.0 does not have without a mechanism";
        return Err(wrong(text));
    }
    Ok(flags)
}

/// Takes up to `most` bytes from the front.
fn take<'a>(bytes: &mut &'a [u8], most: u64) -> &'a [u8] {
    let count = usize::try_from(most).unwrap_or(usize::MAX).min(bytes.len());
    let (part, rest) = bytes.split_at(count);
    *bytes = rest;
    part
}

fn wrong(why: &str) -> Error {
    Error::with(ErrorKind::Os(errno::PROTOCOL), format!("the peer {why}"))
}
