//! Counts what a peer still sends after the socket has closed its end.

use std::time::Instant;

use zeroxide_proto::engine::{Engine, Event};
use zeroxide_proto::error::CloseReason;
use zeroxide_proto::frame::{Frame, FrameKind};

/// The number of bytes that may be kept for a message that is not complete.
const HELD_MAX: usize = 256 << 10;

/// Decodes what was appended to the engine's input, and returns how many messages of the application end there. An
/// incomplete message that would take more than [`HELD_MAX`] bytes ends the count.
pub(super) fn refuse(engine: &mut Engine, now: Instant) -> u64 {
    engine.handle_input(now);
    let mut refused = 0;
    while let Some(event) = engine.poll_event() {
        if let Event::Frame(frame) = event {
            refused += u64::from(ends_message(&frame));
        }
    }
    if engine.is_partial() && engine.held() > HELD_MAX {
        engine.abort(CloseReason::OutOfMemory, now);
    }
    refused
}

/// Whether a message of the application ends with this frame.
pub(super) fn ends_message(frame: &Frame) -> bool {
    !frame.more() && frame.kind() == FrameKind::Data
}

#[cfg(test)]
mod tests {
    use zeroxide_proto::engine::EngineConfig;
    use zeroxide_proto::socket_type::SocketType;

    use super::*;

    /// An engine after its handshake with another one.
    fn ready() -> Engine {
        let engine = || Engine::new(EngineConfig::new(SocketType::Pair), now());
        let mut engines = [engine(), engine()];
        for turn in 0..6 {
            let (from, to) = (turn % 2, 1 - turn % 2);
            let bytes = transmit(&mut engines[from]);
            engines[to].input().extend_from_slice(&bytes);
            engines[to].handle_input(now());
            while engines[to].poll_event().is_some() {}
        }
        let [engine, _] = engines;
        assert!(engine.is_ready());
        engine
    }

    fn now() -> Instant {
        crate::sys::clock::now()
    }

    fn transmit(engine: &mut Engine) -> Vec<u8> {
        let mut slices = Vec::new();
        engine.poll_transmit(&mut slices, 1 << 20);
        let bytes: Vec<u8> = slices.iter().flat_map(|slice| slice.to_vec()).collect();
        drop(slices);
        engine.transmitted(bytes.len(), now());
        bytes
    }

    fn refuse_bytes(engine: &mut Engine, bytes: &[u8]) -> u64 {
        engine.input().extend_from_slice(bytes);
        refuse(engine, now())
    }

    #[test]
    fn messages_count_at_their_ends() {
        let mut engine = ready();
        assert_eq!(refuse_bytes(&mut engine, &[0, 1, b'a', 1, 1, b'b']), 1);
        // The rest of the second one, a PING, and a third.
        assert_eq!(refuse_bytes(&mut engine, &[0, 0]), 1);
        let ping = b"\x04\x07\x04PING\x00\x00\x00\x01c";
        assert_eq!(refuse_bytes(&mut engine, ping), 1);
    }

    #[test]
    fn a_large_message_is_not_kept_for_the_count() {
        let mut engine = ready();
        let mut header = vec![2];
        header.extend(u64::to_be_bytes(1 << 40));
        assert_eq!(refuse_bytes(&mut engine, &header), 0);
        for _ in 0..1000 {
            assert_eq!(refuse_bytes(&mut engine, &[0; 1000]), 0);
            assert!(engine.held() < 3 * HELD_MAX, "{} bytes", engine.held());
        }
    }
}
