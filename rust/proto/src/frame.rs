//! [`Frame`]: one part of a message, with small bodies inline and large ones reference-counted.
//!
//! Most messages are small, and a heap block for each would cost more than the copy it saves. So a body of up to
//! [`INLINE_MAX`] bytes is stored in the frame itself. A larger one is a [`Bytes`], usually a slice of the receive
//! buffer, and cloning it for a second subscriber only counts a reference.

use bytes::Bytes;
use std::collections::TryReserveError;
use std::fmt;
use std::ops::Deref;

/// The longest body stored inside the frame itself.
///
/// Chosen so that a frame fills 72 bytes: this, and a byte each for length, kind and the `more` flag.
pub const INLINE_MAX: usize = 69;

/// The purpose of a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum FrameKind {
    /// Part of an application's message.
    #[default]
    Data = 0,
    /// A protocol command; the body is its name with a length byte, then its data.
    Command = 1,
    /// A subscription; the body is the topic alone.
    Subscribe = 2,
    /// The end of a subscription; the body is the topic alone.
    Cancel = 3,
    /// A dish joins a group; the body is the group alone.
    Join = 4,
    /// A dish leaves a group; the body is the group alone.
    Leave = 5,
    /// Consecutive complete messages in their wire form: see [`Run`](crate::run::Run). Only passed to an engine.
    Run = 6,
}

/// One part of a message: a body, the `more` flag and a [`FrameKind`].
///
/// Cheap to move and to clone. The default is an empty data frame.
#[derive(Clone)]
pub struct Frame {
    body: Body,
}

#[derive(Clone)]
enum Body {
    Inline(Inline),
    Shared(Shared),
}

// FrameKind and flag are inside both variants, because outside of the enum they would cost eight bytes of alignment. The
// order is fixed so that the body is aligned and frames move in whole words; the variant is encoded in the unused
// values of `more`. `Copy`, so that a clone is one copy of the whole. If it were copied field by field, the next read
// would have to wait for the separate stores.
#[derive(Clone, Copy)]
#[repr(C)]
struct Inline {
    bytes: [u8; INLINE_MAX],
    len: u8,
    kind: FrameKind,
    more: bool,
}

#[derive(Clone)]
struct Shared {
    bytes: Bytes,
    /// The load of a run.
    load: Load,
    kind: FrameKind,
    more: bool,
}

/// The load of a frame: its complete messages and the bytes of their bodies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// Complete messages.
    pub messages: u32,
    /// Bytes of their bodies.
    pub bytes: u32,
}

const _: () = assert!(size_of::<Option<Frame>>() == 72);

impl Frame {
    /// An empty data frame.
    pub const fn new() -> Frame {
        Frame {
            body: Body::Inline(Inline {
                bytes: [0; INLINE_MAX],
                len: 0,
                kind: FrameKind::Data,
                more: false,
            }),
        }
    }

    /// A data frame with a copy of `body`.
    #[inline]
    pub fn copy_from(body: &[u8]) -> Frame {
        let mut frame = Frame::new();
        frame.fill(body);
        frame
    }

    /// Like [`copy_from`](Frame::copy_from), for a body of any size.
    ///
    /// # Errors
    /// There is no memory for the copy.
    #[inline]
    pub fn try_copy_from(body: &[u8]) -> Result<Frame, TryReserveError> {
        let mut frame = Frame::new();
        frame.try_fill(body)?;
        Ok(frame)
    }

    /// A data frame around `body`: shares it when it is large, copies it inline when it is small.
    #[inline]
    pub fn from_bytes(body: Bytes) -> Frame {
        if body.len() > INLINE_MAX {
            return Frame::shared(body);
        }
        Frame::copy_from(&body)
    }

    /// A frame of the given kind with a copy of `body`.
    pub fn with_kind(kind: FrameKind, body: &[u8]) -> Frame {
        let mut frame = Frame::copy_from(body);
        frame.set_kind(kind);
        frame
    }

    /// The body and the bytes after it, if it is stored in the frame, for callers that copy it: see
    /// [`from_array`](Self::from_array).
    #[inline(always)]
    pub(crate) fn as_array(&self) -> Option<&[u8; INLINE_MAX]> {
        match &self.body {
            Body::Inline(inline) => Some(&inline.bytes),
            Body::Shared(_) => None,
        }
    }

    /// A data frame of the first `len` bytes of `bytes`; the other bytes are never visible.
    ///
    /// Copying a fixed number of bytes is much cheaper than copying the right number.
    #[inline(always)]
    pub(crate) fn from_array(bytes: &[u8; INLINE_MAX], len: u8, more: bool) -> Frame {
        debug_assert!(usize::from(len) <= INLINE_MAX);
        Frame {
            body: Body::Inline(Inline {
                bytes: *bytes,
                len,
                kind: FrameKind::Data,
                more,
            }),
        }
    }

