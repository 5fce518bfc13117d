//! The docstrings of the Python module: `text!(Socket::send)` is that of `Socket.send` in
//! `python/zeroxide/_native.pyi`, where they are written. See `build.rs`.

include!(concat!(env!("OUT_DIR"), "/text.rs"));
