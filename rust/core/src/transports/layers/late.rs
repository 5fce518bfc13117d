//! A layer for tests, and the transport `late`, which is tcp with that layer on both sides.
//!
//! The layer shakes hands, scrambles all bytes, and puts them into records. It takes whatever the kernel has, and hands
//! over one record at a time, so that most of what a reader has not read is in the layer and not in the kernel. It
//! acknowledges each record with an empty one, even if ZMTP has nothing to send.

use std::io::{self, IoSlice};
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use zeroxide_proto::socket_type::SocketType;

use super::{Layer, Phase};
use crate::error::{Error, ErrorKind, Result};
use crate::options::Options;
use crate::transports::{self, Arrival, ByteTransport, Listen, Opening, Stream, Target, Targets};

pub(crate) const HELLO: &[u8] = b"late!";
/// The longest body of a record.
const RECORD_MAX: usize = 2000;
/// Bytes for above are not taken while this many wait to be sent.
const WAITING_MAX: usize = 8 * RECORD_MAX;

/// See the module text.
#[derive(Debug)]
pub(crate) struct Late {
    phase: Phase,
    received: Vec<u8>,
    /// The rest of the record that is being handed over.
    record: Vec<u8>,
    outgoing: Vec<u8>,
    has_finished: bool,
    /// The number of acknowledgements received.
    acknowledged: Arc<AtomicUsize>,
}

impl Late {
    pub(crate) fn new() -> Late {
        Late {
            phase: Phase::Opening,
            received: Vec::new(),
            record: Vec::new(),
            outgoing: HELLO.to_vec(),
            has_finished: false,
            acknowledged: Arc::default(),
        }
    }

    /// Starts with the next record, if the current one was handed over.
    fn next_record(&mut self) {
        while self.record.is_empty() && self.phase == Phase::Open {
            let Some((head, rest)) = self.received.split_first_chunk() else {
                return;
            };
            let len = usize::from(u16::from_be_bytes(*head));
            if rest.len() < len {
                return;
            }
            self.record = rest[..len].iter().map(|byte| byte ^ 0x5a).collect();
            self.received.drain(..2 + len);
            match len {
                0 => drop(self.acknowledged.fetch_add(1, Ordering::Relaxed)),
                _ => self.outgoing.extend([0, 0]),
            }
        }
    }
}

/// A record as it goes over the wire.
pub(crate) fn record(body: &[u8]) -> Vec<u8> {
    let len = u16::try_from(body.len()).unwrap();
    let scrambled = body.iter().map(|byte| byte ^ 0x5a);
    len.to_be_bytes().into_iter().chain(scrambled).collect()
}

impl Layer for Late {
    fn phase(&self) -> Phase {
        self.phase
    }

    fn handle_input(&mut self, bytes: &[u8]) -> Result<()> {
        assert!(!self.has_input(), "it holds bytes for above");
        self.received.extend_from_slice(bytes);
        if self.phase == Phase::Opening && self.received.len() >= HELLO.len() {
            if !self.received.starts_with(HELLO) {
                return Err(Error::with(ErrorKind::Invalid, "the peer is not late"));
            }
            self.received.drain(..HELLO.len());
            self.phase = Phase::Open;
        }
        self.next_record();
        Ok(())
    }

    fn handle_end(&mut self, _: Option<io::Error>) -> Result<()> {
        match self.phase {
            Phase::Opening => Err(Error::with(
                ErrorKind::ConnectionRefused,
                "the peer ended the connection before it was late",
            )),
            _ => Ok(()),
        }
    }

    fn has_input(&self) -> bool {
        !self.record.is_empty()
    }

    fn poll_input(&mut self, buffer: &mut Vec<u8>) -> Result<()> {
        let room = buffer.capacity() - buffer.len();
        let count = self.record.len().min(room);
        buffer.extend(self.record.drain(..count));
        self.next_record();
        Ok(())
    }

    fn handle_output(&mut self, slices: &[IoSlice<'_>]) -> usize {
        assert!(self.phase == Phase::Open && !self.has_finished);
        let mut taken = 0;
        for slice in slices {
            let count = slice.len().min(RECORD_MAX);
            if count == 0 || self.outgoing.len() > WAITING_MAX {
                break;
            }
            self.outgoing.extend(record(&slice[..count]));
            taken += count;
            if count < slice.len() {
                break;
            }
        }
        taken
    }

    fn poll_transmit(&self) -> &[u8] {
        &self.outgoing
    }

    fn transmitted(&mut self, count: usize) {
        self.outgoing.drain(..count);
    }

    fn finish(&mut self) {
        self.has_finished = true;
    }
}

/// The transport.
#[derive(Default)]
pub(crate) struct LateTransport {
    /// The number of acknowledgements that connecting sockets have received.
    pub(crate) acknowledged: Arc<AtomicUsize>,
}

struct LateListener(Box<dyn Listen>);

fn tcp() -> &'static dyn ByteTransport {
    transports::find("tcp").unwrap()
}

/// Two layers: the upper one has not seen yet what the lower one holds.
fn layered(stream: Stream, acknowledged: Arc<AtomicUsize>) -> Stream {
    let upper = Late {
        acknowledged,
        ..Late::new()
    };
    stream.with_layer(Late::new()).with_layer(upper)
}

impl ByteTransport for LateTransport {
    fn scheme(&self) -> &'static str {
        "late"
    }

    fn check(&self, address: &str, socket: SocketType, bind: bool) -> Result<()> {
        tcp().check(address, socket, bind)
    }

    fn listen(&self, address: &str, options: &Options) -> Result<Box<dyn Listen>> {
        Ok(Box::new(LateListener(tcp().listen(address, options)?)))
    }

    fn targets(&self, address: &str, options: &Options) -> Result<Targets> {
        tcp().targets(address, options)
    }

    fn open(&self, address: &str, target: &Target, options: &Options) -> Result<Opening> {
        let opening = tcp().open(address, target, options)?;
        Ok(Opening {
            stream: layered(opening.stream, self.acknowledged.clone()),
            ..opening
        })
    }
}

impl Listen for LateListener {
    fn accept(&self) -> Result<Option<Arrival>> {
        let accepted = self.0.accept()?;
        Ok(accepted.map(|arrival| Ok(layered(arrival?, Arc::default()))))
    }

    fn endpoint(&self) -> String {
        self.0.endpoint().replace("tcp:", "late:")
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.0.fd()
    }
}
