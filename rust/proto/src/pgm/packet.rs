//! The packets of PGM: their bytes, their options and their checksum.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The bytes of a data packet before its TSDU.
pub const DATA_HEAD: usize = HEADER + 8;

/// The most sequence numbers that one NAK or NCF requests.
pub const REQUESTED_MAX: usize = 63;

const HEADER: usize = 16;
const CHECKSUM: std::ops::Range<usize> = 6..8;

const SPM: u8 = 0x00;
const ODATA: u8 = 0x04;
const RDATA: u8 = 0x05;
const NAK: u8 = 0x08;
const NCF: u8 = 0x0a;
const SPM_REQUEST: u8 = 0x0c;

/// Options follow.
const WITH_OPTIONS: u8 = 0x01;
/// Routers have to look at the options.
const FOR_ROUTERS: u8 = 0x02;
/// The packet carries parity for other packets.
const PARITY: u8 = 0x80;

const OPTION_LENGTH: u8 = 0x00;
const OPTION_FRAGMENT: u8 = 0x01;
const OPTION_LIST: u8 = 0x02;
const OPTION_FIN: u8 = 0x0e;
/// No option follows this one.
const OPTION_END: u8 = 0x80;
/// The bytes of an option before its own ones.
const OPTION_HEAD: usize = 4;

/// The identifier of a sender: of its machine or program, and the port that it has chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tsi {
    /// The first six bytes.
    pub gsi: [u8; 6],
    /// The port.
    pub port: u16,
}

/// A packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Packet<'a> {
    /// The sender that the packet is from, or about.
    pub(super) tsi: Tsi,
    /// The port of the group.
    pub(super) port: u16,
    pub(super) body: Body<'a>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Body<'a> {
    /// The numbers of the packets that a sender has sent so far.
    Spm {
        sqn: u32,
        trail: u32,
        lead: u32,
        nla: IpAddr,
        is_last: bool,
    },
    Data {
        is_repair: bool,
        sqn: u32,
        trail: u32,
        tsdu: &'a [u8],
    },
    Nak(Request<'a>),
    Ncf(Request<'a>),
    SpmRequest,
    /// Of no interest here: a null NAK, a poll, an acknowledgement, parity.
    Other,
}

/// A request for sequence numbers, or its confirmation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Request<'a> {
    first: u32,
    /// Further ones, four bytes each.
    more: &'a [u8],
    pub(super) nla: IpAddr,
    pub(super) group: IpAddr,
}

impl<'a> Request<'a> {
    pub(super) fn numbers(&self) -> impl Iterator<Item = u32> + use<'a> {
        let (more, _) = self.more.as_chunks();
        let more = more.iter().map(|bytes| u32::from_be_bytes(*bytes));
        std::iter::once(self.first).chain(more)
    }
}

/// Bytes that are not a packet of PGM, or a damaged one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a packet of PGM, or a damaged one")]
pub struct Malformed;

// ---- reading ---------------------------------------------------------------------------------------------------------

pub(super) fn parse(bytes: &[u8]) -> Result<Packet<'_>, Malformed> {
    let mut rest = Bytes(bytes);
    let ports = [rest.u16()?, rest.u16()?];
    let [kind, flags] = rest.take()?;
    let sum = rest.u16()?;
    let gsi = rest.take()?;
    let length = usize::from(rest.u16()?);
    let is_data = matches!(kind, ODATA | RDATA);
    // Only data packets must have one.
    if (sum != 0 || is_data) && checksum(bytes) != sum {
        return Err(Malformed);
    }
    // Packets to a sender have the ports the other way round.
    let is_upstream = matches!(kind, NAK | SPM_REQUEST);
    let [source, port] = if is_upstream {
        [ports[1], ports[0]]
    } else {
        ports
    };
    let body = match kind {
        _ if flags & PARITY != 0 => Body::Other,
        SPM => {
            let (sqn, trail, lead) = (rest.u32()?, rest.u32()?, rest.u32()?);
            let nla = rest.address()?;
            let options = rest.options(flags)?;
            Body::Spm {
                sqn,
                trail,
                lead,
                nla,
                is_last: options.is_last,
            }
        }
        ODATA | RDATA => {
            let (sqn, trail) = (rest.u32()?, rest.u32()?);
            if rest.options(flags)?.is_fragment {
                // ZeroMQ divides messages in its own way.
                return Err(Malformed);
            }
            Body::Data {
                is_repair: kind == RDATA,
                sqn,
                trail,
                tsdu: rest.0.get(..length).ok_or(Malformed)?,
            }
        }
        NAK | NCF => {
            let first = rest.u32()?;
            let (nla, group) = (rest.address()?, rest.address()?);
            let more = rest.options(flags)?.list;
            let request = Request {
                first,
                more,
                nla,
                group,
            };
            if kind == NAK {
                Body::Nak(request)
            } else {
                Body::Ncf(request)
            }
        }
        SPM_REQUEST => Body::SpmRequest,
        _ => Body::Other,
    };
    let tsi = Tsi { gsi, port: source };
    Ok(Packet { tsi, port, body })
}

