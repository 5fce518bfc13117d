//! The address after `tcp://` and similar schemes: `host:port`, and for connects also `source;host:port`.

use std::borrow::Cow;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};

use crate::error::{Error, ErrorKind, Result, printable};
use crate::options::Options;
use crate::resolver::{self, HostPort};
use crate::sys::interfaces;

/// A host and a port, as written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(in crate::transports) struct Address {
    pub(in crate::transports) host: Host,
    /// 0 means that the system chooses.
    pub(in crate::transports) port: u16,
}

/// The host, before the colon.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(in crate::transports) enum Host {
    /// `*`
    Any,
    /// A literal address, with the zone after its `%`.
    Ip(IpAddr, Option<String>),
    /// A host name, or the name of a network interface.
    Name(String),
}

/// Parses an address for binding.
pub(super) fn to_bind(text: &str) -> Result<Address> {
    if text.contains(';') {
        return Err(invalid(text, "a source address is for connecting only"));
    }
    host_port(text)
}

/// Parses an address for connecting, with an optional source.
pub(in crate::transports) fn to_connect(text: &str) -> Result<(Option<Address>, Address)> {
    let (source, text) = match text.split_once(';') {
        Some((source, target)) => (Some(source_host(source)?), target),
        None => (None, text),
    };
    let target = host_port(text)?;
    if target.host == Host::Any {
        return Err(invalid(
            text,
            "'*' is for binding; name a host to connect to",
        ));
    }
    if target.port == 0 {
        return Err(invalid(text, "connecting needs a port from 1 to 65535"));
    }
    Ok((source, target))
}

/// `host:port`, or only a host.
fn source_host(text: &str) -> Result<Address> {
    match host_port(text) {
        Ok(address) => Ok(address),
        Err(error) => match host(text) {
            Ok(host)
                if !text.is_empty() && !matches!(&host, Host::Name(name) if name.contains(':')) =>
            {
                Ok(Address { host, port: 0 })
            }
            _ => Err(error),
        },
    }
}

fn host_port(text: &str) -> Result<Address> {
    let split = text.rsplit_once(':');
    // The last colon may be one of an IPv6 address.
    let Some((host_text, port_text)) = split.filter(|(_, port)| !port.ends_with(']')) else {
        return Err(invalid(text, "the port is missing; write host:port"));
    };
    Ok(Address {
        host: host(host_text)?,
        port: port(port_text)?,
    })
}

fn port(text: &str) -> Result<u16> {
    if text == "*" {
        return Ok(0);
    }
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match text.parse() {
        Ok(port) if digits => Ok(port),
        _ => Err(invalid(text, "a port is a number from 0 to 65535, or '*'")),
    }
}

/// `host:port` as other protocols write it: without brackets, unless they are around an IPv6 address.
pub(super) fn plain(text: &str) -> Cow<'_, str> {
    let bare = text.strip_prefix('[').and_then(|rest| rest.split_once(']'));
    match bare {
        Some((host, port)) if !host.contains(':') => Cow::Owned(format!("{host}{port}")),
        _ => Cow::Borrowed(text),
    }
}

/// A host without a port.
pub(super) fn host(text: &str) -> Result<Host> {
    if text == "*" {
        return Ok(Host::Any);
    }
    let bare = text.strip_prefix('[').map(|rest| rest.strip_suffix(']'));
    let literal = match bare {
        Some(None) => return Err(invalid(text, "the closing bracket is missing")),
        Some(Some(inside)) => inside,
        None => text,
    };
    let (address, zone) = match literal.split_once('%') {
        Some((address, zone)) => (address, Some(zone)),
        None => (literal, None),
    };
    if let Ok(address) = address.parse::<IpAddr>()
        && zone.is_none_or(|zone| !zone.is_empty())
    {
        return Ok(Host::Ip(address, zone.map(str::to_owned)));
    }
    if bare.is_some() {
        // libzmq takes the brackets away, whatever they are around.
        return match literal {
            "" => Err(invalid(text, "there is no host between the brackets")),
            _ if literal.contains(['%', '[']) || literal.contains(':') && !is_label(literal) => {
                let why = "there is no IPv6 address between the brackets";
                Err(invalid(text, why))
            }
            _ => host(literal),
        };
    }
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || b".-_:".contains(&byte);
    if text.is_empty() {
        let why = "the host is missing; write host:port, or *:port to bind to every address";
        return Err(invalid(text, why));
    }
    if !text.bytes().all(legal) {
        return Err(invalid(text, "this is neither an address nor a host name"));
    }
    Ok(Host::Name(text.to_owned()))
}

/// Whether it may be the label of an interface's further address, such as `eth0:1`.
fn is_label(text: &str) -> bool {
    let (interface, label) = text.split_once(':').unwrap_or_default();
    // An IPv6 address has two colons or more.
    let is_one = !interface.is_empty() && !label.is_empty() && !label.contains(':');
    is_one && interface.parse::<Ipv4Addr>().is_err()
}

