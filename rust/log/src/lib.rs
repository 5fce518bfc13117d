//! A durable log of messages: segments of framed Arrow batches with checksums, an index, retention, and groups of
//! consumers that hold it back. Files in, files out: no sockets, no Python.
