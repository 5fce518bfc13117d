//! How far an application is behind with receiving: the age of the oldest message that waits for it.
//!
//! Messages carry no time, and a time for each would cost every receiver. Instead, a timer samples how many messages have
//! arrived in each pipe. If the application has not received all of them when the limit has passed since the sample, one
//! of them has waited for longer than that.

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

use crate::patterns::pipe_set::PipeSet;
use crate::pipe::PipeId;

/// The number of samples in the time that a message may wait. A message that arrives right after a sample belongs to the
/// next one, and each sample is only looked at with a later one, so a message can wait for half of the limit more.
const SAMPLES: u32 = 4;

/// Measures the lag of one socket.
pub(super) struct Lag {
    max: Duration,
    due: Instant,
    pipes: HashMap<PipeId, VecDeque<Sample>>,
}

struct Sample {
    at: Instant,
    /// The number of messages that had arrived in the pipe.
    arrived: u64,
}

impl Lag {
    /// Allows a message to wait for `max`.
    pub(super) fn new(max: Duration, now: Instant) -> Lag {
        let mut lag = Lag {
            max,
            due: now,
            pipes: HashMap::new(),
        };
        lag.set_due(now);
        lag
    }

    /// The time that a message may wait.
    pub(super) fn max(&self) -> Duration {
        self.max
    }

    /// When the next sample is due.
    pub(super) fn due(&self) -> Instant {
        self.due
    }

    /// Takes a sample, and returns the pipes in which a message has waited for too long.
    pub(super) fn look(&mut self, pipes: &mut PipeSet, now: Instant) -> Vec<PipeId> {
        self.set_due(now);
        let mut late = Vec::new();
        for id in pipes.ids() {
            let Some((read, arrived)) = pipes.progress(id) else {
                continue;
            };
            let samples = self.pipes.entry(id).or_default();
            while samples.front().is_some_and(|sample| sample.arrived <= read) {
                samples.pop_front();
            }
            let counted = samples.back().map_or(read, |sample| sample.arrived);
            let is_late = |sample: &Sample| now.duration_since(sample.at) >= self.max;
            if samples.front().is_some_and(is_late) {
                late.push(id);
            } else if arrived > counted {
                samples.push_back(Sample { at: now, arrived });
            }
        }
        late
    }

    /// Forgets a pipe that is gone, or whose messages were dropped.
    pub(super) fn forget(&mut self, id: PipeId) {
        self.pipes.remove(&id);
    }

    fn step(&self) -> Duration {
        (self.max / SAMPLES).max(Duration::from_millis(1))
    }

    fn set_due(&mut self, now: Instant) {
        self.due = now + self.step();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::patterns::pipe_set::Side;
    use crate::pipe::{Pipe, PipeConfig};
    use zeroxide_proto::message::Message;

    const MAX: Duration = Duration::from_millis(400);
    const STEP: Duration = Duration::from_millis(100);

    struct Bench {
        pipes: PipeSet,
        id: PipeId,
        far: Pipe,
        lag: Lag,
        now: Instant,
    }

    impl Bench {
        fn new(config: PipeConfig) -> Bench {
            let now = Instant::now();
            let (near, far) = Pipe::pair(PipeConfig::default(), config);
            let mut pipes = PipeSet::new();
            let id = pipes.insert(near, "test://", Side::Accepting);
            let lag = Lag::new(MAX, now);
            Bench {
                pipes,
                id,
                far,
                lag,
                now,
            }
        }

        /// Lets a step pass, in which the peer sends and the application receives. Returns whether it is late.
        fn step(&mut self, sent: usize, received: usize) -> bool {
            for _ in 0..sent {
                self.far.write(Message::from("x")).unwrap();
            }
            self.far.flush();
            for _ in 0..received {
                self.pipes.read(self.id).unwrap();
            }
            self.now += STEP;
            assert_eq!(self.lag.due(), self.now);
            !self.lag.look(&mut self.pipes, self.now).is_empty()
        }
    }

    #[test]
    fn a_message_is_late_when_it_has_waited_for_longer_than_the_limit() {
        let mut bench = Bench::new(PipeConfig::default());
        let late: Vec<bool> = (0..6).map(|_| bench.step(1, 0)).collect();
        // The first sample is taken after one step.
        assert_eq!(late, [false, false, false, false, true, true]);
        assert!(!bench.step(0, 3), "the fourth message has waited for less");
        assert!(bench.step(0, 0));
        bench.lag.forget(bench.id);
        assert!(!bench.step(0, 0));
    }

    #[test]
    fn an_application_that_keeps_up_with_some_delay_is_never_late() {
        let mut bench = Bench::new(PipeConfig::default());
        bench.step(300, 0);
        for _ in 0..50 {
            assert!(!bench.step(100, 100));
        }
        // A longer queue at the same rate is late.
        assert!(!bench.step(500, 100));
        assert!((0..6).any(|_| bench.step(100, 100)));
    }

    #[test]
    fn an_idle_application_is_never_late() {
        let mut bench = Bench::new(PipeConfig::default());
        for _ in 0..10 {
            assert!(!bench.step(0, 0));
        }
        assert!(!bench.step(1, 1));
        for _ in 0..10 {
            assert!(!bench.step(0, 0));
        }
    }

    #[test]
    fn the_newest_message_alone_is_never_late() {
        let mut bench = Bench::new(PipeConfig {
            conflate: true,
            ..PipeConfig::default()
        });
        for _ in 0..10 {
            assert!(!bench.step(10, 0));
        }
    }
}