impl Host {
    /// Whether its zone names an interface that does not exist at present, and [`literal`] failed for this reason alone.
    pub(super) fn lacks_interface(&self, ipv6: bool) -> bool {
        match self {
            Host::Ip(ip, Some(zone)) => (ipv6 || ip.is_ipv4()) && interfaces::index(zone).is_none(),
            _ => false,
        }
    }

    /// The address, if it is known without a name server: a literal one, or that of a local interface.
    ///
    /// # Errors
    /// `NoDevice` if it is an IPv6 address, or an interface with only such addresses, and `ipv6` is off.
    pub(super) fn local(&self, port: u16, ipv6: bool) -> Result<Option<SocketAddr>> {
        match self {
            Host::Any if ipv6 => Ok(Some((Ipv6Addr::UNSPECIFIED, port).into())),
            Host::Any => Ok(Some((Ipv4Addr::UNSPECIFIED, port).into())),
            Host::Ip(address, zone) => literal(*address, zone.as_deref(), port, ipv6).map(Some),
            Host::Name(name) => interface(name, port, ipv6),
        }
    }

    /// The address to connect to `target` from, if there is one of its family. A name is that of an interface.
    ///
    /// # Errors
    /// `NoDevice` if it is an IPv6 address and `ipv6` is off, or if the interface does not exist or has no address of
    /// that family.
    pub(super) fn source(
        &self,
        port: u16,
        target: SocketAddr,
        ipv6: bool,
    ) -> Result<Option<SocketAddr>> {
        let same_family = |address: &SocketAddr| address.is_ipv4() == target.is_ipv4();
        match self {
            Host::Any => Ok(Some(SocketAddr::new(
                match target {
                    SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
                    SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
                },
                port,
            ))),
            Host::Ip(address, zone) => {
                let source = literal(*address, zone.as_deref(), port, ipv6)?;
                Ok(Some(source).filter(same_family))
            }
            Host::Name(name) => {
                let own = addresses_of(name)?;
                if own.is_empty() {
                    return Err(no_interface(name));
                }
                let Some(mut source) = own.into_iter().find(same_family) else {
                    let family = if target.is_ipv4() { "IPv4" } else { "IPv6" };
                    let text = format!("interface {name} has no {family} address");
                    return Err(Error::with(ErrorKind::NoDevice, text));
                };
                source.set_port(port);
                Ok(Some(source))
            }
        }
    }
}

/// A literal address, with its zone looked up.
pub(super) fn literal(
    address: IpAddr,
    zone: Option<&str>,
    port: u16,
    ipv6: bool,
) -> Result<SocketAddr> {
    match address {
        IpAddr::V6(_) if !ipv6 => Err(Error::with(
            ErrorKind::NoDevice,
            "set IPV6 to 1 to use IPv6 addresses",
        )),
        IpAddr::V6(address) => {
            Ok(SocketAddrV6::new(address, port, 0, zone.map_or(Ok(0), interface_number)?).into())
        }
        IpAddr::V4(_) => {
            // It means nothing, but libzmq accepts the zone of an interface that exists.
            zone.map(interface_number).transpose()?;
            Ok(SocketAddr::new(address, port))
        }
    }
}

/// The number of an interface, given by name or as a number.
fn interface_number(name: &str) -> Result<u32> {
    interfaces::index(name).ok_or_else(|| no_interface(name))
}

fn no_interface(name: &str) -> Error {
    let text = format!("no interface is called {name}");
    Error::with(ErrorKind::NoDevice, text)
}

/// The addresses of the interface with that name, in the system's order.
fn addresses_of(name: &str) -> Result<Vec<SocketAddr>> {
    let all = interfaces::addresses()?.into_iter();
    let own = all.filter(|(owner, _)| owner == name);
    Ok(own.map(|(_, address)| address).collect())
}

/// The first address of the interface with that name, if there is one. With `ipv6`, an IPv6 address goes before the
/// others, as in libzmq.
fn interface(name: &str, port: u16, ipv6: bool) -> Result<Option<SocketAddr>> {
    let own = addresses_of(name)?;
    let Some(first) = own.first() else {
        return Ok(None);
    };
    let preferred = own.iter().find(|address| address.is_ipv6() == ipv6);
    match preferred.or(ipv6.then_some(first)).copied() {
        Some(mut address) => {
            address.set_port(port);
            Ok(Some(address))
        }
        None => {
            let text =
                format!("interface {name} has IPv6 addresses only; set IPV6 to 1 to use them");
            Err(Error::with(ErrorKind::NoDevice, text))
        }
    }
}

