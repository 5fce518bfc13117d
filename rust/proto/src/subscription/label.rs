//! The bytes on an edge of the tree.

/// Labels up to this long live inside the node.
const INLINE: usize = 30;

/// The longest label; longer topics become chains of nodes.
///
/// Splitting or joining a label copies it. Were labels as long as topics, a peer that owns one huge
/// topic could have all of it copied again and again by a few bytes each time.
pub(super) const LONGEST: usize = 4096;

/// An immutable string of at most [`LONGEST`] bytes, short ones without an allocation.
pub(super) enum Label {
    Inline { len: u8, bytes: [u8; INLINE] },
    Heap(Box<[u8]>),
}

impl Label {
    pub(super) fn as_slice(&self) -> &[u8] {
        match self {
            Label::Inline { len, bytes } => &bytes[..usize::from(*len)],
            Label::Heap(bytes) => bytes,
        }
    }

    /// Both, one after the other.
    pub(super) fn joined(head: &[u8], tail: &[u8]) -> Label {
        let total = head.len() + tail.len();
        if total > INLINE {
            return Label::Heap([head, tail].concat().into_boxed_slice());
        }
        let mut bytes = [0; INLINE];
        bytes[..head.len()].copy_from_slice(head);
        bytes[head.len()..total].copy_from_slice(tail);
        let len = total as u8; // at most INLINE
        Label::Inline { len, bytes }
    }
}

impl From<&[u8]> for Label {
    fn from(bytes: &[u8]) -> Label {
        Label::joined(bytes, &[])
    }
}

impl Default for Label {
    fn default() -> Label {
        Label::Inline {
            len: 0,
            bytes: [0; INLINE],
        }
    }
}

/// How many leading bytes two strings share.
pub(super) fn shared_prefix(a: &[u8], b: &[u8]) -> usize {
    if b.starts_with(a) {
        return a.len(); // the common case, and the fast one
    }
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}
