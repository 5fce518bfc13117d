//! What tests do to the network, and what they ask it.

use std::net::IpAddr;

use rustix::io::Errno;

use super::flow::Stream;
use super::link::Link;
use super::{Weather, pair, with};

/// Changes the behaviour of the network from now on.
pub fn set_weather(weather: Weather) {
    with(|network, _| network.weather = weather);
}

/// Breaks every connection between two hosts. Bytes in transit are lost.
pub fn reset(a: IpAddr, b: IpAddr) {
    with(|network, _| network.break_links(|link| link.is_between(a, b), Errno::CONNRESET));
}

/// Breaks every connection between two hosts for the first one only. The second one finds out when it sends something.
pub fn reset_one_end(host: IpAddr, peer: IpAddr) {
    with(|network, _| network.break_ends(host, peer, Errno::CONNRESET));
}

/// Breaks the next connection that carries bytes between two hosts, after this many: in the middle of a message.
pub fn break_after(a: IpAddr, b: IpAddr, bytes: usize) {
    with(|network, _| network.fuses.insert(pair(a, b), bytes));
}

/// Cuts two hosts off from each other, or joins them again. Connections survive unless it takes long.
pub fn partition(a: IpAddr, b: IpAddr, is_cut: bool) {
    with(|network, _| match is_cut {
        true => network.cut.insert(pair(a, b)),
        false => network.cut.remove(&pair(a, b)),
    });
}

/// Ends all partitions, breaks no connection that has not been broken, and tells both hosts of those that have been.
pub fn heal() {
    with(|network, _| {
        network.break_links(Link::has_lost_an_end, Errno::CONNRESET);
        network.cut.clear();
        network.fuses.clear();
        for link in &mut network.links {
            link.fuse = None;
        }
    });
}

/// A host loses its power, with all its connections and bound addresses. The other hosts are not told. The caller has to end
/// the contexts there before the host gets its power back.
pub fn power_off(host: IpAddr) {
    with(|network, _| {
        network.off.insert(host);
        network.listeners.retain(|address, _| address.ip() != host);
        for link in network.links.iter_mut().filter(|link| link.is_at(host)) {
            let peer = usize::from(link.address[0].ip() == host);
            link.bereaved.get_or_insert(peer);
            link.lose_unsent(1 - peer);
        }
    });
}

/// A host starts again. It knows nothing of its old connections, and resets them when their peers send something.
pub fn power_on(host: IpAddr) {
    with(|network, _| network.off.remove(&host));
}

/// The streams of bytes of all connections so far.
pub fn streams() -> Vec<Stream> {
    with(|network, _| {
        let links = network.past.iter().chain(&network.links);
        links
            .flat_map(|link| [link.stream(0), link.stream(1)])
            .collect()
    })
}