/// The addresses to try in turn with [`bind_first`]. May block to resolve a local host name.
///
/// # Errors
/// `NoDevice` if there are none.
pub(super) fn local_addresses(address: &Address, options: &Options) -> Result<Vec<SocketAddr>> {
    let Address { host, port } = address;
    if let Some(local) = host.local(*port, options.ipv6)? {
        // On a system without IPv6, "any address" means all IPv4 addresses.
        let fallback =
            (*host == Host::Any && options.ipv6).then(|| (Ipv4Addr::UNSPECIFIED, *port).into());
        return Ok([local].into_iter().chain(fallback).collect());
    }
    let Host::Name(name) = host else {
        return Err(Error::new(ErrorKind::NoDevice));
    };
    let named = HostPort {
        host: name.clone(),
        port: *port,
    };
    let mut addresses = resolver::look_up(&named).map_err(|error| {
        let text = format!("'{name}' is neither an interface nor a host here ({error})");
        Error::with(ErrorKind::NoDevice, text)
    })?;
    addresses.retain(|address| options.ipv6 || address.is_ipv4());
    Ok(addresses)
}

/// Binds the first of these addresses that can be bound. If another program uses one, none of the others takes its place:
/// peers would find the other program at the address that was asked for.
///
/// # Errors
/// The error of the last address that was tried; `NoDevice` if there is none.
pub(super) fn bind_first<T>(
    addresses: Vec<SocketAddr>,
    mut bind: impl FnMut(SocketAddr) -> Result<T>,
) -> Result<T> {
    let mut failure = Error::new(ErrorKind::NoDevice);
    for address in addresses {
        match bind(address) {
            Err(error) if error.kind() != ErrorKind::AddressInUse => failure = error,
            done => return done,
        }
    }
    Err(failure)
}

