//! PAIR, PUSH and PULL: over both wire protocols the same, except that messages have one part here.

use zeroxide_proto::sp;

use crate::options::ids;
use crate::patterns::channel::Channel;
use crate::patterns::gather::Gather;
use crate::patterns::push::Push;
use crate::patterns::{PatternSpec, Spills};

pub(in crate::patterns) static PAIR: PatternSpec = PatternSpec {
    single_part: true,
    ..PatternSpec::new(sp::PAIR, || Box::new(Channel::new(sp::PAIR)))
};

pub(in crate::patterns) static PUSH: PatternSpec = PatternSpec {
    spills: Spills::ForAny,
    options: &[ids::SPILL_DIR, ids::SPILL_BYTES, ids::SPILL_KEEP],
    can_recv: false,
    prompt: true,
    conflates: true,
    single_part: true,
    ..PatternSpec::new(sp::PUSH, || Box::new(Push::<true>::new(sp::PUSH)))
};

pub(in crate::patterns) static PULL: PatternSpec = PatternSpec {
    can_send: false,
    conflates: true,
    single_part: true,
    ..PatternSpec::new(sp::PULL, || Box::new(Gather::default()))
};
