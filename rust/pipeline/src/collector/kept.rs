//! Replies of a simulated collector, which its clients take.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use zeroxide_log::disk::simulated;

use crate::wire::Reply;

/// A reply with its connection and the number of its request.
pub(crate) type Sent = (Bytes, u64, Reply);

/// See the module text.
#[derive(Clone, Debug, Default)]
pub(super) struct Kept(Arc<Mutex<Vec<Sent>>>);

impl Kept {
    /// Keeps a reply, unless the machine has stopped.
    pub fn add(&self, route: &Bytes, id: u64, reply: Reply) {
        if simulated::is_alive() {
            self.all().push((route.clone(), id, reply));
        }
    }

    /// Takes the replies.
    pub fn take(&self) -> Vec<Sent> {
        std::mem::take(&mut *self.all())
    }

    fn all(&self) -> MutexGuard<'_, Vec<Sent>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