    /// Puts a copy of `body` into a new frame.
    ///
    /// Never inlined: see [`try_fill`](Self::try_fill).
    #[inline(never)]
    pub(crate) fn fill(&mut self, body: &[u8]) {
        if !self.fill_inline(body) {
            *self = Frame::shared(Bytes::copy_from_slice(body));
        }
    }

    /// Like [`fill`](Self::fill), for a body of any size.
    ///
    /// Never inlined, so that the frame is written directly to its destination. Inlined code would write its fields
    /// separately, and the next move would have to wait for those stores.
    #[inline(never)]
    pub(crate) fn try_fill(&mut self, body: &[u8]) -> Result<(), TryReserveError> {
        if !self.fill_inline(body) {
            let mut copy = Vec::new();
            copy.try_reserve_exact(body.len())?;
            copy.extend_from_slice(body);
            *self = Frame::shared(Bytes::from(copy));
        }
        Ok(())
    }

    #[inline]
    fn fill_inline(&mut self, body: &[u8]) -> bool {
        match &mut self.body {
            Body::Inline(inline) if body.len() <= INLINE_MAX => {
                inline.bytes[..body.len()].copy_from_slice(body);
                inline.len = body.len() as u8;
                true
            }
            _ => false,
        }
    }

    /// A data frame that always shares `bytes`, however few they are, so that their owner is notified when the frame is
    /// dropped.
    #[inline]
    pub fn shared(bytes: Bytes) -> Frame {
        Frame {
            body: Body::Shared(Shared {
                bytes,
                load: Load::default(),
                kind: FrameKind::Data,
                more: false,
            }),
        }
    }

    /// The frame of a run.
    pub(crate) fn run(bytes: Bytes, load: Load) -> Frame {
        Frame {
            body: Body::Shared(Shared {
                bytes,
                load,
                kind: FrameKind::Run,
                more: false,
            }),
        }
    }

    /// The load of a frame of [`FrameKind::Run`]; nothing for all others.
    pub fn load(&self) -> Load {
        match &self.body {
            Body::Inline(_) => Load::default(),
            Body::Shared(shared) => shared.load,
        }
    }

    /// The purpose of the frame.
    #[inline]
    pub fn kind(&self) -> FrameKind {
        match &self.body {
            Body::Inline(inline) => inline.kind,
            Body::Shared(shared) => shared.kind,
        }
    }

    /// Changes the purpose of the frame.
    #[inline]
    pub fn set_kind(&mut self, kind: FrameKind) {
        match &mut self.body {
            Body::Inline(inline) => inline.kind = kind,
            Body::Shared(shared) => shared.kind = kind,
        }
    }

    /// Whether another frame of the same message follows.
    #[inline]
    pub fn more(&self) -> bool {
        match &self.body {
            Body::Inline(inline) => inline.more,
            Body::Shared(shared) => shared.more,
        }
    }

    /// Sets whether another frame of the same message follows.
    #[inline]
    pub fn set_more(&mut self, more: bool) {
        match &mut self.body {
            Body::Inline(inline) => inline.more = more,
            Body::Shared(shared) => shared.more = more,
        }
    }

    /// Length of the body in bytes.
    #[inline]
    pub fn len(&self) -> usize {
        match &self.body {
            Body::Inline(inline) => usize::from(inline.len),
            Body::Shared(shared) => shared.bytes.len(),
        }
    }

    /// Whether the body has no bytes.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The body.
    #[inline]
    pub fn as_slice(&self) -> &[u8] {
        match &self.body {
            Body::Inline(inline) => inline.as_slice(),
            Body::Shared(shared) => &shared.bytes,
        }
    }

    /// Whether the body is stored in the frame, without a heap block.
    #[inline]
    pub fn is_inline(&self) -> bool {
        matches!(self.body, Body::Inline(_))
    }

    /// The body as [`Bytes`]: the same block if it is shared, a copy if it is inline.
    pub fn into_bytes(self) -> Bytes {
        match self.body {
            Body::Inline(inline) => Bytes::copy_from_slice(inline.as_slice()),
            Body::Shared(shared) => shared.bytes,
        }
    }

    /// Like [`into_bytes`](Frame::into_bytes), without consuming the frame.
    pub fn to_bytes(&self) -> Bytes {
        match &self.body {
            Body::Inline(inline) => Bytes::copy_from_slice(inline.as_slice()),
            Body::Shared(shared) => shared.bytes.clone(),
        }
    }
}

