//! SURVEYOR: sends a survey to all its peers, and receives their answers until the deadline.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
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
use crate::sys::{chance, clock};

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
    /// Answers without their headers, found but not taken yet. Their pipes [hold](PipeSet::hold) them.
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
            numbers: Numbers::new(chance::number()),
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

    /// Looks for an answer to the current context's survey, unless one was found.
    fn look(&mut self, pipes: &mut PipeSet) {
        let Some(number) = self.current.get(&self.context).copied() else {
            return;
        };
        let is_open = |survey: &Survey| survey.answers.is_empty() && !survey.is_over;
        if self.surveys.get(&number).is_some_and(is_open)
            && let Some((answer, from)) = self.take_in(pipes, Some(number))
        {
            self.keep(pipes, number, answer, from, true);
        }
    }

    /// Reads messages until one answers the survey `wanted`. Those to other surveys are kept for their contexts.
    fn take_in(&mut self, pipes: &mut PipeSet, wanted: Option<u32>) -> Option<(Message, PipeId)> {
        loop {
            let (mut answer, from) = self.inbound.recv(pipes)?;
            match self.answered(&mut answer) {
                Ok(number) if Some(number) == wanted => return Some((answer, from)),
                Ok(number) => self.keep(pipes, number, answer, from, false),
                Err(reason) => pipes.count_drop(Some(from), reason),
            }
        }
    }

    /// Removes the header of an answer, and returns the number of its survey.
    fn answered(&self, answer: &mut Message) -> std::result::Result<u32, DropReason> {
        let number = envelope::unwrap_number(answer)?;
        match self.surveys.get(&number) {
            Some(survey) if !survey.is_over => Ok(number),
            _ => Err(DropReason::Stale),
        }
    }

    /// Keeps an answer for the context of its survey. A context that does not receive must not stop the others, so the
    /// answer is dropped if too many of its peer are kept, unless it `is_next`.
    fn keep(
        &mut self,
        pipes: &mut PipeSet,
        number: u32,
        answer: Message,
        from: PipeId,
        is_next: bool,
    ) {
        match self.surveys.get_mut(&number) {
            Some(survey) if pipes.hold(from, &answer, is_next) => {
                survey.answers.push_back((answer, from));
            }
            _ => pipes.count_drop(Some(from), DropReason::HighWater),
        }
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
            for (answer, from) in survey.answers {
                pipes.count_drop(Some(from), DropReason::Stale);
                pipes.release(from, &answer);
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
            self.take_in(pipes, None);
        }
    }

    fn detach(&mut self, _: &mut PipeSet, id: PipeId) {
        self.outbound.remove(id);
        self.inbound.remove(id);
        for survey in self.surveys.values_mut() {
            survey.answers.retain(|(_, from)| *from != id);
        }
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
        let number = self.current.get(&self.context).copied();
        let Some(survey) = self.survey() else {
            return Err(survey_comes_first());
        };
        let (answer, from) = match survey.answers.pop_front() {
            Some((answer, from)) => {
                pipes.release(from, &answer);
                (answer, from)
            }
            None if survey.is_over => return Err(self.is_over(pipes)),
            None => match self.take_in(pipes, number) {
                Some(found) => found,
                None => return Err(Error::new(ErrorKind::Again)),
            },
        };
        *message = answer;
        Ok(Some(from))
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
        self.take_in(pipes, None);
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
    use crate::patterns::DoomReason;
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
        answer(&mut rig, id, &numbers[0], "more");
        rig.pattern.enter(1);
        assert!(!rig.can_recv());
        rig.pattern.end_context(&mut rig.pipes, 0);
        assert_eq!(rig.dropped(DropReason::Stale), 1);
    }

    /// The other context reads it, because its own survey goes on.
    #[test]
    fn a_late_answer_that_another_context_reads_is_dropped() {
        let mut rig = Rig::new(&SURVEYOR);
        let id = rig.accept("");
        rig.send(["over?"]).unwrap();
        let over = number(&mut rig, id);
        let due = rig.pattern.poll_timeout().unwrap();
        rig.set(PatternOption::SurveyTimeout(None)).unwrap();
        rig.pattern.enter(1);
        rig.send(["going on?"]).unwrap();
        let going_on = number(&mut rig, id);
        rig.handle_timeout(due);
        answer(&mut rig, id, &over, "late");
        answer(&mut rig, id, &going_on, "in time");
        assert_eq!(rig.recv_all(), ["in time"]);
        assert_eq!(rig.dropped(DropReason::Stale), 1);
        rig.pattern.enter(0);
        assert_eq!(rig.recv(), Err(ErrorKind::TimedOut));
    }

    #[test]
    fn answers_that_no_context_takes_count_for_the_mark_and_stop_no_other_context() {
        let mut rig = Rig::with_hwm(&SURVEYOR, 4);
        let id = rig.accept("");
        let mut numbers = Vec::new();
        for context in 0..2 {
            rig.pattern.enter(context);
            rig.send(["?"]).unwrap();
            numbers.push(number(&mut rig, id));
        }
        for _ in 0..20 {
            answer(&mut rig, id, &numbers[0], "to 0");
        }
        assert_eq!(rig.pipes.get(id).unwrap().queued_in(), 2);
        assert_eq!(rig.dropped(DropReason::HighWater), 18);
        for _ in 0..20 {
            answer(&mut rig, id, &numbers[1], "to 1");
            assert_eq!(rig.recv().unwrap(), ["to 1"]);
        }
        rig.far_close(id);
        rig.settle();
        assert!(!rig.is_gone(id), "it has left answers");
        rig.pattern.enter(0);
        assert_eq!(rig.recv_all(), ["to 0", "to 0"]);
        assert!(rig.is_gone(id));
    }

    #[test]
    fn a_peer_that_the_socket_leaves_takes_its_answers_along() {
        let mut rig = Rig::new(&SURVEYOR);
        let id = rig.accept("");
        rig.send(["?"]).unwrap();
        let number = number(&mut rig, id);
        answer(&mut rig, id, &number, "!");
        assert!(rig.can_recv());
        rig.pipes.doom(id, DoomReason::Requested);
        assert!(!rig.can_recv() || rig.is_gone(id));
        assert!(!rig.can_recv());
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
