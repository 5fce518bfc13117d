//! What all transports over IP have in common.

use std::io;

use socket2::{Domain, SockRef, Socket};

use crate::error::{Error, Result};
use crate::options::Options;
use crate::sys::stream;

/// Sets the options of a socket that every protocol has. Do this before it binds or connects.
pub(super) fn tune(socket: &Socket, domain: Domain, options: &Options) -> Result<()> {
    super::set_buffers(socket, options)?;
    if options.tos != 0 {
        let tos = u32::from(options.tos);
        if domain == Domain::IPV6 {
            socket.set_tclass_v6(tos)?;
        }
        // Also for IPv4 peers of a dual-stack socket.
        socket.set_tos_v4(tos)?;
    }
    if !options.bind_to_device.is_empty() {
        let device = &options.bind_to_device;
        stream::bind_to_interface(SockRef::from(socket), device).map_err(|error| {
            let hint = match error.kind() {
                io::ErrorKind::PermissionDenied => " needs CAP_NET_RAW",
                _ => "",
            };
            Error::from(error).about(format_args!("BINDTODEVICE {device}{hint}"))
        })?;
    }
    Ok(())
}
