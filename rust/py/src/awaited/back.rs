//! Giving back messages that were received for a call but did not reach the program.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyTuple};
use zeroxide::binding::{PartsReceiver, Receipt, Receipts, SocketInternals};
use zeroxide::{Frame as CoreFrame, Message, PeerInfo, Socket as CoreSocket};

use crate::buffer;
use crate::frame::Frame;

pub(super) type Peer = Option<Arc<PeerInfo>>;

/// How to give back the message of a call, if it does not reach the program.
pub(crate) enum Back {
    /// The call's value is a copy of the message, and this is its receipt.
    Copied(Receipt),
    /// The call's value is a list of copies of the messages.
    CopiedBatch(Box<Receipts>),
    /// The value is not a copy, so the original is kept.
    Kept(Box<Kept>),
}

/// The original that was received.
pub(crate) enum Kept {
    Parts(KeptParts),
    Message(Message, Receipt),
    Batch(Vec<Message>, Receipts),
}

/// A part of a message, or all its remaining parts.
pub(crate) struct KeptParts {
    /// Parts with a lower order were received earlier.
    order: u64,
    /// The thread that received the parts. They go back to it, whichever thread gives them back.
    receiver: Option<PartsReceiver>,
    parts: Vec<CoreFrame>,
    peer: Peer,
}

impl Back {
    #[cold]
    pub(super) fn parts(parts: Vec<CoreFrame>, peer: Peer) -> Back {
        static ORDER: AtomicU64 = AtomicU64::new(0);
        Back::Kept(Box::new(Kept::Parts(KeptParts {
            order: ORDER.fetch_add(1, Ordering::Relaxed),
            receiver: PartsReceiver::current(),
            parts,
            peer,
        })))
    }

    /// Gives back the message itself, because a copy of its body is not enough.
    #[cold]
    pub(super) fn message(message: Message, receipt: Receipt) -> Back {
        Back::Kept(Box::new(Kept::Message(message, receipt)))
    }

    /// Gives back the messages of a batch. The call's value is a list of copies of them.
    pub(super) fn batch(batch: Vec<Message>, receipts: Receipts) -> Back {
        if batch.iter().any(Message::has_labels) {
            return Back::Kept(Box::new(Kept::Batch(batch, receipts)));
        }
        Back::CopiedBatch(Box::new(receipts))
    }

    /// The part of a call's value that [`give_back`](Self::give_back) needs, if a program's function makes another
    /// value from it. A list is copied, because the function may change it.
    pub(crate) fn original<'py>(&self, value: &Bound<'py, PyAny>) -> Bound<'py, PyAny> {
        match (self, value.cast::<PyList>()) {
            (Back::Copied(_) | Back::CopiedBatch(_), Ok(list)) => list.to_tuple().into_any(),
            _ => value.clone(),
        }
    }

    /// Puts the message back in its old position.
    pub(crate) fn give_back(self, core: &CoreSocket, value: &Bound<'_, PyAny>) {
        match self {
            Back::Copied(receipt) => match message_of(value) {
                Ok(message) => core.give_back_received(vec![(message, receipt)]),
                // There is not enough memory for the copy.
                Err(error) => error.write_unraisable(value.py(), None),
            },
            Back::CopiedBatch(receipts) => match messages_of(value) {
                Ok(messages) => give_back_batch(core, messages, *receipts),
                Err(error) => error.write_unraisable(value.py(), None),
            },
            Back::Kept(kept) => kept.give_back(core),
        }
    }
}

pub(super) fn give_back_batch(core: &CoreSocket, messages: Vec<Message>, receipts: Receipts) {
    core.give_back_received(messages.into_iter().zip(receipts.each()).collect());
}

impl Kept {
    fn give_back(self, core: &CoreSocket) {
        match self {
            Kept::Message(message, receipt) => core.give_back_received(vec![(message, receipt)]),
            Kept::Batch(batch, receipts) => give_back_batch(core, batch, receipts),
            Kept::Parts(kept) => {
                if let Some(receiver) = kept.receiver {
                    core.give_back_parts(&receiver, kept.order, kept.parts, kept.peer);
                }
            }
        }
    }
}

/// Rebuilds the message from its copy.
#[cold]
fn message_of(value: &Bound<'_, PyAny>) -> PyResult<Message> {
    let frame = |part: &Bound<'_, PyAny>| match part.cast::<PyBytes>() {
        Ok(bytes) => buffer::copy_of(bytes.as_bytes()),
        Err(_) => part.cast::<Frame>()?.get().body(),
    };
    if !value.is_instance_of::<PyList>() && !value.is_instance_of::<PyTuple>() {
        return Ok(Message::single(frame(value)?));
    }
    let mut frames = Vec::new();
    for part in value.try_iter()? {
        frames.push(frame(&part?)?);
    }
    Ok(Message::from_vec(frames))
}

#[cold]
fn messages_of(values: &Bound<'_, PyAny>) -> PyResult<Vec<Message>> {
    let values = values.try_iter()?;
    values.map(|value| message_of(&value?)).collect()
}
