//! A method for each option, with the type of its value.

use std::time::Duration;

use super::Socket;
use crate::error::Result;
use crate::options::typed::{self, Typed, typed_option};
use crate::options::{Value, ids, mechanism_options, socket_options};

macro_rules! methods {
    ($($id:literal $name:ident [$($typed:tt)*]: $kind:ident, $doc:literal $(.$set:ident($($arg:expr),*))*,)*) => {
        /// Options by name, with the types of their values. [`SOCKET_OPTIONS`](crate::SOCKET_OPTIONS) lists their
        /// ranges, and which of them take effect at once. Set the others before `bind` or `connect`.
        impl Socket {
            $(typed_option!([$($typed)*] ids::$name, $doc);)*
        }
    };
}

macro_rules! methods_of_mechanisms {
    ($($name:ident [$($typed:tt)*]: $doc:literal,)*) => {
        /// Options of the security mechanisms.
        impl Socket {
            $(typed_option!([$($typed)*] ids::$name, $doc);)*
        }
    };
}

socket_options!(methods);
mechanism_options!(methods_of_mechanisms);
