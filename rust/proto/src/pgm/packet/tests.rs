use super::*;

const TSI: Tsi = Tsi {
    gsi: [1, 2, 3, 4, 5, 6],
    port: 0x0708,
};
const NLA: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
const GROUP: IpAddr = IpAddr::V4(Ipv4Addr::new(239, 1, 2, 3));
const SIX: IpAddr = IpAddr::V6(Ipv6Addr::LOCALHOST);

/// The bytes before and after the checksum, which makes the sum of all words 0xffff.
fn parts(packet: &[u8]) -> (&[u8], &[u8]) {
    let words = packet.chunks(2).map(|word| match *word {
        [high, low] => u32::from_be_bytes([0, 0, high, low]),
        [high] => u32::from_be_bytes([0, 0, high, 0]),
        _ => unreachable!(),
    });
    let sum: u32 = words.sum();
    assert_eq!((sum >> 16) + (sum & 0xffff), 0xffff);
    (&packet[..6], &packet[8..])
}

fn body(packet: &[u8]) -> Body<'_> {
    let packet = parse(packet).unwrap();
    assert_eq!((packet.tsi, packet.port), (TSI, 5555));
    packet.body
}

#[test]
fn packets_are_those_of_rfc_3208() {
    let bytes = spm(TSI, 5555, 9, [7, 8], NLA, false);
    let (before, after) = parts(&bytes);
    assert_eq!(before, b"\x07\x08\x15\xb3\0\0");
    assert_eq!(
        after,
        b"\x01\x02\x03\x04\x05\x06\0\0\0\0\0\x09\0\0\0\x07\0\0\0\x08\0\x01\0\0\xc0\0\x02\x01"
    );
    let bytes = nak(TSI, 5555, NLA, GROUP, &[5]);
    let (before, after) = parts(&bytes);
    assert_eq!(before, b"\x15\xb3\x07\x08\x08\0");
    assert_eq!(
        after,
        b"\x01\x02\x03\x04\x05\x06\0\0\0\0\0\x05\0\x01\0\0\xc0\0\x02\x01\0\x01\0\0\xef\x01\x02\x03"
    );
    let bytes = ncf(TSI, 5555, NLA, GROUP, &[5, 6]);
    let (before, after) = parts(&bytes);
    assert_eq!(before, b"\x07\x08\x15\xb3\x0a\x03");
    assert_eq!(&after[28..], b"\0\x04\0\x0c\x82\x08\0\0\0\0\0\x06");
    let mut bytes = [0; DATA_HEAD + 3];
    bytes[DATA_HEAD..].copy_from_slice(b"abc");
    put_data(&mut bytes, TSI, 5555, 3, 1);
    let (before, after) = parts(&bytes);
    assert_eq!(before, b"\x07\x08\x15\xb3\x04\0");
    assert_eq!(
        after,
        b"\x01\x02\x03\x04\x05\x06\0\x03\0\0\0\x03\0\0\0\x01abc"
    );
    assert_eq!(spm_request(TSI, 5555).len(), HEADER);
}

#[test]
fn packets_that_are_written_are_read_back() {
    for nla in [NLA, SIX] {
        for is_last in [false, true] {
            let expected = Body::Spm {
                sqn: 1,
                trail: 2,
                lead: u32::MAX,
                nla,
                is_last,
            };
            let bytes = spm(TSI, 5555, 1, [2, u32::MAX], nla, is_last);
            assert_eq!(body(&bytes), expected);
        }
        for count in [1, 2, REQUESTED_MAX] {
            let numbers: Vec<u32> = (7..).take(count).collect();
            let bytes = nak(TSI, 5555, nla, GROUP, &numbers);
            let Body::Nak(request) = body(&bytes) else {
                panic!("{bytes:?}");
            };
            assert!(request.numbers().eq(numbers.iter().copied()));
            assert_eq!((request.nla, request.group), (nla, GROUP));
            let bytes = ncf(TSI, 5555, nla, GROUP, &numbers);
            assert!(
                matches!(body(&bytes), Body::Ncf(request) if request.numbers().count() == count)
            );
        }
    }
    let mut bytes = [7; DATA_HEAD + 100];
    put_data(&mut bytes, TSI, 5555, u32::MAX, 5);
    let tsdu = &[7; 100];
    let data = |is_repair, trail| Body::Data {
        is_repair,
        sqn: u32::MAX,
        trail,
        tsdu,
    };
    assert_eq!(body(&bytes), data(false, 5));
    assert_eq!(body(&repair(&bytes, 6)), data(true, 6));
    assert_eq!(body(&spm_request(TSI, 5555)), Body::SpmRequest);
}

#[test]
fn damaged_packets_are_refused() {
    let mut data = [7; DATA_HEAD + 5];
    put_data(&mut data, TSI, 5555, 1, 0);
    let packets = [
        data.to_vec(),
        spm(TSI, 5555, 1, [2, 3], NLA, true),
        nak(TSI, 5555, NLA, SIX, &[1, 2, 3]),
    ];
    for packet in packets {
        for end in 0..packet.len() {
            assert_eq!(parse(&packet[..end]), Err(Malformed));
        }
        for at in 0..packet.len() {
            let mut other = packet.clone();
            other[at] ^= 0x10;
            // A type without a checksum, or with one that happens to fit, does not exist here.
            assert_eq!(parse(&other), Err(Malformed), "{at}");
        }
    }
    // The checksum is optional, but not for data.
    let mut packet = spm(TSI, 5555, 1, [2, 3], NLA, false);
    packet[CHECKSUM].fill(0);
    assert!(parse(&packet).is_ok());
    data[CHECKSUM].fill(0);
    assert_eq!(parse(&data), Err(Malformed));
}

#[test]
fn options_end_within_the_packet() {
    let sealed = |options: &[u8]| {
        let mut packet = spm(TSI, 5555, 1, [2, 3], NLA, false);
        packet[5] = WITH_OPTIONS;
        packet.extend_from_slice(options);
        seal(&mut packet);
        parse(&packet).is_ok()
    };
    assert!(sealed(b"\0\x04\0\x08\x8e\x04\0\0"));
    assert!(sealed(b"\0\x04\0\x0c\x03\x04\0\0\x8e\x04\0\0"));
    for options in [
        &b""[..],
        b"\0\x04\0\x08",
        b"\0\x04\0\x04\x8e\x04\0\0",
        b"\0\x04\0\x03\x8e\x04\0\0",
        b"\0\x04\xff\xff\x8e\x04\0\0",
        b"\0\x05\0\x08\x8e\x04\0\0",
        b"\x01\x04\0\x08\x8e\x04\0\0",
        b"\0\x04\0\x08\x8e\0\0\0",
        b"\0\x04\0\x08\x0e\x04\0\0",
        b"\0\x04\0\x08\x8e\xff\0\0",
    ] {
        assert!(!sealed(options), "{options:?}");
    }
}
