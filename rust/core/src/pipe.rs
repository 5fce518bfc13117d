//! One end of a bidirectional message pipe.
//!
//! A pipe joins a socket to a session, or two sockets over inproc. Each direction is one lock-free queue of frames. A
//! message becomes visible with its last frame, so a reader never sees part of one. The high-water mark counts complete
//! messages and, if a limit of bytes is set, their bytes. A writer that reaches the mark stays ineligible until the
//! reader has read down to the low-water mark, which is half of the high-water mark, or has read [`ROOM_BYTES`] of
//! large messages.
//!
//! A pipe does not know the types of its owners. When a sleeping reader has to look again, when there is room again, or
//! when an end has closed, the owner of the far end is notified through [`PipeOwner`]. The owner decides how it reacts:
//! with a command, an eventfd or a direct write to the wire. This keeps pipe, mailbox and socket from depending on each
//! other in a circle.

mod ends;
mod far;
mod held;
mod ledger;
mod limit;
mod line;
mod losses;
mod newest;
mod presence;
mod runs;
mod weight;

use bytes::Bytes;
use zeroxide_proto::engine::PeerInfo;
use zeroxide_proto::frame::{Frame, FrameKind};
use zeroxide_proto::message::Message;
use zeroxide_queue::doorbell::Doorbell;
use zeroxide_queue::spsc::{self, Consumer, Producer};

use self::far::{FarCell, Parting};
use self::held::Held;
use self::limit::InForce;
pub use self::limit::Limit;
use self::line::Notice;
pub(crate) use self::line::{FdLoan, Line, Look};
use self::losses::Losses;
use self::newest::{Begun, Slot};
use self::presence::PresenceCell;
use self::runs::RunsCell;
pub(crate) use self::weight::Inbound;
use crate::sys::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering, fence};
use crate::sys::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// Identifies a pipe within the socket that has it. It is not reused while the socket exists.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct PipeId(pub(crate) u64);

/// An event on the far side of a pipe.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PipeEvent {
    /// Messages were published while this end's reader slept.
    Readable,
    /// The far reader has reached its low-water mark while this end waited for room.
    Writable,
    /// The far end closed. The messages that it published before can still be read.
    Closed,
    /// The connection behind the pipe finished its handshake, so [`Pipe::peer`] is current.
    Ready,
    /// The connection behind the pipe was lost. The pipe remains and becomes `Ready` again.
    Disconnected,
    /// The peer behind the far end has hung up, but messages that it sent still wait for room in the pipe.
    HungUp,
    /// Messages were handed to the kernel while this end waited for that (see [`Pipe::wait_sent`]).
    Sent,
    /// The far end gathers messages until this end's owner [asks](Pipe::ask) for them.
    Gathering,
    /// The far end has asked for the messages that are being gathered.
    Asked,
}

/// Number of bytes after which a waiting writer has room, however far the low-water mark is. Waiting for half of a
/// thousand large messages would make the allocator return their memory to the system and request it again.
const ROOM_BYTES: u64 = 1 << 20;

/// The kind of frame that marks the boundary between two connections. The engine handles commands itself, so a pipe has
/// no other use for this kind.
const LAPSE: FrameKind = FrameKind::Command;

/// Whether a message is the mark that [`Pipe::mark_lapse`] writes.
pub(crate) fn is_lapse(message: &Message) -> bool {
    message.head().kind() == LAPSE
}

/// The owner of an end of a pipe. It is called from the thread that works on the far end, possibly under that side's
/// lock, so an implementation may only enqueue, wake, or `try_lock`.
pub trait PipeOwner: Send + Sync {
    /// Handles an event of the pipe that this owner calls `id`.
    fn on_pipe(&self, id: PipeId, event: PipeEvent);

    /// Returns the connection that this owner serves with the pipe, for the thread that waits at the far end.
    fn line(self: Arc<Self>, id: PipeId) -> Option<Arc<dyn Line>> {
        let _ = id;
        None
    }
}

/// The settings of one end of a new pipe.
#[derive(Clone, Copy, Debug, Default)]
pub struct PipeConfig {
    /// The limits that this end sets for what it writes and for what it reads.
    pub limit_out: Option<Limit>,
    /// See `limit_out`.
    pub limit_in: Option<Limit>,
    /// Keep only the newest outbound message.
    pub conflate: bool,
}

