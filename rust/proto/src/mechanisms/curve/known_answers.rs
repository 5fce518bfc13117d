//! Results of NaCl and libsodium for the same keys and data.

use super::boxes::{self, BoxKey, BoxSeries, Nonce};
use super::keys::{self, KEY};
use fearless_simd::Level;

/// NaCl's own test keys: Bob's secret key, Alice's public key, their shared key, and a nonce.
const BOB: &str = "5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb";
const BOB_PUBLIC: &str = "de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f";
const ALICE_PUBLIC: &str = "8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a";
const AGREED: &str = "1b27556473e985d462cd51197a9a46c76009549eac6474f206c4ee0844f68389";
const NONCE: &str = "69696ee955b62b73cd62bda875fc73d68219e0036b7a0b37";

/// NaCl's `tests/box.c`: plain, and in a box.
const PLAIN: &str = "be075fc53c81f2d5cf141316ebeb0c7b5228c52a4c62cbd44b66849b64244ffc
    e5ecbaaf33bd751a1ac728d45e6c61296cdc3c01233561f41db66cce314adb31
    0e3be8250c46f06dceea3a7fa1348057e2f6556ad6b1318a024a838f21af1fde
    048977eb48f59ffd4924ca1c60902e52f0a089bc76897040e082f93776384864
    5e0705";
const BOXED: &str = "f3ffc7703f9400e52a7dfb4b3d3305d9
    8e993b9f48681273c29650ba32fc76ce48332ea7164d96a4476fb8c531a1186a
    c0dfc17c98dce87b4da7f011ec48c97271d2c20f9b928fe2270d6fb863d51738
    b48eeee314a7cc8ab932164548e526ae90224368517acfeabd6bb3732bc0e9da
    99832b61ca01b6de56244a9e88d5f9b37973f622a43d14a6599b1f654cb45a74
    e355a5";

