//! ZMTP without I/O.