/// One end of a pipe. Dropping it closes it: the far end reads everything that was flushed, and then finds the pipe
/// closed.
pub struct Pipe {
    tx: Producer<Frame>,
    rx: Consumer<Frame>,
    shared: Arc<Shared>,
    side: usize,
    /// Complete messages written and read at this end.
    written: u64,
    read: u64,
    bytes_written: u64,
    bytes_read: u64,
    /// Parts of messages, not counting one part per message.
    parts_written: u64,
    parts_read: u64,
    /// `read`, `bytes_read` and `parts_read` when the far writer's doorbell was last checked.
    read_checked: u64,
    bytes_checked: u64,
    parts_checked: u64,
    /// The far reader's count when it was last loaded. It is loaded again only if there seems to be no room, so that
    /// its cache line is not fetched for each message.
    far_read: u64,
    room: Room,
    /// Number of frames pushed of a message whose last frame is still missing.
    open_frames: usize,
    /// Number of messages that were lost and then written again, to this pipe or another one.
    resent: u64,
    /// The owner of this end has been notified of the peer.
    met: bool,
    /// How often the owner of this end has met a peer.
    meetings: u64,
    /// The application's name for the peer, whichever peer it is.
    peer_name: Option<Bytes>,
    /// How this end closes when it is dropped.
    parting: Parting,
    /// This end is closed for what it writes, and only reads what is left.
    half_closed: bool,
    notice: Notice,
    /// Messages that were read but count as unread.
    held: Held,
    /// The size of the largest datagram, if messages are sent as datagrams.
    largest: Option<usize>,
    /// The messages of a conflating pipe of which some parts are written or read.
    begun: Option<Box<Begun>>,
}

struct Shared {
    ends: [End; 2],
}

/// The writer's state relative to the high-water mark.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Room {
    /// The pipe is below the mark.
    Left,
    /// A write has reached the mark when the far reader had read this many bytes. The pipe stays full until the reader
    /// has reached the low-water mark, or has read [`ROOM_BYTES`] more.
    Full { bytes_read: u64 },
    /// The pipe has no room, whatever its reader does, because earlier messages wait elsewhere: see [`Pipe::block`].
    Blocked { bytes_read: u64 },
}

/// The state that one end shares with the other.
struct End {
    counts: Counts,
    owner: OnceLock<(Arc<dyn PipeOwner>, PipeId)>,
    /// The limit of what this end may have outstanding. Either side can change it at any time.
    limit: InForce,
    /// Armed while this end's writer waits for room.
    wants_room: Doorbell,
    /// The state of the other end, as this end sees it. It is stored here, because it is read for each message.
    far: FarCell,
    /// Number of the first messages written here that are not the application's, and their bytes.
    greeted: AtomicU64,
    greeted_bytes: AtomicU64,
    /// Whether this end is dropped. An end that is half closed counts as gone for the other one, but still reads.
    dropped: AtomicBool,
    /// Whether the peer behind the other end has hung up, and may return.
    presence: PresenceCell,
    /// How long the far side delivers after this end has closed, in milliseconds; -1 means without a limit.
    linger: AtomicI64,
    peer: Mutex<Option<Arc<PeerInfo>>>,
    /// The message that this end writes last, for the owner of the other one.
    last_words: Mutex<Option<Box<Message>>>,
    /// Of the messages this end wrote: how many the far side handed to the kernel, and how many it lost.
    sent: AtomicU64,
    losses: Losses,
    /// How many messages this end had written up to the last one that certainly never reached its peer.
    never_arrived: AtomicU64,
    wants_sent: Doorbell,
    /// Of the messages this end wrote: how many a newer one replaced in the slot, and how many were never completed.
    conflated: AtomicU64,
    torn: AtomicU64,
    /// How often this end's writer has reached the high-water mark.
    full: AtomicU64,
    /// The outbound slot, if this direction conflates.
    slot: Option<Slot>,
    runs: RunsCell,
}

