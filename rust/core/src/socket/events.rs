//! The events that sockets and descriptors are ready for.

use std::fmt;
use std::ops::{BitAnd, BitOr, BitOrAssign};

/// The events that a socket or a descriptor is ready for, or that a caller waits for. They form a set, such as
/// `Events::READABLE | Events::WRITABLE`.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Events(i16);

impl Events {
    /// No event.
    pub const NONE: Events = Events(0);
    /// POLLIN: a message can be received without waiting, or a descriptor can be read from.
    pub const READABLE: Events = Events(1);
    /// POLLOUT: a message can be sent without waiting, or a descriptor can be written to.
    pub const WRITABLE: Events = Events(2);
    /// POLLERR: a descriptor has an error, or its other end is closed. It is found even if the caller does not wait for
    /// it; never for sockets.
    pub const ERROR: Events = Events(4);
    /// POLLPRI: urgent data on a descriptor; never for sockets.
    pub const PRIORITY: Events = Events(8);

    const NAMES: [(Events, &str); 4] = [
        (Events::READABLE, "READABLE"),
        (Events::WRITABLE, "WRITABLE"),
        (Events::ERROR, "ERROR"),
        (Events::PRIORITY, "PRIORITY"),
    ];

    /// Returns the set for a sum of numbers from `zmq.h` (POLLIN and so on). Other bits are kept, and have no meaning.
    pub const fn from_bits(bits: i16) -> Events {
        Events(bits)
    }

    /// Returns the sum of the numbers from `zmq.h`.
    pub const fn bits(self) -> i16 {
        self.0
    }

    /// Whether the set is empty.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether all of `others` are in the set.
    pub const fn contains(self, others: Events) -> bool {
        self.0 & others.0 == others.0
    }

    /// Whether [`READABLE`](Self::READABLE) is in the set.
    pub const fn is_readable(self) -> bool {
        self.contains(Events::READABLE)
    }

    /// Whether [`WRITABLE`](Self::WRITABLE) is in the set.
    pub const fn is_writable(self) -> bool {
        self.contains(Events::WRITABLE)
    }

    /// Returns the set if the condition holds, otherwise the empty set.
    pub(crate) const fn only_if(self, condition: bool) -> Events {
        if condition { self } else { Events::NONE }
    }
}

impl BitOr for Events {
    type Output = Events;

    fn bitor(self, others: Events) -> Events {
        Events(self.0 | others.0)
    }
}

impl BitOrAssign for Events {
    fn bitor_assign(&mut self, others: Events) {
        self.0 |= others.0;
    }
}

impl BitAnd for Events {
    type Output = Events;

    fn bitand(self, others: Events) -> Events {
        Events(self.0 & others.0)
    }
}

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut names = Events::NAMES
            .iter()
            .filter(|(event, _)| self.contains(*event))
            .map(|(_, name)| *name);
        f.write_str(names.next().unwrap_or("NONE"))?;
        names.try_for_each(|name| write!(f, " | {name}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_prints_the_names_of_its_events() {
        let both = Events::READABLE | Events::WRITABLE;
        assert_eq!(format!("{both:?}"), "READABLE | WRITABLE");
        assert_eq!(format!("{:?}", Events::default()), "NONE");
        assert!(both.is_readable() && both.is_writable() && !both.contains(Events::ERROR));
        assert_eq!(both & Events::from_bits(6), Events::WRITABLE);
        assert_eq!(both.bits(), 3);
        assert!((both & Events::ERROR).is_empty());
    }
}
