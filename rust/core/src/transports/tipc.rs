//! TIPC: streams between the nodes of a cluster, to services instead of machines.
//!
//! A service is a number (the type), and its instances are numbers, too. A program binds to instances, and another one
//! connects to an instance, wherever it is. The kernel supervises its links, and notices that a node has ended.

use socket2::SockAddr;
use zeroxide_proto::socket_type::SocketType;

use super::machine::{self, MachineListener};
use super::{ByteTransport, Listen, Opening, Target, Targets, adopted, check_family};
use crate::error::{Error, ErrorKind, Result};
use crate::options::Options;
use crate::sys::tipc::{self, TipcAddress};

/// See the module text.
pub(super) struct Tipc;

pub(super) static TIPC: Tipc = Tipc;

impl ByteTransport for Tipc {
    fn scheme(&self) -> &'static str {
        "tipc"
    }

    fn is_in_kernel(&self) -> bool {
        check_family(tipc::domain(), None, "TIPC").is_ok()
    }

    fn check(&self, address: &str, _: SocketType, bind: bool) -> Result<()> {
        match bind {
            true => to_bind(address).map(drop),
            false => {
                to_connect(address)?;
                check_family(tipc::domain(), None, "TIPC")
            }
        }
    }

    fn listen(&self, address: &str, options: &Options) -> Result<Box<dyn Listen>> {
        options.check_no_filter(self.scheme())?;
        let service = to_bind(address)?;
        let socket = match options.use_fd {
            Some(fd) => adopted(fd, "TIPC", |local| tipc::read(local).is_some(), |_| Ok(()))?,
            None => {
                let socket = machine::new_socket(tipc::domain(), "TIPC", options)?;
                if let Some(service) = service {
                    socket.bind(&service.into())?;
                }
                socket.listen(options.backlog)?;
                socket
            }
        };
        let endpoint = match service {
            Some(service) => shown(service),
            None => super::endpoint(&socket.local_addr()?),
        };
        Ok(Box::new(MachineListener { socket, endpoint }))
    }

    fn targets(&self, address: &str, options: &Options) -> Result<Targets> {
        options.check_no_proxy(self.scheme())?;
        Ok(machine::target(to_connect(address)?.into()))
    }

    fn open(&self, _: &str, target: &Target, options: &Options) -> Result<Opening> {
        super::open(
            machine::new_socket(tipc::domain(), "TIPC", options)?,
            target,
        )
    }
}

/// The endpoint of an address of this family.
pub(super) fn endpoint(address: &SockAddr) -> Option<String> {
    tipc::read(address).map(shown)
}

fn shown(address: TipcAddress) -> String {
    match address {
        TipcAddress::Range { kind, lower, upper } => format!("tipc://{{{kind},{lower},{upper}}}"),
        TipcAddress::Name {
            kind,
            instance,
            domain: 0,
        } => format!("tipc://{{{kind},{instance}}}"),
        TipcAddress::Name {
            kind,
            instance,
            domain,
        } => format!("tipc://{{{kind},{instance}}}@{}", node_name(domain)),
        TipcAddress::Id { reference, node } => {
            format!("tipc://<{}:{reference}>", node_name(node))
        }
    }
}

/// Zone, cluster and node.
fn node_name(node: u32) -> String {
    format!("{}.{}.{}", node >> 24, node >> 12 & 0xfff, node & 0xfff)
}

/// `{type,lower,upper}`; `None` for `<*>`, a socket without a service.
fn to_bind(address: &str) -> Result<Option<TipcAddress>> {
    if address == "<*>" {
        return Ok(None);
    }
    let parsed = numbers(address).and_then(|numbers| match numbers[..] {
        [kind, lower, upper] if lower <= upper => Some(TipcAddress::Range { kind, lower, upper }),
        _ => None,
    });
    let usage = "a service is {type,lower,upper}, with lower at most upper; <*> is a socket without a service";
    parsed.map(Some).ok_or_else(|| invalid(address, usage))
}

/// `{type,instance}`, which `@z.c.n` limits to a part of the cluster, or `<z.c.n:reference>`.
fn to_connect(address: &str) -> Result<TipcAddress> {
    let id = |inner: &str| {
        let (node, reference) = inner.split_once(':')?;
        Some(TipcAddress::Id {
            reference: reference.parse().ok()?,
            node: node_of(node)?,
        })
    };
    let name = || {
        let (service, domain) = match address.split_once('@') {
            Some((service, domain)) => (service, node_of(domain)?),
            None => (address, 0),
        };
        match numbers(service)?[..] {
            [kind, instance] => Some(TipcAddress::Name {
                kind,
                instance,
                domain,
            }),
            _ => None,
        }
    };
    let inner = address
        .strip_prefix('<')
        .and_then(|rest| rest.strip_suffix('>'));
    let parsed = match inner {
        Some(inner) => id(inner),
        None => name(),
    };
    let usage = "an instance of a service is {type,instance}, in a part of the cluster {type,instance}@z.c.n; a socket is <z.c.n:reference>";
    parsed.ok_or_else(|| invalid(address, usage))
}

/// The numbers between braces.
fn numbers(text: &str) -> Option<Vec<u32>> {
    let inner = text.strip_prefix('{')?.strip_suffix('}')?;
    let parts = inner.split(',').map(|part| part.trim().parse().ok());
    parts.collect()
}

fn node_of(text: &str) -> Option<u32> {
    let parts: Option<Vec<u32>> = text.split('.').map(|part| part.parse().ok()).collect();
    match parts?[..] {
        [zone, cluster, node] if zone < 1 << 8 && cluster < 1 << 12 && node < 1 << 12 => {
            Some(zone << 24 | cluster << 12 | node)
        }
        _ => None,
    }
}

fn invalid(address: &str, usage: &str) -> Error {
    Error::with(ErrorKind::Invalid, format!("'{address}': {usage}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn services_instances_and_sockets_are_written_as_they_are_shown() {
        let bound = |text: &str| shown(to_bind(text).unwrap().unwrap());
        assert_eq!(bound("{5560, 0, 9}"), "tipc://{5560,0,9}");
        assert_eq!(to_bind("<*>").unwrap(), None);
        for text in ["{5560,3}", "{5560,3}@1.2.3", "<255.4095.4095:7>"] {
            assert_eq!(shown(to_connect(text).unwrap()), format!("tipc://{text}"));
        }
    }

    #[test]
    fn other_addresses_are_refused() {
        for text in [
            "",
            "{1,2}",
            "{1,9,2}",
            "{1,2,3,4}",
            "{1,2,x}",
            "<1.2.3:4>",
            "*",
        ] {
            assert_eq!(
                to_bind(text).unwrap_err().kind(),
                ErrorKind::Invalid,
                "{text}"
            );
        }
        for text in [
            "",
            "{1}",
            "{1,2,3}",
            "{1,2}@1.2",
            "{1,2}@256.0.0",
            "<*>",
            "<1.2.3>",
            "<1.2.3:x>",
        ] {
            assert_eq!(
                to_connect(text).unwrap_err().kind(),
                ErrorKind::Invalid,
                "{text}"
            );
        }
    }
}