/// The bytes that were not read yet.
struct Bytes<'a>(&'a [u8]);

/// The options that matter.
#[derive(Default)]
struct Options<'a> {
    is_last: bool,
    is_fragment: bool,
    list: &'a [u8],
}

impl<'a> Bytes<'a> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (first, rest) = self.0.split_first_chunk().ok_or(Malformed)?;
        self.0 = rest;
        Ok(*first)
    }

    fn u16(&mut self) -> Result<u16, Malformed> {
        self.take().map(u16::from_be_bytes)
    }

    fn u32(&mut self) -> Result<u32, Malformed> {
        self.take().map(u32::from_be_bytes)
    }

    /// An address after its family and two reserved bytes.
    fn address(&mut self) -> Result<IpAddr, Malformed> {
        let family = self.u16()?;
        self.u16()?;
        Ok(match family {
            1 => Ipv4Addr::from(self.take::<4>()?).into(),
            2 => Ipv6Addr::from(self.take::<16>()?).into(),
            _ => return Err(Malformed),
        })
    }

    fn options(&mut self, flags: u8) -> Result<Options<'a>, Malformed> {
        let mut found = Options::default();
        if flags & WITH_OPTIONS == 0 {
            return Ok(found);
        }
        let all = self.0;
        let [kind, size] = self.take()?;
        let total = usize::from(self.u16()?);
        if (kind, size) != (OPTION_LENGTH, 4) {
            return Err(Malformed);
        }
        let (options, rest) = all.split_at_checked(total).ok_or(Malformed)?;
        self.0 = rest;
        let mut options = options.get(4..).ok_or(Malformed)?;
        loop {
            let [kind, size, ..] = *options else {
                return Err(Malformed);
            };
            let size = usize::from(size);
            if size < OPTION_HEAD {
                return Err(Malformed);
            }
            let (option, rest) = options.split_at_checked(size).ok_or(Malformed)?;
            match kind & !OPTION_END {
                OPTION_FIN => found.is_last = true,
                OPTION_FRAGMENT => found.is_fragment = true,
                OPTION_LIST => found.list = &option[OPTION_HEAD..],
                _ => {}
            }
            if kind & OPTION_END != 0 {
                return Ok(found);
            }
            options = rest;
        }
    }
}

// ---- writing ---------------------------------------------------------------------------------------------------------

pub(super) fn spm(
    tsi: Tsi,
    port: u16,
    sqn: u32,
    edges: [u32; 2],
    nla: IpAddr,
    fin: bool,
) -> Vec<u8> {
    let mut packet = head(SPM, [tsi.port, port], tsi);
    for number in [sqn, edges[0], edges[1]] {
        packet.extend_from_slice(&number.to_be_bytes());
    }
    put_address(&mut packet, nla);
    if fin {
        packet[5] |= WITH_OPTIONS;
        packet.extend_from_slice(&[OPTION_LENGTH, 4, 0, 8]);
        packet.extend_from_slice(&[OPTION_FIN | OPTION_END, 4, 0, 0]);
    }
    seal(&mut packet);
    packet
}

/// Writes the head of a data packet in front of its TSDU, for which there must be [`DATA_HEAD`] bytes of room.
pub(super) fn put_data(packet: &mut [u8], tsi: Tsi, port: u16, sqn: u32, trail: u32) {
    let start = head(ODATA, [tsi.port, port], tsi);
    let length = (packet.len() - DATA_HEAD) as u16;
    packet[..HEADER].copy_from_slice(&start);
    packet[14..16].copy_from_slice(&length.to_be_bytes());
    packet[16..20].copy_from_slice(&sqn.to_be_bytes());
    packet[20..24].copy_from_slice(&trail.to_be_bytes());
    seal(packet);
}