/// Counts of what an end has done so far. Only that end stores here. The counts have cache lines of their own, because
/// the end stores them for each message, and the far end reads the neighbouring fields for each message.
#[derive(Default)]
#[repr(align(128))]
struct Counts {
    /// Complete messages written. A conflating pipe counts only the messages that it keeps.
    written: AtomicU64,
    /// Complete messages read.
    read: AtomicU64,
    /// Bytes of those messages.
    bytes_written: AtomicU64,
    bytes_read: AtomicU64,
    /// Their parts, not counting one part per message.
    parts_written: AtomicU64,
    parts_read: AtomicU64,
}

impl End {
    fn new(config: PipeConfig, far: PipeConfig) -> End {
        End {
            counts: Counts::default(),
            owner: OnceLock::new(),
            limit: InForce::new(config.limit_out, far.limit_in),
            wants_room: Doorbell::new(),
            far: FarCell::new(),
            greeted: AtomicU64::new(0),
            greeted_bytes: AtomicU64::new(0),
            dropped: AtomicBool::new(false),
            presence: PresenceCell::new(),
            linger: AtomicI64::new(-1),
            peer: Mutex::new(None),
            last_words: Mutex::new(None),
            sent: AtomicU64::new(0),
            losses: Losses::new(),
            never_arrived: AtomicU64::new(0),
            wants_sent: Doorbell::new(),
            conflated: AtomicU64::new(0),
            torn: AtomicU64::new(0),
            full: AtomicU64::new(0),
            slot: config.conflate.then(Slot::new),
            runs: RunsCell::new(),
        }
    }

    fn notify(&self, event: PipeEvent) {
        if let Some((owner, id)) = self.owner.get() {
            owner.on_pipe(*id, event);
        }
    }
}

impl Pipe {
    /// Creates two joined ends. `b` reads what `a` writes, and the reverse.
    pub fn pair(a: PipeConfig, b: PipeConfig) -> (Pipe, Pipe) {
        let (tx_a, rx_b) = spsc::channel();
        let (tx_b, rx_a) = spsc::channel();
        let shared = Arc::new(Shared {
            ends: [End::new(a, b), End::new(b, a)],
        });
        (
            Pipe::end(tx_a, rx_a, shared.clone(), 0),
            Pipe::end(tx_b, rx_b, shared, 1),
        )
    }

    fn end(tx: Producer<Frame>, rx: Consumer<Frame>, shared: Arc<Shared>, side: usize) -> Pipe {
        Pipe {
            tx,
            rx,
            shared,
            side,
            written: 0,
            read: 0,
            bytes_written: 0,
            bytes_read: 0,
            parts_written: 0,
            parts_read: 0,
            read_checked: 0,
            bytes_checked: 0,
            parts_checked: 0,
            far_read: 0,
            room: Room::Left,
            open_frames: 0,
            resent: 0,
            met: false,
            meetings: 0,
            peer_name: None,
            parting: Parting::default(),
            half_closed: false,
            notice: Notice::default(),
            held: Held::default(),
            largest: None,
            begun: None,
        }
    }

    fn own(&self) -> &End {
        &self.shared.ends[self.side]
    }

    fn far(&self) -> &End {
        &self.shared.ends[1 - self.side]
    }

    /// Sets the owner that is notified of events at this end. This can be done once. Earlier events are not repeated,
    /// so check [`check_read`](Self::check_read), [`is_far_closed`](Self::is_far_closed) and [`peer`](Self::peer)
    /// afterwards.
    pub fn set_owner(&self, owner: Arc<dyn PipeOwner>, id: PipeId) {
        // A second owner would be a bug of the caller. The first one stays.
        let _ = self.own().owner.set((owner, id));
        // Pairs with the fence in `drop`: either the far end finds the owner, or the owner finds the far end closed.
        fence(Ordering::SeqCst);
    }

    // ---- writing -------------------------------------------------------------------------------------------------

