//! SURVEYOR: sends a survey to all its peers, and receives their answers until the deadline.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::time::{Duration, Instant};

use zeroxide_proto::message::Message;
use zeroxide_proto::sp;

use super::envelope::{self, Numbers};
use crate::error::{Error, ErrorKind, Result};
use crate::options::{PatternOption, SURVEY_TIMEOUT, ids};
use crate::patterns::distributor::Distributor;
use crate::patterns::fair_queue::FairQueue;
use crate::patterns::pipe_set::{DropReason, PipeSet};
use crate::patterns::{Dialogue, Pattern, PatternSpec, Priority, Turns, single_part};
use crate::pipe::PipeId;
use crate::sys::clock;

/// Number of answers that are kept for a context that does not receive them, while another context receives.
const ANSWERS_MAX: usize = 1000;

struct Surveyor {
    /// The peers that are connected.
    outbound: Distributor,
    inbound: FairQueue,
    numbers: Numbers,
    surveys: BTreeMap<u32, Survey>,
    /// The number of each context's survey.
    current: BTreeMap<u64, u32>,
    deadlines: BTreeSet<(Instant, u32)>,
    /// The context of the current call.
    context: u64,
    timeout: Option<Duration>,
}

struct Survey {
    /// Answers without their headers, found but not taken yet.
    answers: VecDeque<(Message, PipeId)>,
    due: Option<Instant>,
    /// The deadline has passed, which the application does not know yet.
    is_over: bool,
}

impl Surveyor {
    fn new() -> Surveyor {
        Surveyor {
            outbound: Distributor::default(),
            inbound: FairQueue::default(),
            // Answers to surveys of an earlier run of this program must not match.
            numbers: Numbers::new(RandomState::new().hash_one(0)),
            surveys: BTreeMap::new(),
            current: BTreeMap::new(),
            deadlines: BTreeSet::new(),
            context: 0,
            timeout: Some(SURVEY_TIMEOUT),
        }
    }

    /// The survey of the current context.
    fn survey(&mut self) -> Option<&mut Survey> {
        let number = self.current.get(&self.context)?;
        self.surveys.get_mut(number)
    }

    /// Looks for an answer to the current context's survey. Those to other surveys are kept for their contexts.
    fn look(&mut self, pipes: &mut PipeSet) {
        while self
            .survey()
            .is_some_and(|survey| survey.answers.is_empty() && !survey.is_over)
            && self.take_in(pipes)
        {}
    }

    /// Reads one message. Returns false if there is none.
    fn take_in(&mut self, pipes: &mut PipeSet) -> bool {
        let Some((mut answer, from)) = self.inbound.recv(pipes) else {
            return false;
        };
        let reason = match envelope::unwrap_number(&mut answer) {
            Err(reason) => reason,
            Ok(number) => match self.surveys.get_mut(&number) {
                Some(survey) if !survey.is_over => {
                    if survey.answers.len() < ANSWERS_MAX {
                        survey.answers.push_back((answer, from));
                        return true;
                    }
                    DropReason::HighWater
                }
                _ => DropReason::Stale,
            },
        };
        pipes.count_drop(Some(from), reason);
        true
    }

    /// Ends the survey of a context. Answers that were not taken count as dropped.
    fn cancel(&mut self, pipes: &mut PipeSet, context: u64) {
        let Some(number) = self.current.remove(&context) else {
            return;
        };
        if let Some(survey) = self.surveys.remove(&number) {
            if let Some(due) = survey.due {
                self.deadlines.remove(&(due, number));
            }
            for (_, from) in survey.answers {
                pipes.count_drop(Some(from), DropReason::Stale);
            }
        }
    }

    #[cold]
    fn is_over(&mut self, pipes: &mut PipeSet) -> Error {
        self.cancel(pipes, self.context);
        let text = match self.timeout {
            Some(timeout) => format!(
                "the survey is over: SURVEY_TIMEOUT is {} ms",
                timeout.as_millis()
            ),
            None => "the survey is over".to_owned(),
        };
        Error::with(ErrorKind::TimedOut, text)
    }
}

#[cold]
fn survey_comes_first() -> Error {
    let text = "a SURVEYOR socket must send a survey before it can receive answers";
    Error::with(ErrorKind::Fsm, text)
}

impl Pattern for Surveyor {
    fn attach(&mut self, _: &mut PipeSet, id: PipeId) {
        self.inbound.insert(id);
    }

    fn set_priority(&mut self, id: PipeId, priority: Priority) {
        self.inbound.set_priority(id, priority.recv);
    }

