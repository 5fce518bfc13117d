//! [`Outlet`]: what waits to be sent: the upgrade, then frames of the engine as messages of WebSocket, and control frames
//! between them.

use super::dialect::Dialect;
use super::frames::{self, CLOSE, Mask, PING, PONG};
use crate::sys::chance;
use crate::transports::layers::outgoing::{Outgoing, WAITING_MAX};

/// The longest frame of a message that may be in pieces. nng sends such frames, and accepts up to 1 MiB.
const PIECE_MAX: u64 = 64 * 1024;
/// The longest header of a frame of the engine: that of ZMTP 1.0, with a size of eight bytes and flags.
const HEADER_MAX: usize = 10;
/// The number of masks that are made at a time.
const MASKS: usize = 32;

/// See the module text.
#[derive(Debug)]
pub(super) struct Outlet {
    /// Those of a client.
    masks: Option<Masks>,
    dialect: Dialect,
    state: State,
    outgoing: Outgoing,
    /// The bytes of control frames after the last byte from above.
    trailing: usize,
    /// A ping that waits until there is room, and for the end of the frame that is being sent.
    owes_ping: bool,
    /// The same for the answer to the peer's last ping (RFC 6455, section 5.5.3: earlier ones need none).
    owed_pong: Option<Vec<u8>>,
    /// There are no random bytes for masks, so nothing more can be sent.
    has_failed: bool,
}

/// Masks that neither the server nor a program on the way can predict (RFC 6455, section 10.3). A system call fetches
/// several.
#[derive(Debug)]
pub(super) struct Masks {
    bytes: Box<[u8; MASKS * 4]>,
    used: usize,
}

impl Masks {
    pub(super) fn new() -> Masks {
        Masks {
            bytes: Box::new([0; MASKS * 4]),
            used: MASKS * 4,
        }
    }

    /// The next mask; `None` if the system provides no random bytes.
    fn next(&mut self) -> Option<Mask> {
        if self.used == self.bytes.len() {
            if !chance::fill(&mut *self.bytes) {
                return None;
            }
            self.used = 0;
        }
        let mask = self.bytes[self.used..].first_chunk::<4>()?;
        self.used += mask.len();
        Some(Mask::new(*mask))
    }
}

/// The state of the frame that is being taken from above.
#[derive(Debug)]
enum State {
    Greeting {
        left: usize,
    },
    /// The first `len` bytes of a header.
    Header {
        bytes: [u8; HEADER_MAX],
        len: usize,
    },
    /// `left` bytes of a frame, and the rest of the message after it.
    Body {
        left: u64,
        at: u64,
        mask: Mask,
        rest: u64,
    },
}

impl State {
    fn header() -> State {
        State::Header {
            bytes: [0; HEADER_MAX],
            len: 0,
        }
    }
}

/// There is no mask for a frame, so it must not be sent.
struct Unmasked;

impl Outlet {
    /// An outlet that has these bytes to send. The masks are a client's.
    pub(super) fn new(first: Vec<u8>, masks: Option<Masks>, dialect: Dialect) -> Outlet {
        Outlet {
            masks,
            dialect,
            state: State::Greeting { left: 0 },
            outgoing: Outgoing::new(first),
            trailing: 0,
            owes_ping: false,
            owed_pong: None,
            has_failed: false,
        }
    }

    /// Adds bytes of the upgrade.
    pub(super) fn put_upgrade(&mut self, text: String) {
        self.outgoing.buffer().extend(text.into_bytes());
    }

    /// The upgrade is complete, and this is what both sides speak.
    pub(super) fn open(&mut self, dialect: Dialect) {
        self.dialect = dialect;
        self.state = State::Greeting {
            left: dialect.unsent(),
        };
    }

    /// Whether nothing more can be sent.
    pub(super) fn has_failed(&self) -> bool {
        self.has_failed
    }

    /// Sends a ping.
    pub(super) fn ping(&mut self) {
        self.owes_ping = true;
        self.settle();
    }

    /// Whether a ping has not been sent yet.
    pub(super) fn owes_ping(&self) -> bool {
        self.owes_ping
    }

    /// Answers a ping.
    pub(super) fn pong(&mut self, payload: Vec<u8>) {
        self.owed_pong = Some(payload);
        self.settle();
    }

    /// Sends the last frame. In the middle of another one there is no place for it.
    pub(super) fn close(&mut self, payload: &[u8]) {
        if self.is_between() {
            self.put_control(CLOSE, payload);
        }
    }

    /// Makes room for this many bytes from above.
    pub(super) fn reserve(&mut self, bytes: usize) {
        // A buffer that grew step by step would be copied at each step.
        self.outgoing.buffer().reserve(bytes.min(WAITING_MAX));
    }