    /// Returns true if a message may be written: the pipe is below the high-water mark and the far end is open. If it
    /// returns false because there is no room, [`PipeEvent::Writable`] follows when the reader has reached the
    /// low-water mark. The reader checks for a waiting writer only after every half mark, and before it sleeps. So the
    /// writer may stay blocked for up to half a mark after there is room.
    #[inline]
    pub fn check_write(&mut self) -> bool {
        if self.is_far_closed() {
            return false;
        }
        if self.own().slot.is_some() {
            return true;
        }
        if self.own().limit.bytes() != 0 {
            return self.check_write_bytes();
        }
        let hwm = self.own().limit.messages();
        if hwm == 0 {
            return !self.is_blocked();
        }
        let limit = if self.is_full() {
            if self.is_blocked() {
                return false;
            }
            hwm - hwm.div_ceil(2)
        } else {
            hwm - 1
        };
        if self.written - self.far_read <= limit {
            self.room = Room::Left;
            return true;
        }
        self.far_read = self.far().counts.read.load(Ordering::Acquire);
        if self.written - self.far_read <= limit {
            self.room = Room::Left;
            return true;
        }
        self.wait_for_room()
    }

    /// Like [`check_write`](Self::check_write), for a pipe with a limit of bytes.
    #[inline(never)]
    fn check_write_bytes(&mut self) -> bool {
        if self.is_blocked() {
            return false;
        }
        if self.has_room() {
            self.room = Room::Left;
            return true;
        }
        let was_full = self.is_full();
        self.note_full();
        self.own().wants_room.arm();
        // As in `wait_for_room`.
        fence(Ordering::SeqCst);
        if self.has_room() {
            // The bell stays armed: another thread may sleep because of what an earlier look has found.
            self.room = Room::Left;
            return true;
        }
        self.count_full(was_full);
        false
    }

    /// Whether the outstanding messages are below the high-water mark or, if it was reached, at the low-water mark.
    fn has_room(&mut self) -> bool {
        self.far_read = self.far().counts.read.load(Ordering::Acquire);
        let queued = self.written - self.far_read;
        let queued_bytes = self.outstanding();
        let (messages, bytes) = (self.own().limit.messages(), self.own().limit.bytes());
        let below = |queued: u64, mark: u64| match (mark, self.is_full()) {
            (0, _) => true,
            (_, false) => queued < mark,
            (_, true) => queued <= mark / 2,
        };
        below(queued, messages) && below(queued_bytes, bytes)
    }

    #[inline]
    fn is_full(&self) -> bool {
        self.room != Room::Left
    }

    /// Returns how many bytes the far reader had read when the pipe became full.
    fn note_full(&mut self) -> u64 {
        match self.room {
            Room::Full { bytes_read } | Room::Blocked { bytes_read } => bytes_read,
            Room::Left => {
                let bytes_read = self.far().counts.bytes_read.load(Ordering::Relaxed);
                self.room = Room::Full { bytes_read };
                bytes_read
            }
        }
    }

    #[cold]
    fn wait_for_room(&mut self) -> bool {
        let was_full = self.is_full();
        let full_at = self.note_full();
        self.own().wants_room.arm();
        // The reader publishes its count, fences, then checks the bell. We arm the bell (which fences), then check the
        // count. So at least one of the two sees the other. The same holds for the limit, which may just have been
        // raised.
        fence(Ordering::SeqCst);
        self.far_read = self.far().counts.read.load(Ordering::Acquire);
        let hwm = self.own().limit.messages();
        let queued = self.written - self.far_read;
        let is_low = queued <= hwm - hwm.div_ceil(2);
        // The count is lower than before if the reader keeps a message: see `hold`.
        let bytes_read = self.far().counts.bytes_read.load(Ordering::Relaxed);
        let bytes = bytes_read.saturating_sub(full_at);
        if hwm == 0 || is_low || (queued < hwm && bytes >= ROOM_BYTES) {
            // The bell stays armed, as in `check_write_bytes`.
            self.room = Room::Left;
            return true;
        }
        self.count_full(was_full);
        false
    }

    /// Writes a complete message. It becomes visible with [`flush`](Self::flush).
    ///
    /// # Errors
    /// Returns the message if the pipe is full or the far end is closed.
    #[cfg(test)]
    pub fn write(&mut self, mut message: Message) -> Result<(), Message> {
        if !self.check_write() {
            return Err(message);
        }
        self.write_unchecked(&mut message);
        Ok(())
    }

