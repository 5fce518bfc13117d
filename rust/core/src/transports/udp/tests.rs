use std::net::SocketAddr;

use socket2::{Domain, Socket, Type};

use super::*;
use crate::error::ErrorKind;
use crate::options::{ContextOptions, Options};

fn options() -> Options {
    let mut options = Options::new(SocketType::Dish, &ContextOptions::default());
    options.ipv6 = true;
    options
}

fn open(address: &str, options: &Options, largest: usize) -> (Socket, SocketAddr, usize) {
    let place = place::parse(address, false).unwrap();
    let Goal::Address(target) = place.goal(options).unwrap() else {
        panic!("{address} is an address");
    };
    place::open(&place, target, options, largest).unwrap()
}

#[test]
fn addresses_are_checked_before_anything_is_made() {
    for (address, bind, is_valid) in [
        ("*:5555", true, true),
        ("*:*", true, true),
        ("eth0:5555", true, true),
        ("[::1]:5555", true, true),
        ("239.0.0.1:5555", true, true),
        ("eth0;239.0.0.1:5555", true, true),
        ("192.0.2.1;239.0.0.1:5555", true, true),
        ("eth0;[ff02::1]:5555", true, true),
        ("*;239.0.0.1:5555", false, true),
        ("host.example:5555", false, true),
        ("*:5555", false, false),
        ("127.0.0.1:*", false, false),
        ("eth0;192.0.2.1:5555", true, false),
        ("eth0;*:5555", true, false),
        (";239.0.0.1:5555", true, false),
        ("239.0.0.1", true, false),
        ("", true, false),
    ] {
        let parsed = place::parse(address, bind);
        assert_eq!(parsed.is_ok(), is_valid, "{address}");
    }
}

#[test]
fn a_bound_endpoint_names_what_to_connect_to() {
    for (address, start) in [
        ("127.0.0.1:*", "udp://127.0.0.1:"),
        ("lo:*", "udp://[::1]:"),
        ("239.255.77.9:*", "udp://239.255.77.9:"),
        ("lo;239.255.77.9:*", "udp://lo;239.255.77.9:"),
    ] {
        let (socket, _) = place::bound(address, &options()).unwrap();
        let endpoint = place::endpoint(address, &socket).unwrap();
        assert!(endpoint.starts_with(start), "{endpoint}");
        let address = endpoint.strip_prefix("udp://").unwrap();
        let (_, target, _) = open(address, &options(), 100);
        assert_ne!(target.port(), 0);
    }
}

#[test]
fn all_addresses_are_not_bound_if_another_program_has_those_of_ipv6() {
    let other = Socket::new(Domain::IPV6, Type::DGRAM, None).unwrap();
    other.set_only_v6(true).unwrap();
    let any = SocketAddr::from((std::net::Ipv6Addr::UNSPECIFIED, 0));
    other.bind(&any.into()).unwrap();
    let port = other.local_addr().unwrap().as_socket().unwrap().port();
    let failure = place::bound(&format!("*:{port}"), &options())
        .map(|_| ())
        .unwrap_err();
    assert_eq!(failure.kind(), ErrorKind::AddressInUse);
}

#[test]
fn the_headers_count_for_packets_to_a_group() {
    let mut options = options();
    let largest = |address: &str, options: &Options| open(address, options, 8192).2;
    assert_eq!(largest("lo;239.255.77.9:5555", &options), 8192);
    options.multicast_maxtpdu = Some(1500);
    assert_eq!(largest("lo;239.255.77.9:5555", &options), 1472);
    assert_eq!(largest("127.0.0.1:5555", &options), 8192);
    options.multicast_maxtpdu = Some(1);
    assert_eq!(largest("lo;239.255.77.9:5555", &options), 0);
    options.multicast_maxtpdu = Some(65_535);
    assert_eq!(largest("lo;239.255.77.9:5555", &options), 8192);
}
