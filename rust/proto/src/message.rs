//! [`Message`]: one or more frames that are delivered together.

use crate::frame::Frame;
use bytes::Bytes;
use std::collections::{TryReserveError, VecDeque, vec_deque};
use std::fmt;
use std::iter;

/// The memory of a part in addition to its bytes, in a queue or in a message. A limit that counted bytes only would not
/// limit empty parts.
pub const PART: usize = size_of::<Frame>();

/// The maximum length of the name of a group, which has no zero byte.
pub const GROUP_MAX: usize = 255;

/// One or more frames that are delivered together or not at all.
///
/// A message always has at least one frame. A single frame needs no heap block; further frames are stored in a separate
/// allocation, so that ordinary messages are cheap to move. The `more` flag of every frame is kept correct: set on all
/// but the last.
// The first frame lies at a multiple of 16 bytes and moves in steps of 16: no step crosses a cache line. One that does
// makes the next read of it wait, which cost up to a tenth of a call, depending on where the stack began.
#[derive(Clone, Default)]
#[repr(C, align(16))]
pub struct Message {
    head: Frame,
    /// What most messages do not have: one word in each of them.
    rest: Option<Box<Rest>>,
}

/// The frames after the first, and labels.
#[derive(Clone, Default)]
struct Rest {
    // A deque, because envelopes are added and removed at the front, and a peer decides how many frames there are.
    frames: VecDeque<Frame>,
    /// 0 = none.
    routing_id: u32,
    /// A frame, because it is one on its way between RADIO and DISH. It has a block of its own, because messages without
    /// a group pay for the size of this struct, too: those of ROUTER took 25 % more instructions.
    group: Option<Box<Frame>>,
}

impl Rest {
    fn is_empty(&self) -> bool {
        self.frames.is_empty() && self.routing_id == 0 && self.group.is_none()
    }
}

impl Message {
    /// A message of one empty frame.
    pub const fn new() -> Message {
        Message {
            head: Frame::new(),
            rest: None,
        }
    }

    /// A message of one frame.
    #[inline]
    pub fn single(mut frame: Frame) -> Message {
        settle_more(&mut frame, false);
        Message {
            head: frame,
            rest: None,
        }
    }

    /// Makes an empty message one of a single frame with a copy of `body`, without moving the frame once it was written.
    ///
    /// # Errors
    /// There is no memory for the copy.
    #[inline]
    pub fn try_fill(&mut self, body: &[u8]) -> Result<(), TryReserveError> {
        debug_assert!(self.rest.is_none(), "an empty message");
        self.head.try_fill(body)
    }

    /// A message of these frames; of one empty frame when there are none.
    pub fn from_frames(frames: impl IntoIterator<Item = Frame>) -> Message {
        let mut frames = frames.into_iter();
        let Some(head) = frames.next() else {
            return Message::new();
        };
        let mut message = Message::single(head);
        for frame in frames {
            message.push(frame);
        }
        message
    }

    /// Like [`from_frames`](Message::from_frames), without moving the frames, of which there may be any number.
    pub fn from_vec(frames: Vec<Frame>) -> Message {
        let mut rest = VecDeque::from(frames);
        let Some(mut head) = rest.pop_front() else {
            return Message::new();
        };
        settle_more(&mut head, !rest.is_empty());
        let mut left = rest.len();
        for frame in &mut rest {
            left -= 1;
            settle_more(frame, left > 0);
        }
        let rest = (!rest.is_empty()).then(|| {
            Box::new(Rest {
                frames: rest,
                ..Rest::default()
            })
        });
        Message { head, rest }
    }

    /// The routing id: of the peer that sent it, if SERVER or PEER received it, or of the peer that must get it. 0 is no
    /// routing id.
    pub fn routing_id(&self) -> Option<u32> {
        let id = self.rest.as_ref()?.routing_id;
        (id != 0).then_some(id)
    }

    /// Sets the routing id, which types other than SERVER and PEER ignore; 0 removes it.
    pub fn set_routing_id(&mut self, routing_id: u32) {
        self.label(|rest| rest.routing_id = routing_id);
    }

    /// The message with a routing id, as SERVER and PEER send it.
    ///
    /// ```
    /// # use zeroxide_proto::message::Message;
    /// assert_eq!(Message::from("reply").with_routing_id(7).routing_id(), Some(7));
    /// ```
    pub fn with_routing_id(mut self, routing_id: u32) -> Message {
        self.set_routing_id(routing_id);
        self
    }