/// Boxes sealed by libsodium, by the size of their content: the tag, which depends on every byte, and up to eight bytes
/// of the end. The sizes are those at which other code takes over, and their neighbours.
#[rustfmt::skip]
const BOXES: &[(usize, &str, &str)] = &[
    (0, "2539121d8e234e652d651fa4c8cff880", ""),
    (1, "ca7328d4d4e4d11c6f15949ad66594b8", "30"),
    (15, "86a8a5428332053600b43421d4148bf1", "9735bd05e18d4c18"),
    (16, "f13fc3c0d89f5f76e80f7a34b5b0af97", "35bd05e18d4c18dc"),
    (31, "9e7286eba47df4fd4182c21758868e4e", "d1a4a68ae3914e85"),
    (32, "585dbf9ebf1950a2ab81efda1f5e18db", "a4a68ae3914e854f"),
    (33, "240ae10f9d1db33b1dbdd8ee7cbd848e", "a68ae3914e854fc5"),
    (63, "3c484324712d5d6d62b1a4ca39f1aabe", "97b23495ebf6347e"),
    (64, "c6da299d4e1668798c5b63fb8898af7b", "b23495ebf6347eb0"),
    (97, "324e8ab2a945e528527e1dd64010e70e", "4e46818ee4649d3d"),
    (128, "f0ba6fc2876d397033ac292cc70c82c3", "f156b00f5ee76069"),
    (129, "37c8f3272448aa6e5f7a281f871d2289", "56b00f5ee760693d"),
    (199, "4ddb01a335ef4d72ed4c126c74d565e7", "953883a79393d2e5"),
    (200, "b3a149f0449957a37b4b563f702d4712", "3883a79393d2e5ff"),
    (201, "61a2879c301dc3f5a397fee432de23cb", "83a79393d2e5ffe3"),
    (223, "e2f6913fe1ed6d33a0d0f8a11134511b", "7539b9485263a5d9"),
    (224, "c795194beb76e31c4fa31ace98fad7b3", "39b9485263a5d9eb"),
    (225, "59732b8f4d5ad58775b310ce177ea3ec", "b9485263a5d9eb8d"),
    (256, "a46a8091fa7f7d6f291723b86dd99695", "ec898c3d5d771474"),
    (383, "34209b5e74a11b8f9755684c66d3d4ce", "d186e3bb73fb8ead"),
    (384, "631eb0266f4fb504fa1bb099757ddeff", "86e3bb73fb8eadff"),
    (385, "17864539d0296bc6a4e96f684b5b77c4", "e3bb73fb8eadffe5"),
    (479, "7dcd89ac17362d09a9423466430ebeff", "5776de2239f37568"),
    (480, "182957bfc8c5ae005ce895b2f354d112", "76de2239f3756864"),
    (481, "91ebbe4aa2ecc3156943117f6d9d53ec", "de2239f37568645f"),
    (639, "958e443b8624f5aee80e8f0174522303", "7d97014b7a9d4b31"),
    (640, "3c6fe0d8af0d6a3583d2897581c90894", "97014b7a9d4b315d"),
    (641, "78bc66d170d03a12cacd5a7c1aabbd12", "014b7a9d4b315dca"),
    (735, "d13ac28b12752e1027524d313ea8f286", "99f9fcab12a0d2ab"),
    (736, "0039d7530d23c8858918957e4d52fcb7", "f9fcab12a0d2abff"),
    (737, "9a1c14555468daf951ca0e5fd70d1f0c", "fcab12a0d2abff5f"),
    (1247, "22933f8bd7fb21725b7f53787355a5aa", "b47c46e49a788932"),
    (1248, "13fbad30b52b0e47934d18c05bbb3a99", "7c46e49a7889329f"),
    (1249, "c9fe192a0b43a5a1f42b9e64d729e8f6", "46e49a7889329f2f"),
    (1024, "3e333f0f9e517479cee2919acaf81dfa", "7a63da3beefd70e6"),
    (2271, "5122780dbada7f1366b8a27cfad82db6", "7dfb6724dd136296"),
    (2272, "66f10c083ef5f2d26ac98e88a7c40c59", "fb6724dd1362965c"),
    (2273, "6bfbaa00e98470653e3bbdfde892e5de", "6724dd1362965c74"),
    (4096, "ac258970dab0638ac790c3108172742e", "89eb86fb9aa6ff7f"),
    (65536, "b93f33e26ae2d8edef171966834ee1d0", "98c631fac4fac49b"),
    (65537, "40f66e91f5f7d25e7bc106f1830dde06", "c631fac4fac49b06"),
    (100003, "fee3c92e6afaf9f4706b0d0f281a69d3", "86fd8e83e7253609"),
];

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u32> = text
        .chars()
        .filter_map(|digit| digit.to_digit(16))
        .collect();
    digits
        .chunks(2)
        .map(|pair| (pair[0] << 4 | pair[1]) as u8)
        .collect()
}

fn array<const SIZE: usize>(text: &str) -> [u8; SIZE] {
    hex(text).try_into().unwrap()
}

/// All levels that this processor supports.
fn levels() -> Vec<Level> {
    let best = Level::new();
    #[cfg(target_arch = "x86_64")]
    let lower = {
        use fearless_simd::Simd;
        [
            best.as_avx2().map(|lower| lower.level()),
            best.as_sse4_2().map(|lower| lower.level()),
            best.as_sse2().map(|lower| lower.level()),
        ]
    };
    #[cfg(not(target_arch = "x86_64"))]
    let lower: [Option<Level>; 0] = [];
    std::iter::once(best)
        .chain(lower.into_iter().flatten())
        .collect()
}

#[test]
fn keys_belong_together_and_agree_as_in_nacl() {
    assert_eq!(keys::public_key(&array(BOB)), array(BOB_PUBLIC));
    let agreed = keys::agree(&array(BOB), &array(ALICE_PUBLIC)).unwrap();
    assert_eq!(*agreed, array(AGREED));
}

