use std::time::Duration;

use super::*;
use crate::options::{ContextOptions, Options};

fn options() -> Options {
    Options::new(SocketType::Sub, &ContextOptions::default())
}

#[test]
fn addresses_are_checked_before_anything_is_made() {
    for (address, is_valid) in [
        ("eth0;239.0.0.1:5555", true),
        ("192.0.2.1;239.0.0.1:5555", true),
        ("*;239.0.0.1:5555", true),
        (";239.0.0.1:5555", true),
        ("239.0.0.1:5555", true),
        ("eth0;[ff02::1]:5555", true),
        ("eth0;[ff02::1%eth0]:5555", true),
        ("eth0;192.0.2.1:5555", false),
        ("eth0;239.0.0.1", false),
        ("eth0;239.0.0.1:*", false),
        ("eth0;239.0.0.1:0", false),
        ("eth0;*:5555", false),
        ("eth 0;239.0.0.1:5555", false),
        ("host.example:5555", false),
        ("", false),
    ] {
        assert_eq!(Place::parse(address).is_ok(), is_valid, "{address}");
    }
}

#[test]
fn the_window_has_the_packets_of_the_recovery_time() {
    let mut options = options();
    let window = |options: &Options| {
        let place = Place::parse("lo;239.255.77.9:5555").unwrap();
        let meeting = place.find(Carrier::Udp, options).unwrap();
        (meeting.window(options), meeting.packet)
    };
    // As in libzmq: 12 bytes per ms, for ten seconds, in packets of 1500 bytes.
    assert_eq!(window(&options), (80, 1500));
    options.rate = 1_000_000;
    assert_eq!(window(&options), (833_333, 1500));
    options.multicast_maxtpdu = Some(9000);
    assert_eq!(window(&options), (138_888, 9000));
    options.recovery_ivl = Duration::ZERO;
    assert_eq!(window(&options).0, 1);
    options.multicast_maxtpdu = Some(1);
    assert_eq!(window(&options).1, 128);
}

#[test]
fn a_machine_names_its_address_on_the_interface() {
    for address in ["lo;239.255.77.9:5555", "127.0.0.1;239.255.77.9:5555"] {
        for (carrier, headers) in [(Carrier::Ip, 20), (Carrier::Udp, 28)] {
            let place = Place::parse(address).unwrap();
            let meeting = place.find(carrier, &options()).unwrap();
            assert_eq!(meeting.own.to_string(), "127.0.0.1");
            assert_eq!(meeting.headers, headers);
        }
    }
    let nowhere = Place::parse("nope;239.255.77.9:5555").unwrap();
    let error = nowhere.find(Carrier::Udp, &options()).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::NoDevice);
    let six = Place::parse("lo;[ff02::1]:5555").unwrap();
    assert!(six.find(Carrier::Udp, &options()).is_err(), "IPV6 is off");
}

#[test]
fn the_header_of_ip_is_not_part_of_the_packet() {
    let meeting = |carrier| {
        let place = Place::parse("lo;239.255.77.9:5555").unwrap();
        place.find(carrier, &options()).unwrap()
    };
    let mut datagram = vec![0x46; 24];
    datagram.extend(b"packet");
    assert_eq!(meeting(Carrier::Ip).packet(&datagram), b"packet");
    assert_eq!(meeting(Carrier::Udp).packet(b"packet"), b"packet");
    for cut in [&b""[..], b"\x4f", b"\x45123"] {
        assert_eq!(meeting(Carrier::Ip).packet(cut), b"");
    }
}