    /// The group: that to which RADIO sends it, or from which DISH received it.
    pub fn group(&self) -> Option<&[u8]> {
        Some(self.rest.as_ref()?.group.as_ref()?.as_slice())
    }

    /// Sets the group, which types other than RADIO ignore. It has at most [`GROUP_MAX`] bytes, none of which is zero.
    pub fn set_group(&mut self, group: impl Into<Frame>) {
        let group = Box::new(group.into());
        self.label(|rest| rest.group = Some(group));
    }

    /// Turns the group into a frame in front of the others: the form in which RADIO's messages travel. A message
    /// without a group gets an empty frame.
    pub fn group_to_front(&mut self) {
        let group = self.rest.as_mut().and_then(|rest| rest.group.take());
        self.push_front(*group.unwrap_or_default());
    }

    /// Turns the first frame into the group. Does nothing to a message of one frame.
    pub fn front_to_group(&mut self) {
        let Some(rest) = self.rest.as_mut() else {
            return;
        };
        if let Some(second) = rest.frames.pop_front() {
            let mut group = std::mem::replace(&mut self.head, second);
            group.set_more(false);
            rest.group = Some(Box::new(group));
        }
    }

    /// The message with a group, as RADIO sends it.
    ///
    /// ```
    /// # use zeroxide_proto::message::Message;
    /// let message = Message::from("4.5").with_group("weather");
    /// assert_eq!(message.group(), Some(&b"weather"[..]));
    /// ```
    pub fn with_group(mut self, group: impl AsRef<[u8]>) -> Message {
        self.set_group(group.as_ref());
        self
    }

    /// Whether it has a routing id or a group.
    #[inline]
    pub fn has_labels(&self) -> bool {
        let is_labelled = |rest: &Rest| rest.routing_id != 0 || rest.group.is_some();
        self.rest.as_deref().is_some_and(is_labelled)
    }

    /// Removes the routing id and the group.
    pub fn remove_labels(&mut self) {
        if self.rest.is_some() {
            self.label(|rest| {
                rest.routing_id = 0;
                rest.group = None;
            });
        }
    }

    fn label(&mut self, change: impl FnOnce(&mut Rest)) {
        let mut rest = self.rest.take().unwrap_or_default();
        change(&mut rest);
        self.rest = (!rest.is_empty()).then_some(rest);
    }

    /// Adds a frame at the end.
    pub fn push(&mut self, mut frame: Frame) {
        self.last_mut().set_more(true);
        frame.set_more(false);
        self.rest.get_or_insert_default().frames.push_back(frame);
    }

    /// Adds a frame at the front.
    pub fn push_front(&mut self, mut frame: Frame) {
        frame.set_more(true);
        let second = std::mem::replace(&mut self.head, frame);
        self.rest.get_or_insert_default().frames.push_front(second);
    }

    /// Removes the first frame. `None` if only one is left, because a message always has one.
    pub fn pop_front(&mut self) -> Option<Frame> {
        let rest = self.rest.as_mut()?;
        let second = rest.frames.pop_front()?;
        if rest.is_empty() {
            self.rest = None;
        }
        Some(std::mem::replace(&mut self.head, second))
    }