    fn ready(&mut self, _: &mut PipeSet, id: PipeId) {
        self.outbound.insert(id);
    }

    fn disconnected(&mut self, _: &mut PipeSet, id: PipeId) {
        self.outbound.remove(id);
    }

    fn readable(&mut self, _: &mut PipeSet, id: PipeId) {
        self.inbound.insert(id);
    }

    fn writable(&mut self, _: &mut PipeSet, id: PipeId) {
        self.outbound.writable(id);
    }

    fn far_closed(&mut self, pipes: &mut PipeSet, id: PipeId) {
        self.outbound.remove(id);
        self.inbound.far_closed(pipes, id);
        if self.current.is_empty() {
            // Without a survey, the application has no reason to receive.
            while self.take_in(pipes) {}
        }
    }

    fn detach(&mut self, _: &mut PipeSet, id: PipeId) {
        self.outbound.remove(id);
        self.inbound.remove(id);
    }

    fn send(&mut self, pipes: &mut PipeSet, message: &mut Message) -> Result<()> {
        single_part::check(message, sp::SURVEYOR)?;
        self.cancel(pipes, self.context);
        self.outbound.mark_all();
        if self.outbound.marked() == 0 {
            pipes.count_drop(None, DropReason::NoPeer);
        }
        let number = self.numbers.next();
        envelope::wrap(&number.to_be_bytes(), message);
        self.outbound.send(pipes, message);
        let due = self
            .timeout
            .and_then(|after| clock::now().checked_add(after));
        self.deadlines.extend(due.map(|due| (due, number)));
        self.current.insert(self.context, number);
        let survey = Survey {
            answers: VecDeque::new(),
            due,
            is_over: false,
        };
        self.surveys.insert(number, survey);
        Ok(())
    }

    fn recv(&mut self, pipes: &mut PipeSet, message: &mut Message) -> Result<Option<PipeId>> {
        self.look(pipes);
        let Some(survey) = self.survey() else {
            return Err(survey_comes_first());
        };
        match survey.answers.pop_front() {
            Some((answer, from)) => {
                *message = answer;
                Ok(Some(from))
            }
            None if survey.is_over => Err(self.is_over(pipes)),
            None => Err(Error::new(ErrorKind::Again)),
        }
    }

    fn can_send(&mut self, _: &mut PipeSet) -> bool {
        true
    }

    fn can_recv(&mut self, pipes: &mut PipeSet) -> bool {
        self.look(pipes);
        self.survey()
            .is_some_and(|survey| survey.is_over || !survey.answers.is_empty())
    }

    fn turns(&self) -> Turns {
        Turns::Relaxed
    }

    fn takes_back(&self) -> bool {
        self.current.contains_key(&self.context)
    }

    fn set(&mut self, _: &mut PipeSet, option: &PatternOption) -> Result<()> {
        match option {
            PatternOption::SurveyTimeout(timeout) => self.timeout = *timeout,
            _ => return Err(Error::new(ErrorKind::Invalid)),
        }
        Ok(())
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.deadlines.first().map(|(due, _)| *due)
    }

    fn handle_timeout(&mut self, pipes: &mut PipeSet, now: Instant) {
        // Answers that have arrived by now are not late.
        while self.take_in(pipes) {}
        while let Some((due, number)) = self.deadlines.first().copied()
            && due <= now
        {
            self.deadlines.pop_first();
            if let Some(survey) = self.surveys.get_mut(&number) {
                survey.is_over = true;
                survey.due = None;
            }
        }
    }

    fn enter(&mut self, context: u64) -> bool {
        self.context = context;
        true
    }

    fn end_context(&mut self, pipes: &mut PipeSet, context: u64) {
        self.cancel(pipes, context);
    }
}

