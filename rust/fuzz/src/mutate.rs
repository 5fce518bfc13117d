//! Random changes of inputs.

/// A generator of random numbers that its seed determines: xorshift64*.
pub struct Chance(u64);

impl Chance {
    /// The generator of a seed.
    pub fn new(seed: u64) -> Chance {
        Chance(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// The next number.
    pub fn number(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number below `end`; 0 if there is none.
    pub fn below(&mut self, end: usize) -> usize {
        ((u128::from(self.number()) * end as u128) >> 64) as usize
    }

    fn byte(&mut self) -> u8 {
        self.number() as u8
    }
}

/// What mutations take from elsewhere.
pub struct Material<'a> {
    /// Another input of the corpus.
    pub other: &'a [u8],
    /// Words of the target.
    pub words: &'a [&'a [u8]],
    /// Pairs of unequal numbers that were compared while the input ran.
    pub compared: &'a [(u64, u64)],
    /// The maximum length.
    pub longest: usize,
}

/// Lengths and limits where code often changes its mind.
const EDGES: [u64; 20] = [
    0,
    1,
    2,
    7,
    8,
    63,
    64,
    127,
    128,
    254,
    255,
    256,
    1000,
    0x7fff,
    0xffff,
    0x10000,
    0x7fff_ffff,
    0xffff_ffff,
    1 << 63,
    u64::MAX,
];

/// Changes an input in one to eight random ways.
pub fn mutate(input: &mut Vec<u8>, material: &Material<'_>, chance: &mut Chance) {
    let changes = 1 << chance.below(4);
    for _ in 0..changes {
        change(input, material, chance);
        input.truncate(material.longest);
    }
}

fn change(input: &mut Vec<u8>, material: &Material<'_>, chance: &mut Chance) {
    let at = chance.below(input.len());
    match chance.below(13) {
        _ if input.is_empty() => input.push(chance.byte()),
        0 => input[at] ^= 1 << chance.below(8),
        1 => input[at] = chance.byte(),
        2 => {
            let delta = 1 + chance.below(35) as u64;
            let up = chance.below(2) == 0;
            let shift = move |value: u64| match up {
                true => value.wrapping_add(delta),
                false => value.wrapping_sub(delta),
            };
            number(input, at, chance, shift);
        }
        3 => {
            let edge = EDGES[chance.below(EDGES.len())];
            number(input, at, chance, |_| edge);
        }
        4 => {
            // A whole number of bytes of the rest, which a length before it may be about.
            let rest = (input.len() - at) as u64;
            number(input, at, chance, |_| rest.saturating_sub(1));
        }
        5 => {
            let (from, to) = range(input.len(), chance);
            input.drain(from..to);
        }
        6 => {
            // A few times, or so often that recursion on the number of items would show.
            let (from, to) = range(input.len(), chance);
            let times = match chance.below(4) {
                0 => material.longest / (to - from).max(1),
                times => times,
            };
            let piece = input[from..to].repeat(times.min(1024));
            let at = if chance.below(2) == 0 { to } else { at };
            insert(input, at, &piece);
        }
        7 => {
            let count = 1 + chance.below(16);
            let piece: Vec<u8> = (0..count).map(|_| chance.byte()).collect();
            insert(input, at, &piece);
        }
        8 => {
            // A run of one byte, sometimes a long one.
            let count = 1 << chance.below(13);
            let piece = vec![chance.byte(); count];
            insert(input, at, &piece);
        }
        9 => {
            let (from, to) = range(material.other.len(), chance);
            insert(input, at, &material.other[from..to]);
        }
        10 => {
            let (from, to) = range(material.other.len(), chance);
            let piece = &material.other[from..to];
            let count = piece.len().min(input.len() - at);
            input[at..at + count].copy_from_slice(&piece[..count]);
        }
        11 if !material.words.is_empty() => {
            let word = material.words[chance.below(material.words.len())];
            match chance.below(2) {
                0 => insert(input, at, word),
                _ => {
                    let count = word.len().min(input.len() - at);
                    input[at..at + count].copy_from_slice(&word[..count]);
                }
            }
        }
        _ if !material.compared.is_empty() => {
            let (left, right) = material.compared[chance.below(material.compared.len())];
            match chance.below(2) {
                0 => replace(input, left, right, chance),
                _ => replace(input, right, left, chance),
            }
        }
        _ => input[at] = chance.byte(),
    }
}

fn insert(input: &mut Vec<u8>, at: usize, piece: &[u8]) {
    input.splice(at..at, piece.iter().copied());
}

/// A range, which is short more often than long.
fn range(length: usize, chance: &mut Chance) -> (usize, usize) {
    let from = chance.below(length);
    let most = (length - from).min(1 << chance.below(12));
    (from, from + chance.below(most + 1))
}

/// Changes a number of one, two, four or eight bytes, in either order.
fn number(input: &mut [u8], at: usize, chance: &mut Chance, new: impl Fn(u64) -> u64) {
    let size = (1 << chance.below(4)).min(input.len() - at);
    let place = &mut input[at..at + size];
    let is_big = chance.below(2) == 0;
    if is_big {
        place.reverse();
    }
    let mut bytes = [0; 8];
    bytes[..size].copy_from_slice(place);
    let value = new(u64::from_le_bytes(bytes));
    place.copy_from_slice(&value.to_le_bytes()[..size]);
    if is_big {
        place.reverse();
    }
}

/// Replaces one occurrence of a number by another one, as the code that compared them would see it.
fn replace(input: &mut [u8], old: u64, new: u64, chance: &mut Chance) {
    let size = match old.max(new) {
        0..=0xff => 1 << chance.below(4),
        0x100..=0xffff => 2 << chance.below(3),
        0x1_0000..=0xffff_ffff => 4 << chance.below(2),
        _ => 8,
    };
    let (mut old, mut new) = (old.to_le_bytes(), new.to_le_bytes());
    let (old, new) = (&mut old[..size], &mut new[..size]);
    if chance.below(2) == 0 {
        old.reverse();
        new.reverse();
    }
    let found: Vec<usize> = input
        .windows(size)
        .enumerate()
        .filter(|(_, window)| *window == old)
        .map(|(at, _)| at)
        .collect();
    if !found.is_empty() {
        let at = found[chance.below(found.len())];
        input[at..at + size].copy_from_slice(new);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_determines_the_changes_and_the_length_is_bounded() {
        let material = Material {
            other: b"another input",
            words: &[b"word"],
            compared: &[(5, 7), (0x1234_5678, 9)],
            longest: 300,
        };
        let changed = |seed| {
            let (mut chance, mut input) = (Chance::new(seed), b"an input".to_vec());
            for _ in 0..1000 {
                mutate(&mut input, &material, &mut chance);
                assert!(input.len() <= 300);
            }
            input
        };
        assert_eq!(changed(1), changed(1));
        assert_ne!(changed(1), changed(2));
    }

    #[test]
    fn a_compared_number_is_replaced_in_either_order() {
        let mut found = Vec::new();
        for seed in 0..100 {
            let mut input = b"\x12\x34..\x34\x12".to_vec();
            replace(&mut input, 0x1234, 0x4321, &mut Chance::new(seed));
            found.push(input);
        }
        assert!(found.contains(&b"\x43\x21..\x34\x12".to_vec()));
        assert!(found.contains(&b"\x12\x34..\x21\x43".to_vec()));
    }
}