    /// Number of frames; at least one.
    #[inline]
    #[expect(
        clippy::len_without_is_empty,
        reason = "a message always has a frame, so is_empty would mislead"
    )]
    pub fn len(&self) -> usize {
        1 + self.rest.as_ref().map_or(0, |rest| rest.frames.len())
    }

    /// Bytes in all bodies.
    #[inline]
    pub fn size(&self) -> usize {
        match &self.rest {
            None => self.head.len(),
            Some(rest) => self.head.len() + size_of_rest(&rest.frames),
        }
    }

    /// Its memory, as counted by limits: the bytes, and [`PART`] for each part.
    pub fn weight(&self) -> u64 {
        (self.size() + PART * self.len()) as u64
    }

    /// The first frame.
    #[inline]
    pub fn head(&self) -> &Frame {
        &self.head
    }

    /// The first frame.
    #[inline]
    pub fn head_mut(&mut self) -> &mut Frame {
        &mut self.head
    }

    /// The last frame; the first one when there is only one.
    #[inline]
    pub fn last(&self) -> &Frame {
        match &self.rest {
            Some(rest) => rest.frames.back().unwrap_or(&self.head),
            None => &self.head,
        }
    }

    /// The first frame, without the others.
    #[inline]
    pub fn into_head(mut self) -> Frame {
        self.head.set_more(false);
        self.head
    }

    /// Passes the frames in order by reference, so that a small body is copied only once, to its destination. `more` is
    /// set on all but the last, whatever the flags were. One frame remains, which is empty if it was taken.
    #[inline]
    pub fn take_frames(&mut self, mut take: impl FnMut(&mut Frame)) {
        let more = self
            .rest
            .as_ref()
            .is_some_and(|rest| !rest.frames.is_empty());
        settle_more(&mut self.head, more);
        take(&mut self.head);
        if let Some(rest) = self.rest.take() {
            take_rest(rest.frames, take);
        }
    }

    /// The frame at `index`, counted from zero.
    pub fn get(&self, index: usize) -> Option<&Frame> {
        match index.checked_sub(1) {
            None => Some(&self.head),
            Some(index) => self.rest.as_ref()?.frames.get(index),
        }
    }

    /// The frames in order.
    pub fn iter(&self) -> Iter<'_> {
        Iter {
            frames: iter::once(&self.head).chain(self.frames_of_rest().into_iter().flatten()),
            left: self.len(),
        }
    }

    /// The frames in order, to change their bodies or kinds.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Frame> {
        let rest = self.rest.as_deref_mut().map(|rest| &mut rest.frames);
        iter::once(&mut self.head).chain(rest.into_iter().flatten())
    }

    #[inline]
    fn frames_of_rest(&self) -> Option<&VecDeque<Frame>> {
        self.rest.as_deref().map(|rest| &rest.frames)
    }

    #[inline]
    fn last_mut(&mut self) -> &mut Frame {
        match &mut self.rest {
            Some(rest) => rest.frames.back_mut().unwrap_or(&mut self.head),
            None => &mut self.head,
        }
    }
}

// The frames after the first have separate functions, so that the code for most messages stays short.

#[inline(never)]
fn size_of_rest(rest: &VecDeque<Frame>) -> usize {
    rest.iter().map(Frame::len).sum()
}

#[inline(never)]
fn take_rest(mut rest: VecDeque<Frame>, mut take: impl FnMut(&mut Frame)) {
    let mut left = rest.len();
    for frame in &mut rest {
        left -= 1;
        frame.set_more(left > 0);
        take(frame);
    }
}

/// Sets the flag unless it is correct. Writing it would delay the next copy of the frame.
#[inline]
fn settle_more(frame: &mut Frame, more: bool) {
    if frame.more() != more {
        frame.set_more(more);
    }
}

impl PartialEq for Message {
    fn eq(&self, other: &Message) -> bool {
        self.len() == other.len()
            && self.iter().eq(other.iter())
            && self.routing_id() == other.routing_id()
            && self.group() == other.group()
    }
}

impl Eq for Message {}

impl fmt::Debug for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A peer decides how many frames there are, and a log line must stay short.
        const SHOWN: usize = 8;
        let mut list = f.debug_list();
        list.entries(self.iter().take(SHOWN));
        if self.len() > SHOWN {
            list.entry(&format_args!("... {} frames", self.len()));
        }
        if let Some(routing_id) = self.routing_id() {
            list.entry(&format_args!("for or from {routing_id}"));
        }
        if let Some(group) = self.group() {
            list.entry(&format_args!("in \"{}\"", group.escape_ascii()));
        }
        list.finish()
    }
}

impl<F: Into<Frame>> FromIterator<F> for Message {
    fn from_iter<I: IntoIterator<Item = F>>(frames: I) -> Message {
        Message::from_frames(frames.into_iter().map(Into::into))
    }
}

impl From<Frame> for Message {
    #[inline]
    fn from(frame: Frame) -> Message {
        Message::single(frame)
    }
}

impl From<&[u8]> for Message {
    #[inline]
    fn from(body: &[u8]) -> Message {
        let mut message = Message::new();
        message.head.fill(body);
        message
    }
}

impl From<&str> for Message {
    fn from(body: &str) -> Message {
        Message::single(Frame::from(body))
    }
}

impl<const N: usize> From<&[u8; N]> for Message {
    #[inline]
    fn from(body: &[u8; N]) -> Message {
        Message::from(body.as_slice())
    }
}

impl From<String> for Message {
    fn from(body: String) -> Message {
        Message::single(Frame::from(body))
    }
}