/// With seven points of small order of the curve and its twist, as listed by libsodium, no secret key gives a shared
/// key.
#[test]
fn weak_keys_are_refused() {
    let weak = [
        "00".repeat(32),
        ["01", &"00".repeat(31)].concat(),
        "e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800".to_owned(),
        "5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157".to_owned(),
        ["ec", &"ff".repeat(30), "7f"].concat(),
        ["ed", &"ff".repeat(30), "7f"].concat(),
        ["ee", &"ff".repeat(30), "7f"].concat(),
    ];
    for key in weak {
        assert!(keys::agree(&array(BOB), &array(&key)).is_none(), "{key}");
    }
}

#[test]
fn boxes_are_nacls() {
    let (key, nonce) = (array(AGREED), array::<24>(NONCE));
    let nonce = Nonce::long(nonce.first_chunk().unwrap(), nonce.last_chunk().unwrap());
    let plain = hex(PLAIN);
    let (first, second) = plain.split_at(50);
    let sealed = boxes::seal(&key, &nonce, &[first, second]);
    assert_eq!(sealed, hex(BOXED));
    assert_eq!(*boxes::open(&key, &nonce, &sealed).unwrap(), plain);
}

#[test]
fn boxes_of_all_sizes_are_libsodiums_on_all_processors() {
    let nonce = array::<24>(NONCE);
    let number = *nonce.last_chunk().unwrap();
    for level in levels() {
        let prefix = nonce.first_chunk().unwrap();
        let key = BoxKey::with_level(level, &array(AGREED), prefix);
        for (size, tag, end) in BOXES {
            let plain: Vec<u8> = (0..*size).map(|at| (at * 7 + at / 251) as u8).collect();
            let mut data = plain.clone();
            let made = key.seal(number, &mut data);
            assert_eq!(made, array(tag), "{size} bytes, {level:?}");
            assert!(data.ends_with(&hex(end)), "{size} bytes, {level:?}");
            assert!(key.open(number, &made, &mut data));
            assert_eq!(data, plain, "{size} bytes, {level:?}");
        }
    }
}

#[test]
fn boxes_in_a_series_are_like_any_others() {
    for level in levels() {
        let key = || BoxKey::with_level(level, &[1; KEY], &[2; 16]);
        for first in [1, 6, (1 << 32) - 3, u64::MAX - 5] {
            let (mut sealing, mut opening) = (BoxSeries::new(key()), BoxSeries::new(key()));
            let sizes = [0, 64, 96, 97, 128, 129, 352, 353, 700, 1500, 5000];
            for (number, size) in (first..=u64::MAX).zip(sizes) {
                let plain = vec![number as u8; size];
                let (mut alone, mut data) = (plain.clone(), plain.clone());
                let tag = key().seal(number.to_be_bytes(), &mut alone);
                assert_eq!(sealing.seal(number, &mut data), tag, "{number}, {level:?}");
                assert_eq!(data, alone, "{number}, {level:?}");
                assert!(!opening.open(number, &[0; 16], &mut data));
                assert!(opening.open(number, &tag, &mut data));
                assert_eq!(data, plain);
            }
        }
    }
}

#[test]
fn altered_boxes_do_not_open_and_stay_as_they_are() {
    let key = BoxKey::new(&[1; KEY], &[2; 16]);
    for size in [0, 1, 40, 420] {
        let mut data = vec![3; size];
        let tag = key.seal([4; 8], &mut data);
        for bit in 0..8 * (size + tag.len()) {
            let (mut altered, mut altered_tag) = (data.clone(), tag);
            match altered.get_mut(bit / 8) {
                Some(byte) => *byte ^= 1 << (bit % 8),
                None => altered_tag[bit / 8 - size] ^= 1 << (bit % 8),
            }
            let before = altered.clone();
            assert!(!key.open([4; 8], &altered_tag, &mut altered));
            assert_eq!(altered, before);
        }
        assert!(!key.open([5; 8], &tag, &mut data));
        assert!(key.open([4; 8], &tag, &mut data));
    }
}