impl Inline {
    #[inline]
    fn as_slice(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

impl Default for Frame {
    fn default() -> Frame {
        Frame::new()
    }
}

impl Deref for Frame {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        self.as_slice()
    }
}

impl AsRef<[u8]> for Frame {
    #[inline]
    fn as_ref(&self) -> &[u8] {
        self.as_slice()
    }
}

/// Compares body, `more` flag and kind, and not where the body is stored.
impl PartialEq for Frame {
    fn eq(&self, other: &Frame) -> bool {
        self.kind() == other.kind()
            && self.more() == other.more()
            && self.as_slice() == other.as_slice()
    }
}

impl Eq for Frame {}

impl fmt::Debug for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A log line must not grow with the messages of a peer.
        const SHOWN: usize = 32;
        let shown = &self[..self.len().min(SHOWN)];
        write!(f, "Frame({:?}, \"{}\"", self.kind(), shown.escape_ascii())?;
        if self.len() > SHOWN {
            write!(f, "... {} bytes", self.len())?;
        }
        f.write_str(if self.more() { ", more)" } else { ")" })
    }
}

impl From<&[u8]> for Frame {
    #[inline]
    fn from(body: &[u8]) -> Frame {
        Frame::copy_from(body)
    }
}

impl<const N: usize> From<&[u8; N]> for Frame {
    fn from(body: &[u8; N]) -> Frame {
        Frame::copy_from(body)
    }
}

impl From<&str> for Frame {
    fn from(body: &str) -> Frame {
        Frame::copy_from(body.as_bytes())
    }
}

impl From<Vec<u8>> for Frame {
    fn from(body: Vec<u8>) -> Frame {
        if body.len() > INLINE_MAX {
            return Frame::shared(Bytes::from(body));
        }
        Frame::copy_from(&body)
    }
}

impl From<String> for Frame {
    fn from(body: String) -> Frame {
        Frame::from(body.into_bytes())
    }
}

impl From<Bytes> for Frame {
    fn from(body: Bytes) -> Frame {
        Frame::from_bytes(body)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_72_bytes_and_so_is_an_optional_one() {
        assert_eq!(size_of::<Frame>(), 72);
        assert_eq!(size_of::<Option<Frame>>(), 72);
    }

    #[test]
    fn bodies_are_inline_up_to_the_limit() {
        for len in [0, 1, INLINE_MAX - 1, INLINE_MAX, INLINE_MAX + 1, 1000] {
            let body = vec![7; len];
            for frame in [
                Frame::copy_from(&body),
                Frame::from_bytes(Bytes::from(body.clone())),
                Frame::from(body.clone()),
            ] {
                assert_eq!(frame.is_inline(), len <= INLINE_MAX);
                assert_eq!(frame.len(), len);
                assert_eq!(frame.is_empty(), len == 0);
                assert_eq!(frame.as_slice(), &body[..]);
                assert_eq!(frame.to_bytes(), body);
                assert_eq!(frame.into_bytes(), body);
            }
        }
    }

    #[test]
    fn large_bodies_are_shared_not_copied() {
        let body = Bytes::from(vec![1; 100]);
        let frame = Frame::from_bytes(body.clone());
        assert_eq!(frame.as_ptr(), body.as_ptr());
        assert_eq!(frame.clone().into_bytes().as_ptr(), body.as_ptr());
        assert_eq!(frame.to_bytes().as_ptr(), body.as_ptr());
    }

    #[test]
    fn flags_and_kind_do_not_disturb_each_other() {
        for body in [&[1u8; 3][..], &[1u8; 100][..]] {
            let mut frame = Frame::copy_from(body);
            for kind in [
                FrameKind::Command,
                FrameKind::Subscribe,
                FrameKind::Cancel,
                FrameKind::Join,
                FrameKind::Leave,
                FrameKind::Data,
            ] {
                frame.set_more(true);
                frame.set_kind(kind);
                assert!(frame.more());
                assert_eq!(frame.kind(), kind);
                frame.set_more(false);
                assert!(!frame.more());
                assert_eq!(frame.kind(), kind);
                assert_eq!(&frame[..], body);
            }
        }
    }

    #[test]
    fn equality_looks_at_body_more_and_kind() {
        let frame = Frame::from("a");
        let mut more = frame.clone();
        more.set_more(true);
        assert_eq!(frame, Frame::from(b"a"));
        assert_ne!(frame, more);
        assert_ne!(frame, Frame::with_kind(FrameKind::Subscribe, b"a"));
        assert_ne!(frame, Frame::from("b"));
    }

    #[test]
    fn debug_is_short() {
        assert_eq!(format!("{:?}", Frame::from("hi")), "Frame(Data, \"hi\")");
        let long = format!("{:?}", Frame::from(vec![0; 1 << 20]));
        assert!(long.ends_with("... 1048576 bytes)"), "{long}");
        assert!(long.len() < 200);
    }
}