    /// Writes a complete message for which the caller has just found room with [`check_write`](Self::check_write), or
    /// one that is exempt from the high-water mark (subscriptions, replies that must not block). The caller must drop
    /// what is left of `message`.
    #[inline]
    pub fn write_unchecked(&mut self, message: &mut Message) {
        if self.own().slot.is_some() {
            return self.replace_newest(message);
        }
        self.written += 1;
        self.bytes_written += message.size() as u64;
        if message.len() > 1 {
            self.note_parts(message.len());
        }
        self.publish_written();
        message.take_frames(|frame| self.tx.push_taken(frame));
    }

    /// Like [`write_unchecked`](Self::write_unchecked), for a message that other pipes receive too. A small body is
    /// copied straight to its place in the queue.
    #[inline]
    pub fn write_copy(&mut self, message: &Message) {
        if self.own().slot.is_some() {
            return self.write_unchecked(&mut message.clone());
        }
        self.written += 1;
        self.bytes_written += message.size() as u64;
        if message.len() > 1 {
            self.note_parts(message.len());
        }
        self.publish_written();
        if message.len() == 1 {
            self.tx.push(message.head().clone());
        } else {
            message.iter().for_each(|frame| self.tx.push(frame.clone()));
        }
    }

    /// Writes the next frame of a message. The message is complete with the frame whose `more` is unset.
    #[inline]
    pub fn write_frame(&mut self, mut frame: Frame) {
        self.write_frame_taken(&mut frame);
    }

    /// Like [`write_frame`](Self::write_frame), but takes the frame from its place and leaves a new one there.
    #[inline]
    pub fn write_frame_taken(&mut self, frame: &mut Frame) {
        if self.own().slot.is_some() {
            return self.write_newest_frame(frame);
        }
        self.bytes_written += frame.len() as u64;
        if frame.more() {
            self.open_frames += 1;
            self.parts_written += 1;
        } else {
            if self.open_frames > 0 {
                self.publish_parts();
            }
            self.open_frames = 0;
            self.written += 1;
            self.publish_written();
        }
        self.tx.push_taken(frame);
    }

    #[inline]
    fn publish_written(&self) {
        let counts = &self.own().counts;
        counts
            .bytes_written
            .store(self.bytes_written, Ordering::Relaxed);
        counts.written.store(self.written, Ordering::Release);
    }

    /// Takes back the frames of a message that will never be completed. Returns true if there were any.
    pub fn rollback(&mut self) -> bool {
        let had = self.open_frames > 0;
        if self.own().slot.is_some() {
            self.forget_begun();
            return had;
        }
        for _ in 0..self.open_frames {
            if let Some(frame) = self.tx.rollback() {
                self.bytes_written -= frame.len() as u64;
            }
        }
        self.parts_written -= self.open_frames as u64;
        self.open_frames = 0;
        had
    }