    /// Takes bytes from above, as far as there is room. Returns how many.
    pub(super) fn encode(&mut self, bytes: &[u8]) -> usize {
        let mut rest = bytes;
        while !rest.is_empty() && !self.has_failed {
            let waiting = self.poll_transmit().len();
            if waiting >= WAITING_MAX {
                break;
            }
            self.trailing = 0;
            match &mut self.state {
                State::Greeting { left } => {
                    let count = rest.len().min(*left);
                    *left -= count;
                    rest = &rest[count..];
                    if *left == 0 {
                        self.state = State::header();
                    }
                }
                State::Header { bytes, len } => {
                    let mut header = None;
                    while header.is_none() && *len < HEADER_MAX && !rest.is_empty() {
                        bytes[*len] = rest[0];
                        *len += 1;
                        rest = &rest[1..];
                        header = self.dialect.parse_header(&bytes[..*len]);
                    }
                    if let Some((flags, size)) = header {
                        let Ok(state) = self.begin(flags, size) else {
                            break;
                        };
                        self.state = state;
                    }
                }
                State::Body {
                    left,
                    at,
                    mask,
                    rest: after,
                } => {
                    let count = usize::try_from(*left).unwrap_or(usize::MAX);
                    let count = count.min(rest.len()).min(WAITING_MAX - waiting);
                    let outgoing = self.outgoing.buffer();
                    let start = outgoing.len();
                    outgoing.extend_from_slice(&rest[..count]);
                    mask.apply(&mut outgoing[start..], *at);
                    *left -= count as u64;
                    *at += count as u64;
                    rest = &rest[count..];
                    if *left == 0 {
                        let after = *after;
                        self.state = State::header();
                        self.settle();
                        if after > 0 {
                            let Ok(state) = self.begin_piece(false, after) else {
                                break;
                            };
                            self.state = state;
                        }
                    }
                }
            }
        }
        bytes.len() - rest.len()
    }

    /// The bytes to send below now.
    pub(super) fn poll_transmit(&self) -> &[u8] {
        self.outgoing.waiting()
    }

    /// The number of these bytes, without those of control frames after the last byte from above.
    pub(super) fn held(&self) -> usize {
        self.poll_transmit().len().saturating_sub(self.trailing)
    }

    /// Records that `count` of these bytes were sent.
    pub(super) fn transmitted(&mut self, count: usize) {
        self.outgoing.transmitted(count);
        self.settle();
    }

    /// Adds the control frames that wait, if they may be sent now. A peer that does not read gets no more of them.
    fn settle(&mut self) {
        if !self.is_between() || self.poll_transmit().len() >= WAITING_MAX {
            return;
        }
        if let Some(payload) = self.owed_pong.take() {
            self.put_control(PONG, &payload);
        }
        if std::mem::take(&mut self.owes_ping) {
            self.put_control(PING, &[]);
        }
    }

    /// Whether the last frame is complete. A control frame must not be inside another frame.
    fn is_between(&self) -> bool {
        !matches!(self.state, State::Body { .. })
    }

    fn put_control(&mut self, opcode: u8, payload: &[u8]) {
        let Ok(mask) = self.mask() else { return };
        let outgoing = self.outgoing.buffer();
        let before = outgoing.len();
        frames::put_control(opcode, payload, mask, outgoing);
        self.trailing += outgoing.len() - before;
    }

    /// A new mask if this side is the client. Without random bytes, the connection ends.
    fn mask(&mut self) -> std::result::Result<Option<Mask>, Unmasked> {
        let Some(masks) = &mut self.masks else {
            return Ok(None);
        };
        let mask = masks.next();
        self.has_failed |= mask.is_none();
        mask.map(Some).ok_or(Unmasked)
    }

    /// Begins a message or a frame of ZMTP.
    fn begin(&mut self, flags: u8, size: u64) -> std::result::Result<State, Unmasked> {
        if !self.dialect.has_flags() {
            return self.begin_piece(true, size);
        }
        let mask = self.mask()?;
        frames::put_frame(flags, size, mask, self.outgoing.buffer());
        Ok(match size {
            0 => State::header(),
            left => State::Body {
                left,
                at: 1,
                mask: mask.unwrap_or_default(),
                rest: 0,
            },
        })
    }

    /// Begins a frame with the next part of a message of which `size` bytes are left.
    fn begin_piece(&mut self, is_first: bool, size: u64) -> std::result::Result<State, Unmasked> {
        let (left, mask) = (size.min(PIECE_MAX), self.mask()?);
        let rest = size - left;
        frames::put_piece(is_first, rest == 0, left, mask, self.outgoing.buffer());
        Ok(match left {
            0 => State::header(),
            left => State::Body {
                left,
                at: 0,
                mask: mask.unwrap_or_default(),
                rest,
            },
        })
    }
}
