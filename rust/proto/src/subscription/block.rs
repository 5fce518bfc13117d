//! The contents of a tree node: sorted texts in one allocation.

use std::ops::Range;

/// The bytes of an entry in addition to its text: its head, its number, and the end of its text.
pub(super) const ENTRY: usize = 10;

/// The number of heads in a cache line.
const LINE: usize = 16;

/// A sorted list of texts with a number each. No text begins with another one.
///
/// It has four consecutive sections: the first four bytes of each text as a number (its head), the numbers, the ends of
/// the texts, and the texts. A search compares heads, sixteen per cache line and several at once, and reads only texts
/// with a matching head.
#[derive(Default)]
pub(super) struct Block {
    bytes: Vec<u8>,
    len: u16,
}

/// The offsets of the sections after the heads in a block with this number of entries.
struct Sections {
    numbers: usize,
    ends: usize,
    texts: usize,
}

impl Sections {
    fn of(len: usize) -> Sections {
        Sections {
            numbers: 4 * len,
            ends: 8 * len,
            texts: ENTRY * len,
        }
    }
}

impl Block {
    /// A block of these entries, which are in order.
    pub(super) fn new<'a>(entries: impl Iterator<Item = (&'a [u8], u32)> + Clone) -> Block {
        let (mut len, mut size) = (0, 0);
        for (text, _) in entries.clone() {
            (len, size) = (len + 1, size + ENTRY + text.len());
        }
        let mut bytes = Vec::with_capacity(size);
        for (text, _) in entries.clone() {
            bytes.extend_from_slice(&head(text).to_le_bytes());
        }
        for (_, number) in entries.clone() {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        let mut end = 0;
        for (text, _) in entries.clone() {
            end += text.len();
            bytes.extend_from_slice(&narrow(end).to_le_bytes());
        }
        for (text, _) in entries {
            bytes.extend_from_slice(text);
        }
        let len = narrow(len);
        Block { bytes, len }
    }

    /// Number of entries.
    #[inline]
    pub(super) fn len(&self) -> usize {
        usize::from(self.len)
    }

    /// Bytes of all entries.
    pub(super) fn size(&self) -> usize {
        self.bytes.len()
    }

    #[inline]
    fn heads(&self) -> &[[u8; 4]] {
        self.bytes[..4 * self.len()].as_chunks().0
    }

    /// The number of a text.
    #[inline]
    pub(super) fn number(&self, at: usize) -> u32 {
        let (numbers, _) = self.bytes[4 * self.len()..8 * self.len()].as_chunks();
        u32::from_le_bytes(numbers[at])
    }

    /// All numbers, in the order of the texts.
    pub(super) fn numbers(&self) -> impl Iterator<Item = u32> {
        let (numbers, _) = self.bytes[4 * self.len()..8 * self.len()].as_chunks();
        numbers.iter().map(|number| u32::from_le_bytes(*number))
    }

    /// Replaces the number of a text.
    pub(super) fn set_number(&mut self, at: usize, number: u32) {
        let start = 4 * (self.len() + at);
        self.bytes[start..start + 4].copy_from_slice(&number.to_le_bytes());
    }

    /// The offset of a text among the texts. An index after the last one gives the end.
    #[inline]
    fn start(&self, at: usize) -> usize {
        let Sections { ends, texts, .. } = Sections::of(self.len());
        let (ends, _) = self.bytes[ends..texts].as_chunks();
        match at.checked_sub(1) {
            Some(before) => usize::from(u16::from_le_bytes(ends[before])),
            None => 0,
        }
    }

    /// A text.
    #[inline]
    pub(super) fn text(&self, at: usize) -> &[u8] {
        &self.bytes[Sections::of(self.len()).texts..][self.start(at)..self.start(at + 1)]
    }

    /// All entries.
    pub(super) fn entries(&self) -> impl Iterator<Item = (&[u8], u32)> + Clone {
        (0..self.len()).map(|at| (self.text(at), self.number(at)))
    }

    /// The first byte of a text that is not empty.
    pub(super) fn first_byte(&self, at: usize) -> u8 {
        self.bytes[4 * at + 3] // the highest byte of its head
    }

    /// How many texts sort before this one.
    #[inline]
    pub(super) fn before(&self, text: &[u8]) -> usize {
        let key = head(text);
        let heads = self.heads();
        // Cache line by cache line first, because these loads do not depend on each other.
        let (lines, _) = heads.as_chunks::<LINE>();
        let below = |line: &&[[u8; 4]; LINE]| u32::from_le_bytes(line[LINE - 1]) < key;
        let mut at = LINE * lines.iter().take_while(below).count();
        let line = &heads[at..heads.len().min(at + LINE)];
        let lower = line
            .iter()
            .map(|head| u32::from(u32::from_le_bytes(*head) < key));
        at += lower.sum::<u32>() as usize;
        let mut end = at;
        while heads.get(end) == Some(&key.to_le_bytes()) {
            end += 1;
        }
        // Compare the texts if the heads are equal.
        while at < end {
            let middle = usize::midpoint(at, end);
            if self.text(middle) < text {
                at = middle + 1;
            } else {
                end = middle;
            }
        }
        at
    }

    /// The only entry with whose text `text` begins, if there is one, and the length of that text. `before` is the
    /// number of texts that sort before it. Any entry between a text and one that begins with it would begin with it,
    /// too.
    #[inline]
    pub(super) fn prefix(&self, before: usize, text: &[u8]) -> Option<(usize, usize)> {
        if let Some(at) = before.checked_sub(1) {
            let prefix = self.text(at);
            let differing = head(text) ^ u32::from_le_bytes(self.heads()[at]);
            // The head of a short text is the whole text.
            let begins = match prefix.len() {
                len @ 1..=4 => len <= text.len() && differing >> (32 - 8 * len) == 0,
                _ => text.starts_with(prefix),
            };
            if begins {
                return Some((at, prefix.len()));
            }
        }
        let whole = before < self.len() && self.text(before) == text;
        whole.then_some((before, text.len()))
    }

    /// A copy with one entry in place of several.
    pub(super) fn replaced(&self, range: Range<usize>, text: &[u8], number: u32) -> Block {
        let old = Sections::of(self.len());
        let start = self.start(range.start);
        let end = self.start(range.end);
        let texts = &self.bytes[old.texts..];
        let len = self.len() + 1 - range.len();
        let size = ENTRY * len + texts.len() - (end - start) + text.len();
        let mut bytes = Vec::with_capacity(size);
        let mut put = |section: &[u8], width: usize, new: &[u8]| {
            bytes.extend_from_slice(&section[..width * range.start]);
            bytes.extend_from_slice(new);
            bytes.extend_from_slice(&section[width * range.end..]);
        };
        put(&self.bytes[..old.numbers], 4, &head(text).to_le_bytes());
        put(&self.bytes[old.numbers..old.ends], 4, &number.to_le_bytes());
        put(
            &self.bytes[old.ends..old.texts],
            2,
            &narrow(start + text.len()).to_le_bytes(),
        );
        let by = narrow(text.len()).wrapping_sub(narrow(end - start));
        let new = Sections::of(len);
        shift(&mut bytes[new.ends + 2 * (range.start + 1)..], by);
        bytes.extend_from_slice(&texts[..start]);
        bytes.extend_from_slice(text);
        bytes.extend_from_slice(&texts[end..]);
        let len = narrow(len);
        Block { bytes, len }
    }

    /// The entries whose texts begin with `text`, where `before` is the number of texts that sort before it.
    pub(super) fn extensions(&self, before: usize, text: &[u8]) -> Range<usize> {
        let extends = |at: &usize| self.text(*at).starts_with(text);
        before..before + (before..self.len()).take_while(extends).count()
    }

    /// The entries with the same head as this one, which a search must distinguish by their texts.
    pub(super) fn alike(&self, at: usize) -> Range<usize> {
        let heads = self.heads();
        let same = |head: &&[u8; 4]| **head == heads[at];
        let below = heads[..at].iter().rev().take_while(same).count();
        let above = heads[at..].iter().take_while(same).count();
        at - below..at + above
    }

    /// Inserts an entry at `at`, its sorted position.
    pub(super) fn insert(&mut self, at: usize, text: &[u8], number: u32) {
        let (old, new) = (Sections::of(self.len()), Sections::of(self.len() + 1));
        let start = self.start(at);
        let size = self.size();
        // The last end is the largest.
        narrow(size - old.texts + text.len());
        let added = ENTRY + text.len();
        if self.bytes.capacity() < size + added {
            // There are many blocks, so leaving half of each empty would waste too much.
            self.bytes.reserve_exact(added + size / 8);
        }
        self.bytes.resize(size + added, 0);
        let bytes = &mut self.bytes[..];

        // From the end, so that nothing is overwritten before it was moved.
        bytes.copy_within(old.texts + start..size, new.texts + start + text.len());
        bytes.copy_within(old.texts..old.texts + start, new.texts);
        bytes[new.texts + start..][..text.len()].copy_from_slice(text);

        bytes.copy_within(old.ends + 2 * at..old.texts, new.ends + 2 * (at + 1));
        bytes.copy_within(old.ends..old.ends + 2 * at, new.ends);
        bytes[new.ends + 2 * at..][..2].copy_from_slice(&narrow(start).to_le_bytes());
        shift(&mut bytes[new.ends + 2 * at..new.texts], narrow(text.len()));

        bytes.copy_within(old.numbers + 4 * at..old.ends, new.numbers + 4 * (at + 1));
        bytes.copy_within(old.numbers..old.numbers + 4 * at, new.numbers);
        bytes[new.numbers + 4 * at..][..4].copy_from_slice(&number.to_le_bytes());

        bytes.copy_within(4 * at..old.numbers, 4 * (at + 1));
        bytes[4 * at..][..4].copy_from_slice(&head(text).to_le_bytes());
        self.len += 1;
    }

    /// Removes an entry.
    pub(super) fn remove(&mut self, at: usize) {
        let (old, new) = (Sections::of(self.len()), Sections::of(self.len() - 1));
        let (start, end) = (self.start(at), self.start(at + 1));
        let size = self.size();
        let bytes = &mut self.bytes[..];

        bytes.copy_within(4 * (at + 1)..old.numbers, 4 * at);

        bytes.copy_within(old.numbers..old.numbers + 4 * at, new.numbers);
        bytes.copy_within(old.numbers + 4 * (at + 1)..old.ends, new.numbers + 4 * at);

        bytes.copy_within(old.ends..old.ends + 2 * at, new.ends);
        bytes.copy_within(old.ends + 2 * (at + 1)..old.texts, new.ends + 2 * at);
        let back = narrow(end - start).wrapping_neg();
        shift(&mut bytes[new.ends + 2 * at..new.texts], back);

        bytes.copy_within(old.texts..old.texts + start, new.texts);
        bytes.copy_within(old.texts + end..size, new.texts + start);

        self.bytes.truncate(size - ENTRY - (end - start));
        self.len -= 1;
        if self.bytes.capacity() > 2 * self.size() + 64 {
            self.bytes.shrink_to(self.size() + self.size() / 8);
        }
    }
}