impl From<Bytes> for Message {
    fn from(body: Bytes) -> Message {
        Message::single(Frame::from(body))
    }
}

impl From<Vec<u8>> for Message {
    fn from(body: Vec<u8>) -> Message {
        Message::single(Frame::from(body))
    }
}

/// A message of several frames.
impl<F: Into<Frame>, const N: usize> From<[F; N]> for Message {
    fn from(frames: [F; N]) -> Message {
        Message::from_iter(frames)
    }
}

/// A message of several frames.
impl<F: Into<Frame>> From<Vec<F>> for Message {
    fn from(frames: Vec<F>) -> Message {
        Message::from_iter(frames)
    }
}

/// The frames of a borrowed [`Message`] in order.
#[derive(Clone)]
pub struct Iter<'a> {
    frames: iter::Chain<
        iter::Once<&'a Frame>,
        iter::Flatten<std::option::IntoIter<&'a VecDeque<Frame>>>,
    >,
    left: usize,
}

impl<'a> Iterator for Iter<'a> {
    type Item = &'a Frame;

    fn next(&mut self) -> Option<&'a Frame> {
        let frame = self.frames.next()?;
        self.left -= 1;
        Some(frame)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for Iter<'_> {}

impl<'a> IntoIterator for &'a Message {
    type Item = &'a Frame;
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Iter<'a> {
        self.iter()
    }
}

/// The frames of a [`Message`] in order; `more` is set on all but the last, whatever the flags were.
pub struct IntoIter {
    head: Option<Frame>,
    rest: vec_deque::IntoIter<Frame>,
}

impl Iterator for IntoIter {
    type Item = Frame;

    #[inline]
    fn next(&mut self) -> Option<Frame> {
        let mut frame = match self.head.take() {
            Some(head) => head,
            None => self.rest.next()?,
        };
        frame.set_more(self.rest.len() > 0);
        Some(frame)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = usize::from(self.head.is_some()) + self.rest.len();
        (left, Some(left))
    }
}

impl ExactSizeIterator for IntoIter {}

impl IntoIterator for Message {
    type Item = Frame;
    type IntoIter = IntoIter;

