//! The addresses of the network interfaces.

use std::ffi::{CStr, CString};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::ptr;

use socket2::SockAddr;

/// The addresses of this machine.
///
/// # Errors
/// The system's error.
pub fn own_addresses() -> io::Result<Vec<IpAddr>> {
    let all = addresses()?.into_iter();
    Ok(all.map(|(_, address)| address.ip()).collect())
}

/// Whether there is an interface with this number. A new one usually gets another number than the one before.
pub(crate) fn exists(number: u32) -> bool {
    let mut name = [0; libc::IF_NAMESIZE];
    // SAFETY: there is space for the longest name.
    !unsafe { libc::if_indextoname(number, name.as_mut_ptr()) }.is_null()
}

/// Every interface address with the interface's name, in the system's order, ports zero.
pub(crate) fn addresses() -> io::Result<Vec<(String, SocketAddr)>> {
    let mut list = ptr::null_mut();
    // SAFETY: the list pointer is written before it is read, and freed below.
    if unsafe { libc::getifaddrs(&mut list) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let mut found = Vec::new();
    let mut entry: *const libc::ifaddrs = list;
    while !entry.is_null() {
        // SAFETY: entries of the list are valid until it is freed, and it is not changed meanwhile.
        let interface = unsafe { &*entry };
        // SAFETY: null or part of the list.
        if let Some(address) = unsafe { address_of(interface.ifa_addr) } {
            // SAFETY: the name is a C string that lives as long as the list.
            let name = unsafe { CStr::from_ptr(interface.ifa_name) };
            found.push((name.to_string_lossy().into_owned(), address));
        }
        entry = interface.ifa_next;
    }
    // SAFETY: comes from getifaddrs and nothing borrowed from it is left.
    unsafe { libc::freeifaddrs(list) };
    Ok(found)
}

/// The address at a pointer.
///
/// # Safety
/// The pointer is null or points to an address of the length that its family implies.
unsafe fn address_of(address: *const libc::sockaddr) -> Option<SocketAddr> {
    if address.is_null() {
        return None;
    }
    // SAFETY: not null, and every address begins with its family.
    let family = i32::from(unsafe { (*address).sa_family });
    let length = match family {
        libc::AF_INET => size_of::<libc::sockaddr_in>(),
        libc::AF_INET6 => size_of::<libc::sockaddr_in6>(),
        _ => return None,
    };
    // SAFETY: the storage is larger than either kind of address, and the family determines the length of the source.
    let copy = unsafe {
        SockAddr::try_init(|storage, size| {
            ptr::copy_nonoverlapping(address.cast::<u8>(), storage.cast::<u8>(), length);
            *size = length as libc::socklen_t;
            Ok(())
        })
    };
    copy.ok()?.1.as_socket()
}

/// The number of an interface, given by name or as a number; `None` if there is none with that name.
pub(crate) fn index(name: &str) -> Option<u32> {
    if let Ok(number) = name.parse() {
        return Some(number);
    }
    let name = CString::new(name).ok()?;
    // SAFETY: the name is a C string.
    match unsafe { libc::if_nametoindex(name.as_ptr()) } {
        0 => None,
        number => Some(number),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interfaces_have_numbers() {
        assert_eq!(index("lo"), Some(1));
        assert_eq!(index("7"), Some(7));
        for name in ["nope", "l\0o", ""] {
            assert_eq!(index(name), None);
        }
    }

    #[test]
    fn loopback_is_among_them() {
        let all = addresses().unwrap();
        assert!(
            all.iter()
                .any(|(name, address)| name == "lo"
                    && *address == SocketAddr::from(([127, 0, 0, 1], 0))),
            "{all:?}"
        );
    }
}