pub(in crate::patterns) static SURVEYOR: PatternSpec = PatternSpec {
    single_part: true,
    dialogue: Dialogue::Asks,
    timed: true,
    options: &[ids::SURVEY_TIMEOUT],
    ..PatternSpec::new(sp::SURVEYOR, || Box::new(Surveyor::new()))
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::patterns::rig::Rig;

    /// The number of the next survey at a far end.
    fn number(rig: &mut Rig, id: PipeId) -> Vec<u8> {
        let message = rig.far_recv_message(id).expect("a survey");
        rig.settle();
        message.head()[..4].to_vec()
    }

    fn answer(rig: &mut Rig, id: PipeId, number: &[u8], body: &str) {
        rig.far_send(id, [[number, body.as_bytes()].concat()]);
        rig.settle();
    }

    #[test]
    fn every_peer_is_asked_and_may_answer() {
        let mut rig = Rig::new(&SURVEYOR);
        assert_eq!(rig.recv(), Err(ErrorKind::Fsm));
        rig.send(["nobody?"]).unwrap();
        assert_eq!(rig.dropped(DropReason::NoPeer), 1);
        assert_eq!(rig.recv(), Err(ErrorKind::Again));
        let (a, b) = (rig.accept(""), rig.accept(""));
        rig.send(["?"]).unwrap();
        let (to_a, to_b) = (number(&mut rig, a), number(&mut rig, b));
        assert_eq!(to_a, to_b);
        answer(&mut rig, b, &to_b, "b");
        answer(&mut rig, a, &to_a, "a");
        assert!(rig.can_recv());
        let mut answers = rig.recv_all();
        answers.sort();
        assert_eq!(answers, ["a", "b"]);
        assert!(!rig.can_recv());
        let error = rig.send(["1", "2"]).unwrap_err().error;
        assert_eq!(error.kind(), ErrorKind::Invalid);
    }

    #[test]
    fn answers_after_the_deadline_are_dropped() {
        let mut rig = Rig::new(&SURVEYOR);
        let id = rig.accept("");
        let before = clock::now();
        rig.send(["?"]).unwrap();
        let first = number(&mut rig, id);
        let due = rig.pattern.poll_timeout().unwrap();
        assert!(due >= before + SURVEY_TIMEOUT);
        answer(&mut rig, id, &first, "in time");
        rig.handle_timeout(due);
        answer(&mut rig, id, &first, "late");
        assert!(rig.can_recv());
        assert_eq!(rig.recv().unwrap(), ["in time"]);
        assert!(rig.can_recv(), "the end can be learned");
        assert_eq!(rig.recv(), Err(ErrorKind::TimedOut));
        assert!(!rig.can_recv());
        assert_eq!(rig.recv(), Err(ErrorKind::Fsm));
        rig.send(["again?"]).unwrap();
        assert!(!rig.can_recv());
        assert_eq!(rig.dropped(DropReason::Stale), 1);
    }

    #[test]
    fn a_new_survey_replaces_the_last_one() {
        let mut rig = Rig::new(&SURVEYOR);
        let id = rig.accept("");
        rig.set(PatternOption::SurveyTimeout(None)).unwrap();
        rig.send(["1?"]).unwrap();
        assert_eq!(rig.pattern.poll_timeout(), None);
        let first = number(&mut rig, id);
        answer(&mut rig, id, &first, "1");
        rig.send(["2?"]).unwrap();
        let second = number(&mut rig, id);
        answer(&mut rig, id, &second, "2");
        rig.far_send(id, [&b"\0"[..]]);
        rig.settle();
        assert_eq!(rig.recv_all(), ["2"]);
        assert_eq!(rig.dropped(DropReason::Stale), 1);
        assert_eq!(rig.dropped(DropReason::Malformed), 1);
    }

    #[test]
    fn each_context_gets_the_answers_to_its_own_survey() {
        let mut rig = Rig::new(&SURVEYOR);
        let id = rig.accept("");
        let mut numbers = Vec::new();
        for context in 0..2 {
            rig.pattern.enter(context);
            rig.send(["?"]).unwrap();
            numbers.push(number(&mut rig, id));
        }
        answer(&mut rig, id, &numbers[0], "to 0");
        answer(&mut rig, id, &numbers[1], "to 1");
        assert_eq!(rig.recv_all(), ["to 1"]);
        rig.pattern.enter(0);
        assert_eq!(rig.recv_all(), ["to 0"]);
        for _ in 0..ANSWERS_MAX + 2 {
            answer(&mut rig, id, &numbers[0], "more");
        }
        rig.pattern.enter(1);
        assert!(!rig.can_recv());
        assert_eq!(rig.dropped(DropReason::HighWater), 2);
        rig.pattern.end_context(&mut rig.pipes, 0);
        assert_eq!(rig.dropped(DropReason::Stale), ANSWERS_MAX as u64);
    }

    #[test]
    fn a_peer_that_leaves_is_forgotten_without_a_survey() {
        let mut rig = Rig::new(&SURVEYOR);
        let id = rig.accept("");
        rig.far_send(id, ["unasked"]);
        rig.far_close(id);
        rig.settle();
        assert!(rig.is_gone(id));
    }
}