/// An error about an address.
pub(super) fn invalid(text: &str, why: &str) -> Error {
    let why = match text.trim() == text {
        true => why,
        false => "there is white space around it; remove it",
    };
    Error::with(ErrorKind::Invalid, format!("'{}': {why}", printable(text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> Host {
        Host::Ip(text.parse().unwrap(), None)
    }

    #[test]
    fn addresses_to_bind() {
        let cases = [
            ("*:5555", Host::Any, 5555),
            ("*:*", Host::Any, 0),
            ("127.0.0.1:0", ip("127.0.0.1"), 0),
            ("[::1]:65535", ip("::1"), 65535),
            ("::1:5555", ip("::1"), 5555),
            ("[::]:*", ip("::"), 0),
            ("lo:1", Host::Name("lo".into()), 1),
            ("[127.0.0.1]:9", ip("127.0.0.1"), 9),
            ("[*]:*", Host::Any, 0),
            ("[localhost]:9", Host::Name("localhost".into()), 9),
            ("eth0:1:5555", Host::Name("eth0:1".into()), 5555),
            ("[eth0:1]:5555", Host::Name("eth0:1".into()), 5555),
            (
                "[127.0.0.1%lo]:7",
                Host::Ip("127.0.0.1".parse().unwrap(), Some("lo".into())),
                7,
            ),
            (
                "some-host.example.org:5",
                Host::Name("some-host.example.org".into()),
                5,
            ),
            (
                "[fe80::1%eth0]:7",
                Host::Ip("fe80::1".parse().unwrap(), Some("eth0".into())),
                7,
            ),
        ];
        for (text, host, port) in cases {
            assert_eq!(to_bind(text).unwrap(), Address { host, port }, "{text}");
        }
    }

    #[test]
    fn other_protocols_have_brackets_for_ipv6_only() {
        for (text, expected) in [
            ("[::1]:80", "[::1]:80"),
            ("[localhost]:80", "localhost:80"),
            ("[127.0.0.1]:80", "127.0.0.1:80"),
            ("localhost:80", "localhost:80"),
        ] {
            assert_eq!(plain(text), expected);
        }
    }

    #[test]
    fn a_port_that_is_missing_is_said_to_be() {
        for text in ["[::1]", "[fe80::1%lo]", "[localhost]", "localhost", "*"] {
            let error = to_bind(text).unwrap_err();
            assert!(error.context().unwrap().contains("the port is missing"));
        }
    }

    #[test]
    fn junk_is_invalid_and_says_why() {
        for text in [
            "",
            ":",
            "127.0.0.1",
            "127.0.0.1:",
            ":5555",
            "127.0.0.1:55x",
            "127.0.0.1:65536",
            "127.0.0.1:-1",
            "127.0.0.1:+1",
            "127.0.0.1: 1",
            "127.0.0.1:70000",
            "127.0.0.1:99999999999999999999",
            "[::1:5555",
            "[127.0.0.1:1",
            "127.0.0.1]:1",
            "[[127.0.0.1]]:1",
            "[a b]:1",
            "[127.0.0.1%]:1",
            "[127.0.0.1:5]:1",
            "[eth0:]:1",
            "[::g]:1",
            "[]:1",
            "[::1]]:1",
            "[fe80::1%]:1",
            "a b:1",
            "host/path:1",
            "höst:1",
            "127.0.0.1;lo:1",
            "a;b;c:1",
            "*",
            "127.0.0.1:1\0",
        ] {
            let error = to_bind(text).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Invalid, "{text}");
            assert!(error.context().is_some(), "{text}");
        }
    }

    #[test]
    fn addresses_to_connect_from_and_to() {
        let target = Address {
            host: ip("10.0.0.1"),
            port: 9,
        };
        let from = |text: &str| to_connect(text).unwrap();
        assert_eq!(from("10.0.0.1:9"), (None, target.clone()));
        let cases = [
            ("10.0.0.2:8", ip("10.0.0.2"), 8),
            ("10.0.0.2", ip("10.0.0.2"), 0),
            ("10.0.0.2:*", ip("10.0.0.2"), 0),
            ("eth0", Host::Name("eth0".into()), 0),
            ("eth0:3", Host::Name("eth0".into()), 3),
            ("*:3", Host::Any, 3),
            ("[::1]", ip("::1"), 0),
            ("[10.0.0.2]:8", ip("10.0.0.2"), 8),
            ("[eth0]", Host::Name("eth0".into()), 0),
            ("[::1]:4", ip("::1"), 4),
        ];
        for (source, host, port) in cases {
            let expected = (Some(Address { host, port }), target.clone());
            assert_eq!(from(&format!("{source};10.0.0.1:9")), expected, "{source}");
        }
        for text in [
            "*:9",
            "10.0.0.1:0",
            "10.0.0.1:*",
            ";10.0.0.1:9",
            "eth0:99999;10.0.0.1:9",
            "eth0:x;10.0.0.1:9",
            "eth0;;10.0.0.1:9",
            "eth0;",
        ] {
            assert_eq!(
                to_connect(text).unwrap_err().kind(),
                ErrorKind::Invalid,
                "{text}"
            );
        }
    }

    #[test]
    fn local_addresses_are_found_without_a_name_server() {
        let local = |text: &str, ipv6| {
            let Address { host, port } = to_bind(text)?;
            Ok(host.local(port, ipv6)?.map(|address| address.to_string()))
        };
        let local = |text, ipv6| -> Result<Option<String>> { local(text, ipv6) };
        let found = |text: &str| Some(text.to_owned());
        assert_eq!(local("*:5", false).unwrap(), found("0.0.0.0:5"));
        assert_eq!(local("*:5", true).unwrap(), found("[::]:5"));
        assert_eq!(local("lo:5", false).unwrap(), found("127.0.0.1:5"));
        assert_eq!(local("lo:5", true).unwrap(), found("[::1]:5"));
        assert_eq!(local("[::1]:5", true).unwrap(), found("[::1]:5"));
        assert_eq!(
            local("[fe80::1%lo]:5", true).unwrap(),
            found("[fe80::1%1]:5")
        );
        assert_eq!(
            local("[fe80::1%1]:5", true).unwrap(),
            found("[fe80::1%1]:5")
        );
        assert_eq!(
            local("127.0.0.1%lo:5", false).unwrap(),
            found("127.0.0.1:5")
        );
        assert_eq!(
            local("[127.0.0.1%nope]:5", false).unwrap_err().kind(),
            ErrorKind::NoDevice
        );
        assert_eq!(local("some.host:5", false).unwrap(), None);
        assert_eq!(
            local("[::1]:5", false).unwrap_err().kind(),
            ErrorKind::NoDevice
        );
        assert_eq!(
            local("[fe80::1%nope]:5", true).unwrap_err().kind(),
            ErrorKind::NoDevice
        );
    }

    #[test]
    fn an_address_that_is_in_use_is_not_replaced_by_the_next() {
        let addresses = || vec!["[::1]:5".parse().unwrap(), "127.0.0.1:5".parse().unwrap()];
        let first_fails = |error: Error| {
            bind_first(addresses(), |address| match address.is_ipv6() {
                true => Err(error.clone()),
                false => Ok(address.to_string()),
            })
        };
        for kind in [
            ErrorKind::AddressNotAvailable,
            ErrorKind::NoProtocol,
            ErrorKind::Access,
        ] {
            assert_eq!(first_fails(Error::new(kind)).unwrap(), "127.0.0.1:5");
        }
        let taken = first_fails(Error::new(ErrorKind::AddressInUse)).unwrap_err();
        assert_eq!(taken.kind(), ErrorKind::AddressInUse);
        let none = bind_first(Vec::new(), Ok).unwrap_err();
        assert_eq!(none.kind(), ErrorKind::NoDevice);
    }
}
