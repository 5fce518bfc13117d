//! vsock: streams between a virtual machine and its host, or between two programs of one machine.
//!
//! A machine has a number, the context identifier: 2 is the host, and 1 is the own machine. The kernel notices that a
//! machine has ended, so its silence means nothing.

use socket2::{Domain, SockAddr};
use zeroxide_proto::socket_type::SocketType;

use super::machine::{self, MachineListener};
use super::{ByteTransport, Listen, Opening, Target, Targets, adopted, check_family};
use crate::error::{Error, ErrorKind, Result};
use crate::options::Options;

/// See the module text.
pub(super) struct Vsock;

pub(super) static VSOCK: Vsock = Vsock;

/// Stands for every number of the own machine, and for a port that the system chooses.
const ANY: u32 = u32::MAX;

impl ByteTransport for Vsock {
    fn scheme(&self) -> &'static str {
        "vsock"
    }

    fn is_in_kernel(&self) -> bool {
        check_family(Domain::VSOCK, None, "vsock").is_ok()
    }

    fn check(&self, address: &str, _: SocketType, bind: bool) -> Result<()> {
        parse(address, bind)?;
        match bind {
            true => Ok(()),
            false => check_family(Domain::VSOCK, None, "vsock"),
        }
    }

    fn listen(&self, address: &str, options: &Options) -> Result<Box<dyn Listen>> {
        options.check_no_filter(self.scheme())?;
        let (machine, port) = parse(address, true)?;
        let socket = match options.use_fd {
            Some(fd) => {
                let is_vsock = |local: &SockAddr| local.as_vsock_address().is_some();
                adopted(fd, "vsock", is_vsock, |_| Ok(()))?
            }
            None => {
                let socket = machine::new_socket(Domain::VSOCK, "vsock", options)?;
                let bound = socket.bind(&SockAddr::vsock(machine, port));
                bound.and_then(|()| socket.listen(options.backlog))?;
                socket
            }
        };
        Ok(Box::new(MachineListener {
            endpoint: super::endpoint(&socket.local_addr()?),
            socket,
        }))
    }

    fn targets(&self, address: &str, options: &Options) -> Result<Targets> {
        options.check_no_proxy(self.scheme())?;
        let (machine, port) = parse(address, false)?;
        Ok(machine::target(SockAddr::vsock(machine, port)))
    }

    fn open(&self, _: &str, target: &Target, options: &Options) -> Result<Opening> {
        super::open(
            machine::new_socket(Domain::VSOCK, "vsock", options)?,
            target,
        )
    }
}

/// The endpoint of an address of this family.
pub(super) fn endpoint(address: &SockAddr) -> Option<String> {
    let (machine, port) = address.as_vsock_address()?;
    Some(match machine {
        ANY => format!("vsock://*:{port}"),
        _ => format!("vsock://{machine}:{port}"),
    })
}

/// The numbers of the machine and of the port.
fn parse(address: &str, bind: bool) -> Result<(u32, u32)> {
    let invalid = |why: &str| Error::with(ErrorKind::Invalid, format!("'{address}': {why}"));
    let Some((machine, port)) = address.rsplit_once(':') else {
        return Err(invalid("write machine:port, as in 2:5555"));
    };
    let number = |text: &str| text.parse::<u32>().ok().filter(|number| *number != ANY);
    let machine = match machine {
        "*" | "-1" | "@" if bind => ANY,
        "*" | "-1" | "@" => {
            return Err(invalid(
                "connecting needs the number of a machine: 2 is the host, 1 is this machine",
            ));
        }
        machine => number(machine).ok_or_else(|| {
            invalid("a machine is a number: 2 is the host, 1 is this machine, and * binds to all of its numbers")
        })?,
    };
    let port = match port {
        "*" | "-1" | "0" if bind => ANY,
        port => number(port)
            .filter(|port| *port > 0)
            .ok_or_else(|| invalid("a port is a number from 1 to 4294967294, or '*' to bind"))?,
    };
    Ok((machine, port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machines_and_ports_are_numbers() {
        assert_eq!(parse("2:5555", false).unwrap(), (2, 5555));
        assert_eq!(parse("*:*", true).unwrap(), (ANY, ANY));
        assert_eq!(parse("-1:7", true).unwrap(), (ANY, 7));
        assert_eq!(parse("3:0", true).unwrap(), (3, ANY));
        for (address, bind) in [
            ("2", false),
            ("*:7", false),
            ("2:0", false),
            ("2:*", false),
            ("host:7", false),
            ("4294967295:7", true),
            ("2:4294967296", true),
            (":7", true),
            ("2:", true),
        ] {
            let error = parse(address, bind).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Invalid, "{address}");
            assert!(error.to_string().contains(address), "{error}");
        }
    }

    #[test]
    fn an_address_is_shown_as_it_is_written() {
        let shown = |machine, port| endpoint(&SockAddr::vsock(machine, port)).unwrap();
        assert_eq!(shown(3, 7), "vsock://3:7");
        assert_eq!(shown(ANY, 7), "vsock://*:7");
        assert_eq!(endpoint(&SockAddr::unix("/a").unwrap()), None);
    }
}