/// The data packet once more, as a repair.
pub(super) fn repair(original: &[u8], trail: u32) -> Vec<u8> {
    let mut packet = original.to_vec();
    packet[4] = RDATA;
    packet[20..24].copy_from_slice(&trail.to_be_bytes());
    seal(&mut packet);
    packet
}

pub(super) fn nak(tsi: Tsi, port: u16, nla: IpAddr, group: IpAddr, numbers: &[u32]) -> Vec<u8> {
    request(NAK, [port, tsi.port], tsi, nla, group, numbers)
}

pub(super) fn ncf(tsi: Tsi, port: u16, nla: IpAddr, group: IpAddr, numbers: &[u32]) -> Vec<u8> {
    request(NCF, [tsi.port, port], tsi, nla, group, numbers)
}

#[cfg(test)]
pub(super) fn spm_request(tsi: Tsi, port: u16) -> Vec<u8> {
    let mut packet = head(SPM_REQUEST, [port, tsi.port], tsi);
    seal(&mut packet);
    packet
}

/// `numbers` are at least one and at most [`REQUESTED_MAX`].
fn request(
    kind: u8,
    ports: [u16; 2],
    tsi: Tsi,
    nla: IpAddr,
    group: IpAddr,
    numbers: &[u32],
) -> Vec<u8> {
    let mut packet = head(kind, ports, tsi);
    packet.extend_from_slice(&numbers[0].to_be_bytes());
    put_address(&mut packet, nla);
    put_address(&mut packet, group);
    let more = &numbers[1..];
    if !more.is_empty() {
        packet[5] |= WITH_OPTIONS | FOR_ROUTERS;
        let size = OPTION_HEAD + 4 * more.len();
        packet.extend_from_slice(&[OPTION_LENGTH, 4]);
        packet.extend_from_slice(&(4 + size as u16).to_be_bytes());
        packet.extend_from_slice(&[OPTION_LIST | OPTION_END, size as u8, 0, 0]);
        for number in more {
            packet.extend_from_slice(&number.to_be_bytes());
        }
    }
    seal(&mut packet);
    packet
}

fn head(kind: u8, ports: [u16; 2], tsi: Tsi) -> Vec<u8> {
    let mut packet = Vec::with_capacity(64);
    packet.extend_from_slice(&ports[0].to_be_bytes());
    packet.extend_from_slice(&ports[1].to_be_bytes());
    packet.extend_from_slice(&[kind, 0, 0, 0]);
    packet.extend_from_slice(&tsi.gsi);
    packet.extend_from_slice(&[0, 0]);
    packet
}

fn put_address(packet: &mut Vec<u8>, address: IpAddr) {
    match address {
        IpAddr::V4(ip) => {
            packet.extend_from_slice(&[0, 1, 0, 0]);
            packet.extend_from_slice(&ip.octets());
        }
        IpAddr::V6(ip) => {
            packet.extend_from_slice(&[0, 2, 0, 0]);
            packet.extend_from_slice(&ip.octets());
        }
    }
}

fn seal(packet: &mut [u8]) {
    let sum = checksum(packet);
    packet[CHECKSUM].copy_from_slice(&sum.to_be_bytes());
}

/// The checksum of IP over the whole packet, with zeros in place of its own. It is never zero, which means that there is
/// none.
fn checksum(packet: &[u8]) -> u16 {
    let (before, after) = packet.split_at(CHECKSUM.start);
    let sum = add(add(0, before), &after[2..]);
    let mut sum = (sum >> 32) + (sum & 0xffff_ffff);
    while sum > 0xffff {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    match !(sum as u16) {
        0 => 0xffff,
        sum => sum,
    }
}

/// Adds 32 bits at a time, which has the same sum as 16 bits after folding.
fn add(mut sum: u64, bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks();
    for word in words {
        sum += u64::from(u32::from_be_bytes(*word));
    }
    let mut last = [0; 4];
    last[..rest.len()].copy_from_slice(rest);
    sum + u64::from(u32::from_be_bytes(last))
}

#[cfg(test)]
mod tests;
