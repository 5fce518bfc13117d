//! Z85, the text form of keys: 4 bytes as 5 printable characters that need no escaping in source code.
//!
//! ZeroMQ RFC 32. Errors contain positions and never the text, which may be a secret key.

/// RFC 32, "Formal Specification": the digits 0 to 84 in order.
const DIGITS: &[u8; 85] =
    b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#";

/// The value of every character; [`NONE`] for those that are not digits.
const VALUES: [u8; 256] = {
    let mut values = [NONE; 256];
    let mut value = 0;
    while value < DIGITS.len() {
        values[DIGITS[value] as usize] = value as u8;
        value += 1;
    }
    values
};

const NONE: u8 = u8::MAX;

/// The reason why something cannot be converted to Z85 or back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Z85Error {
    /// The number of bytes is not a multiple of 4.
    #[error("cannot encode {len} bytes as Z85: expected a multiple of 4")]
    ByteCount {
        /// The number of bytes.
        len: usize,
    },
    /// The number of characters is not a multiple of 5.
    #[error("cannot decode {len} characters of Z85: expected a multiple of 5 (a key has 40)")]
    CharacterCount {
        /// The number of characters.
        len: usize,
    },
    /// A character that is not a digit of Z85.
    #[error("the character at {at} is no digit of Z85")]
    NotADigit {
        /// Its position, from 0.
        at: usize,
    },
    /// Five digits whose value does not fit 4 bytes.
    #[error("the five characters from {at} stand for more than 4 bytes can hold")]
    TooLarge {
        /// Their position, from 0.
        at: usize,
    },
}

/// Encodes bytes, whose number must be a multiple of 4.
///
/// ```
/// use zeroxide_proto::z85;
///
/// let text = z85::encode(&[0x86, 0x4F, 0xD2, 0x6F, 0xB5, 0x59, 0xF7, 0x5B])?;
/// assert_eq!(text, "HelloWorld");
/// # Ok::<(), z85::Z85Error>(())
/// ```
pub fn encode(bytes: &[u8]) -> Result<String, Z85Error> {
    let (groups, rest) = bytes.as_chunks::<4>();
    if !rest.is_empty() {
        return Err(Z85Error::ByteCount { len: bytes.len() });
    }
    let mut text = String::with_capacity(groups.len() * 5);
    for group in groups {
        let value = u32::from_be_bytes(*group);
        for place in (0..5).rev() {
            let digit = value / 85_u32.pow(place) % 85;
            text.push(char::from(DIGITS[digit as usize]));
        }
    }
    Ok(text)
}

/// Decodes a text, which must be complete groups of 5 digits.
pub fn decode(text: &[u8]) -> Result<Vec<u8>, Z85Error> {
    let (groups, rest) = text.as_chunks::<5>();
    if !rest.is_empty() {
        return Err(Z85Error::CharacterCount { len: text.len() });
    }
    let mut bytes = Vec::with_capacity(groups.len() * 4);
    for (index, group) in groups.iter().enumerate() {
        let mut value = 0;
        for (place, character) in group.iter().enumerate() {
            let digit = VALUES[usize::from(*character)];
            if digit == NONE {
                let at = index * 5 + place;
                return Err(Z85Error::NotADigit { at });
            }
            value = value * 85 + u64::from(digit);
        }
        let value = u32::try_from(value).map_err(|_| Z85Error::TooLarge { at: index * 5 })?;
        bytes.extend_from_slice(&value.to_be_bytes());
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The test case of RFC 32 and the key that its reference code encodes; then the extremes.
    #[test]
    fn known_answers() {
        let hello = [0x86, 0x4F, 0xD2, 0x6F, 0xB5, 0x59, 0xF7, 0x5B];
        let key = [
            0x8E, 0x0B, 0xDD, 0x69, 0x76, 0x28, 0xB9, 0x1D, 0x8F, 0x24, 0x55, 0x87, 0xEE, 0x95,
            0xC5, 0xB0, 0x4D, 0x48, 0x96, 0x3F, 0x79, 0x25, 0x98, 0x77, 0xB4, 0x9C, 0xD9, 0x06,
            0x3A, 0xEA, 0xD3, 0xB7,
        ];
        for (bytes, text) in [
            (&[][..], ""),
            (&hello, "HelloWorld"),
            (&key, "JTKVSB%%)wK0E.X)V>+}o?pNmC{O&4W4b!Ni{Lh6"),
            (&[0; 4], "00000"),
            (&[0xFF; 4], "%nSc0"),
        ] {
            assert_eq!(encode(bytes).as_deref(), Ok(text));
            assert_eq!(decode(text.as_bytes()).as_deref(), Ok(bytes));
        }
    }

    #[test]
    fn text_that_is_not_z85_is_refused() {
        assert_eq!(encode(&[0; 7]), Err(Z85Error::ByteCount { len: 7 }));
        for (text, error) in [
            (&b"0000"[..], Z85Error::CharacterCount { len: 4 }),
            (b"HelloWorld\0", Z85Error::CharacterCount { len: 11 }),
            (b"HelloW rld", Z85Error::NotADigit { at: 6 }),
            (b"Hell\xC3World", Z85Error::NotADigit { at: 4 }),
            (b"00000\"0000", Z85Error::NotADigit { at: 5 }),
            (b"00000%nSc1", Z85Error::TooLarge { at: 5 }),
            (b"#####", Z85Error::TooLarge { at: 0 }),
        ] {
            assert_eq!(decode(text), Err(error));
        }
    }

    proptest! {
        #[test]
        fn decoding_undoes_encoding(groups in prop::collection::vec(any::<[u8; 4]>(), 0..20)) {
            let bytes = groups.concat();
            let text = encode(&bytes).unwrap();
            prop_assert_eq!(text.len(), bytes.len() / 4 * 5);
            prop_assert_eq!(decode(text.as_bytes()), Ok(bytes));
        }

        #[test]
        fn encoding_undoes_decoding(text in prop::collection::vec(33..126_u8, 0..30)) {
            if let Ok(bytes) = decode(&text) {
                prop_assert_eq!(encode(&bytes).unwrap().into_bytes(), text);
            }
        }
    }
}
