//! Strings, numbers and lists as ZRE and the gossip protocol write them.

/// The longest string with a length of one byte.
pub(crate) const SHORT_MAX: usize = 255;

/// Reads the fields of a frame in order. `None` means that the frame ends in the middle of a field.
pub(super) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(super) fn new(frame: &'a [u8]) -> Reader<'a> {
        Reader { rest: frame }
    }

    pub(super) fn u8(&mut self) -> Option<u8> {
        self.array().map(u8::from_be_bytes)
    }

    pub(super) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_be_bytes)
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    /// The bytes of a string of up to [`SHORT_MAX`] bytes.
    pub(super) fn short(&mut self) -> Option<&'a [u8]> {
        let length = self.u8()?;
        self.take(length.into())
    }

    /// The bytes of a string with a length of four bytes.
    pub(super) fn long(&mut self) -> Option<&'a [u8]> {
        let length = self.u32()?;
        self.take(usize::try_from(length).ok()?)
    }

    /// The number of items that follow; `None` if there are more than `most`.
    pub(super) fn count(&mut self, most: usize) -> Option<usize> {
        let count = usize::try_from(self.u32()?).ok()?;
        (count <= most).then_some(count)
    }

    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }
}

/// Text of a peer. Bytes that are not UTF-8 become replacement characters.
pub(super) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Appends a string after its length in one byte. Callers pass strings that fit, and one that does not is cut.
pub(super) fn put_short(frame: &mut Vec<u8>, bytes: &[u8]) {
    let bytes = &bytes[..bytes.len().min(SHORT_MAX)];
    frame.push(bytes.len() as u8);
    frame.extend_from_slice(bytes);
}

/// Appends a string after its length in four bytes.
pub(super) fn put_long(frame: &mut Vec<u8>, bytes: &[u8]) {
    put_count(frame, bytes.len());
    frame.extend_from_slice(bytes);
}

/// Appends the number of items that follow.
pub(super) fn put_count(frame: &mut Vec<u8>, count: usize) {
    frame.extend_from_slice(&(count as u32).to_be_bytes());
}