/// The first four bytes of a text as a number that sorts in the same order. Shorter texts are padded with zeros, which
/// cannot change the order of two texts of which neither begins with the other.
#[inline]
fn head(text: &[u8]) -> u32 {
    match text.first_chunk() {
        Some(head) => u32::from_be_bytes(*head),
        None => {
            let mut head = [0; 4];
            head[..text.len()].copy_from_slice(text);
            u32::from_be_bytes(head)
        }
    }
}

fn shift(ends: &mut [u8], by: u16) {
    let (ends, _) = ends.as_chunks_mut();
    for end in ends {
        *end = u16::from_le_bytes(*end).wrapping_add(by).to_le_bytes();
    }
}

fn narrow(size: usize) -> u16 {
    u16::try_from(size).expect("the tree splits a block long before it is so large")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn check(block: &Block, model: &BTreeMap<Vec<u8>, u32>) {
        let expected = model.iter().map(|(text, &number)| (&text[..], number));
        assert!(block.entries().eq(expected));
        assert!(block.numbers().eq(model.values().copied()));
        let heads = model.keys().map(|text| head(text).to_le_bytes());
        assert!(block.heads().iter().copied().eq(heads));
        assert_eq!(block.size(), Block::new(block.entries()).size());
        assert_eq!(Block::new(block.entries()).bytes, block.bytes);
    }

    /// Words of two letters and an end, so none begins with another, come and go in a scrambled order.
    #[test]
    fn agrees_with_a_sorted_map() {
        let word = |n: u32| -> Vec<u8> {
            let letters = (0..n % 7).map(|bit| b'a' + (n >> bit & 1) as u8);
            letters.chain([0]).collect()
        };
        let (mut block, mut model) = (Block::default(), BTreeMap::new());
        for step in 0..3000_u32 {
            let word = word(step * 7919 % 1009);
            let at = block.before(&word);
            assert_eq!(at, model.range(..word.clone()).count());
            match model.remove(&word) {
                Some(_) => {
                    assert_eq!(block.prefix(at, &word), Some((at, word.len())));
                    block.remove(at);
                }
                None => {
                    assert_eq!(block.prefix(at, &word), None);
                    let other = block.replaced(at..at, &word, step);
                    block.insert(at, &word, step);
                    assert_eq!(other.bytes, block.bytes);
                    model.insert(word.clone(), step);
                    block.set_number(at, step);
                    let longer = [&word[..], b"more"].concat();
                    assert_eq!(
                        block.prefix(block.before(&longer), &longer),
                        Some((at, word.len()))
                    );
                }
            }
            check(&block, &model);
            let shorter = &word[..word.len() / 2];
            let before = block.before(shorter);
            let extending = model
                .keys()
                .filter(|word| word.starts_with(shorter))
                .count();
            assert_eq!(
                block.extensions(before, shorter),
                before..before + extending
            );
        }
    }

    #[test]
    fn zeros_are_not_taken_for_the_end_of_a_text() {
        let mut block = Block::default();
        for text in [&b"a\0\0"[..], b"a\0b", b"b\0\0\0\0", b"b\0\0\0\x01"] {
            block.insert(block.before(text), text, 1);
        }
        for (text, found) in [
            (&b"a"[..], None),
            (b"a\0", None),
            (b"a\0\0", Some(0)),
            (b"a\0\0\0", Some(0)),
            (b"a\0\x01", None),
            (b"b\0\0\0", None),
            (b"b\0\0\0\x01\0", Some(3)),
        ] {
            let prefix = block.prefix(block.before(text), text);
            assert_eq!(prefix.map(|(at, _)| at), found, "{text:?}");
        }
        assert_eq!(block.extensions(0, b"a"), 0..2);
        assert_eq!(block.extensions(2, b"b\0\0\0"), 2..4);
    }
}