    fn into_iter(self) -> IntoIter {
        IntoIter {
            head: Some(self.head),
            rest: self
                .rest
                .map_or_else(VecDeque::new, |rest| rest.frames)
                .into_iter(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bodies(message: &Message) -> Vec<&[u8]> {
        message.iter().map(Frame::as_slice).collect()
    }

    fn flags(message: &Message) -> Vec<bool> {
        message.iter().map(Frame::more).collect()
    }

    #[test]
    fn a_message_is_80_bytes() {
        assert_eq!(size_of::<Message>(), 80);
    }

    #[test]
    fn there_is_always_one_frame() {
        for mut message in [Message::new(), Message::default(), Message::from_frames([])] {
            assert_eq!(message.len(), 1);
            assert_eq!(message.size(), 0);
            assert!(message.pop_front().is_none());
            assert_eq!(message.len(), 1);
            assert_eq!(message.into_iter().len(), 1);
        }
    }

    #[test]
    fn frames_keep_their_order_and_flags() {
        let mut message = Message::from_iter(["b", "c"]);
        message.push(Frame::from("d"));
        message.push_front(Frame::from("a"));
        assert_eq!(bodies(&message), [b"a", b"b", b"c", b"d"]);
        assert_eq!(flags(&message), [true, true, true, false]);
        let mut taken = Vec::new();
        let mut given = message.clone();
        given.take_frames(|frame| taken.push(std::mem::take(frame)));
        assert_eq!(given, Message::new());
        assert!(message.iter().eq(&taken));
        assert_eq!(message.len(), 4);
        assert_eq!(message.size(), 4);
        assert_eq!(message.head(), message.get(0).unwrap());
        assert_eq!(message.get(3), Some(message.last()));
        assert!(message.get(4).is_none());

        let front = message.pop_front().unwrap();
        assert_eq!((&front[..], front.more()), (&b"a"[..], true));
        assert_eq!(bodies(&message), [b"b", b"c", b"d"]);
        assert_eq!(flags(&message), [true, true, false]);
    }

    #[test]
    fn flags_are_set_by_place_on_the_way_out() {
        let mut message = Message::from_iter(["a", "b"]);
        message.head_mut().set_more(false);
        for frame in message.iter_mut() {
            frame.set_more(!frame.more());
        }
        let out: Vec<bool> = message.into_iter().map(|frame| frame.more()).collect();
        assert_eq!(out, [true, false]);
    }

    #[test]
    fn frames_in_a_vec_become_the_same_message() {
        for count in 0..4 {
            let frames = || (0..count).map(|n| Frame::from(vec![n; 3]));
            let message = Message::from_vec(frames().collect());
            assert_eq!(message, Message::from_frames(frames()));
            assert_eq!(flags(&message), flags(&Message::from_frames(frames())));
            assert_eq!(message.rest.is_some(), count > 1);
        }
    }

    #[test]
    fn bodies_of_any_type_and_lists_of_them_are_messages() {
        let one: [Message; 7] = [
            "body".into(),
            "body".to_owned().into(),
            b"body".into(),
            b"body".as_slice().into(),
            b"body".to_vec().into(),
            Bytes::from_static(b"body").into(),
            Frame::from("body").into(),
        ];
        for message in one {
            assert_eq!(message, Message::from_frames([Frame::from("body")]));
        }
        let three: [Message; 5] = [
            ["a", "b", "c"].into(),
            vec!["a", "b", "c"].into(),
            vec!["a".to_owned(), "b".to_owned(), "c".to_owned()].into(),
            [b"a", b"b", b"c"].into(),
            [Bytes::from("a"), "b".into(), "c".into()].into(),
        ];
        for message in three {
            assert_eq!(bodies(&message), [b"a", b"b", b"c"]);
            assert_eq!(flags(&message), [true, true, false]);
        }
        assert_eq!(Message::from(Vec::<Frame>::new()), Message::new());
    }

    #[test]
    fn a_single_frame_loses_a_stale_more_flag() {
        let mut frame = Frame::from("a");
        frame.set_more(true);
        assert!(!Message::single(frame).head().more());
    }

    #[test]
    fn popping_down_to_one_frame_releases_the_rest() {
        let mut message = Message::from_iter(["a", "b"]);
        message.pop_front();
        assert!(message.rest.is_none());
        assert!(!message.head().more());
        assert_eq!(message, Message::from("b"));
        assert_eq!(&message.into_head()[..], b"b");
    }

    #[test]
    fn a_group_travels_as_the_first_frame() {
        let labelled = Message::from("body").with_group("g");
        let mut travelling = labelled.clone();
        travelling.group_to_front();
        assert_eq!(travelling, Message::from_iter(["g", "body"]));
        assert!(travelling.head().more() && !travelling.has_labels());
        travelling.front_to_group();
        assert_eq!(travelling, labelled);
        assert!(!travelling.head().more());
        travelling.front_to_group();
        assert_eq!(travelling, labelled, "one frame is the body");
        let mut without = Message::from("body");
        without.group_to_front();
        assert_eq!(without, Message::from_iter(["", "body"]));
    }

    #[test]
    fn labels_are_not_frames() {
        let plain = Message::from("body");
        let labelled = plain.clone().with_routing_id(7).with_group("g");
        assert_eq!((labelled.len(), labelled.size()), (1, 4));
        assert!(labelled.has_labels() && !plain.has_labels());
        assert!(!Message::from_iter(["a", "b"]).has_labels());
        assert_eq!(labelled.routing_id(), Some(7));
        assert_eq!(labelled.group(), Some(&b"g"[..]));
        assert_ne!(labelled, plain);
        assert!(!labelled.clone().head().more());
        assert_eq!(labelled.iter().len(), 1);
        assert_eq!(labelled.clone().into_iter().len(), 1);
        let mut more = labelled.clone();
        more.push_front(Frame::from("front"));
        assert_eq!(more.pop_front().as_deref(), Some(&b"front"[..]));
        assert!(more.pop_front().is_none());
        assert_eq!(more, labelled);
        more.take_frames(|frame| assert!(!frame.more()));
        let mut bare = labelled;
        bare.set_routing_id(0);
        assert_eq!((bare.routing_id(), bare.group()), (None, Some(&b"g"[..])));
        bare.remove_labels();
        assert!(bare.rest.is_none());
        assert_eq!(bare, plain);
    }

    #[test]
    fn iterators_know_their_length() {
        let message = Message::from_iter(["a", "b", "c"]);
        let mut iter = message.iter();
        iter.next();
        assert_eq!(iter.len(), 2);
        let mut iter = message.into_iter();
        iter.next();
        assert_eq!(iter.len(), 2);
    }
}