    /// Like [`rollback`](Self::rollback), for a message that was cut short by the end of its connection. It is counted
    /// as torn.
    pub fn tear(&mut self) {
        if self.rollback() {
            self.own().torn.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Publishes what was written and wakes the far reader if it sleeps. Returns true if it slept. An incomplete
    /// message stays invisible and does not hold up the messages before it.
    #[inline]
    pub fn flush(&mut self) -> bool {
        let asleep = match &self.own().slot {
            Some(slot) => slot.bell.ring(),
            None => self.tx.flush_but(self.open_frames),
        };
        if asleep {
            self.tell_readable();
        }
        asleep
    }

    /// Writes a mark after the messages of the connection that has ended. The messages after the mark are from another
    /// connection. Only for readers that recognise the mark with [`is_lapse`].
    pub fn mark_lapse(&mut self) {
        self.write_frame(Frame::with_kind(LAPSE, &[]));
        self.flush();
    }

    /// Number of frames that are written and not yet published.
    pub fn unflushed(&self) -> usize {
        self.tx.unflushed()
    }

    /// Returns true while the pipe holds frames of an incomplete message.
    pub fn in_message(&self) -> bool {
        self.open_frames > 0
    }

    // ---- reading -------------------------------------------------------------------------------------------------

    /// Returns true if a message can be read. If it returns false, the reader is asleep, and [`PipeEvent::Readable`]
    /// (or `Closed`) follows.
    #[inline]
    pub fn check_read(&mut self) -> bool {
        if let Some(slot) = &self.far().slot {
            if self.is_reading_newest() || lock(&slot.newest).is_some() {
                return true;
            }
            slot.bell.arm();
            return lock(&slot.newest).is_some();
        }
        if self.rx.peek().is_some() {
            return true;
        }
        self.publish_read();
        if self.rx.sleep() {
            false
        } else {
            self.rx.peek().is_some()
        }
    }

    /// Returns the next complete message, or `None` if none is published. Call [`check_read`](Self::check_read) to be
    /// notified of the next one.
    pub fn read(&mut self) -> Option<Message> {
        let mut message = Message::new();
        self.read_to(&mut message).then_some(message)
    }

    /// Like [`read`](Self::read), but fills an empty message in place. Returns false if there is no message.
    #[inline]
    pub fn read_to(&mut self, message: &mut Message) -> bool {
        if self.far().slot.is_some() {
            return self.read_newest(message);
        }
        if !self.rx.pop_to(message.head_mut()) {
            return false;
        }
        if message.head().more() {
            self.read_rest(message);
        }
        self.bytes_read += message.size() as u64;
        self.count_read(1);
        true
    }

    /// Returns the next frame. After the first frame of a message, the other frames can be read without a check.
    #[inline]
    pub fn read_frame(&mut self) -> Option<Frame> {
        if self.far().slot.is_some() {
            return self.read_newest_frame();
        }
        let frame = self.rx.pop()?;
        if frame.kind() == FrameKind::Run {
            self.count_run(frame.load());
            return Some(frame);
        }
        self.bytes_read += frame.len() as u64;
        if frame.more() {
            self.count_parts(1);
        } else {
            self.count_read(1);
        }
        Some(frame)
    }

    /// Returns the frame that [`read_frame`](Self::read_frame) would return, without removing it. `None` if the pipe
    /// conflates.
    #[inline]
    pub fn peek_frame(&mut self) -> Option<&Frame> {
        if self.far().slot.is_some() {
            return None;
        }
        self.rx.peek()
    }

    /// Removes the frame that [`peek_frame`](Self::peek_frame) returned. The caller passes its `len` and `more`.
    #[inline]
    pub fn skip_frame(&mut self, len: usize, more: bool) {
        drop(self.rx.pop());
        self.bytes_read += len as u64;
        if more {
            self.count_parts(1);
        } else {
            self.count_read(1);
        }
    }

    #[inline(never)]
    fn read_rest(&mut self, message: &mut Message) {
        let mut more = true;
        let mut parts = 0;
        while more {
            // Writers flush at the ends of messages only, so the other frames are there. A missing frame would end the
            // message early rather than block.
            let Some(frame) = self.rx.pop() else { break };
            more = frame.more();
            message.push(frame);
            parts += 1;
        }
        self.count_parts(parts);
    }

    #[inline]
    fn count_read(&mut self, messages: u64) {
        self.read += messages;
        // This is stored even without a limit of bytes, so that a limit that is set later counts the messages that wait
        // then.
        let counts = &self.own().counts;
        counts.bytes_read.store(self.bytes_read, Ordering::Relaxed);
        counts.read.store(self.read, Ordering::Release);
        let limit = &self.far().limit;
        let (messages, bytes) = (limit.messages(), limit.bytes());
        if (messages != 0 && self.read - self.read_checked >= messages.div_ceil(2))
            || (bytes != 0 && self.read_since_checked() >= bytes.div_ceil(2))
            || self.bytes_read - self.bytes_checked >= ROOM_BYTES
        {
            self.publish_read();
        }
    }

    /// Notifies the far writer of room if it waits for it.
    fn publish_read(&mut self) {
        if self.read == self.read_checked {
            return;
        }
        self.read_checked = self.read;
        self.bytes_checked = self.bytes_read;
        self.parts_checked = self.parts_read;
        // Pairs with the fence in `wait_for_room`.
        fence(Ordering::SeqCst);
        if self.far().wants_room.ring() {
            self.far().notify(PipeEvent::Writable);
        }
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        self.end_writing();
        // Messages that are kept have been read, so their loss is not the writer's.
        let read = self.read_and_held();
        self.own().counts.read.store(read, Ordering::Release);
        self.far().losses.end_reading();
        self.own().dropped.store(true, Ordering::Release);
        if !self.half_closed {
            self.tell_closed();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // The guarded values are replaced as a whole, so a panic elsewhere cannot leave them inconsistent.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
