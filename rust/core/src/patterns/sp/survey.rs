//! SURVEYOR: sends a survey to all its peers, and receives their answers until the deadline.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::{Duration, Instant};

use zeroxide_proto::message::Message;
use zeroxide_proto::sp;

use super::envelope::{self, LOOK_MAX, Numbers};
use crate::error::{Error, ErrorKind, Result};
use crate::options::{PatternOption, SURVEY_TIMEOUT, ids};
use crate::patterns::distributor::Distributor;
use crate::patterns::drops::DropReason;
use crate::patterns::fair_queue::FairQueue;
use crate::patterns::pipe_set::{PipeSet, effort};
use crate::patterns::{Dialogue, Pattern, PatternSpec, Priority, Turns, single_part};
use crate::pipe::PipeId;
use crate::sys::{chance, clock};

struct Surveyor {
    /// The peers that are connected.
    outbound: Distributor,
    inbound: FairQueue,
    numbers: Numbers,
    surveys: BTreeMap<u32, Survey>,
    /// How many of them are not over yet.
    running: usize,
    /// The number of each context's survey.
    current: BTreeMap<u64, u32>,
    deadlines: BTreeSet<(Instant, u32)>,
    /// When a look at unasked messages had to stop before the last of them.
    behind: Option<Instant>,
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
            running: 0,
            current: BTreeMap::new(),
            deadlines: BTreeSet::new(),
            behind: None,
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
            && let Some((answer, from)) = self.find(pipes, number)
        {
            self.keep(pipes, number, answer, from, true);
        }
    }

    /// Reads messages until one answers the survey `wanted`. Those to other surveys are kept for their contexts.
    fn find(&mut self, pipes: &mut PipeSet, wanted: u32) -> Option<(Message, PipeId)> {
        loop {
            let (mut answer, from) = self.inbound.recv(pipes)?;
            let effort = effort(&answer);
            match self.answered(&mut answer) {
                Ok(number) if number == wanted => return Some((answer, from)),
                Ok(number) => self.keep(pipes, number, answer, from, false),
                Err(reason) => pipes.count_drop(Some(from), reason),
            }
            if !pipes.spend(effort) {
                return None;
            }
        }
    }

    /// Reads one message, and keeps it for its context if it answers a survey. Returns false if there is none.
    fn take_in(&mut self, pipes: &mut PipeSet) -> bool {
        let Some((mut answer, from)) = self.inbound.recv(pipes) else {
            return false;
        };
        match self.answered(&mut answer) {
            Ok(number) => self.keep(pipes, number, answer, from, false),
            Err(reason) => pipes.count_drop(Some(from), reason),
        }
        true
    }

    /// Drops what arrives while no survey goes on. The application has no reason to receive then, and the messages would
    /// take room and memory until its next survey.
    fn drop_unasked(&mut self, pipes: &mut PipeSet) {
        let has_more = self.running == 0 && (0..LOOK_MAX).all(|_| self.take_in(pipes));
        self.behind = has_more.then(clock::now);
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
            self.running -= usize::from(!survey.is_over);
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

    fn readable(&mut self, pipes: &mut PipeSet, id: PipeId) {
        self.inbound.insert(id);
        self.drop_unasked(pipes);
    }

    fn writable(&mut self, _: &mut PipeSet, id: PipeId) {
        self.outbound.writable(id);
    }

    fn far_closed(&mut self, pipes: &mut PipeSet, id: PipeId) {
        self.outbound.remove(id);
        self.inbound.far_closed(pipes, id);
        self.drop_unasked(pipes);
    }

    fn detach(&mut self, pipes: &mut PipeSet, id: PipeId) {
        self.outbound.remove(id);
        self.inbound.remove(id);
        for survey in self.surveys.values_mut() {
            survey.answers.retain(|(answer, from)| {
                let stays = *from != id;
                if !stays {
                    pipes.count_drop(Some(id), DropReason::Refused);
                    pipes.release(id, answer);
                }
                stays
            });
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
        self.running += 1;
        self.behind = None;
        Ok(())
    }

    fn recv(&mut self, pipes: &mut PipeSet, message: &mut Message) -> Result<Option<PipeId>> {
        let current = self.current.get(&self.context);
        let Some((number, survey)) =
            current.and_then(|number| Some((*number, self.surveys.get_mut(number)?)))
        else {
            return Err(survey_comes_first());
        };
        let (answer, from) = match survey.answers.pop_front() {
            Some((answer, from)) => {
                pipes.release(from, &answer);
                (answer, from)
            }
            None if survey.is_over => return Err(self.is_over(pipes)),
            None => match self.find(pipes, number) {
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
        self.behind
            .or_else(|| self.deadlines.first().map(|(due, _)| *due))
    }

    fn handle_timeout(&mut self, pipes: &mut PipeSet, now: Instant) {
        if self.deadlines.first().is_some_and(|(due, _)| *due <= now) {
            // Answers that have arrived by now are not late. Those that a peer adds meanwhile are, so that no peer can
            // prolong this.
            let arrived: u64 = pipes.ids().iter().map(|id| pipes.queued_in(*id)).sum();
            let _ = (0..arrived).all(|_| self.take_in(pipes));
        }
        while let Some((due, number)) = self.deadlines.first().copied()
            && due <= now
        {
            self.deadlines.pop_first();
            if let Some(survey) = self.surveys.get_mut(&number) {
                survey.is_over = true;
                survey.due = None;
                self.running -= 1;
            }
        }
        self.drop_unasked(pipes);
    }

    fn enter(&mut self, context: u64) -> bool {
        self.context = context;
        true
    }

    fn end_context(&mut self, pipes: &mut PipeSet, context: u64) {
        self.cancel(pipes, context);
        self.drop_unasked(pipes);
    }
}

pub(in crate::patterns) static SURVEYOR: PatternSpec = PatternSpec {
    single_part: true,
    dialogue: Dialogue::Asks,
    timed: true,
    prompt: true,
    options: &[ids::SURVEY_TIMEOUT],
    ..PatternSpec::new(sp::SURVEYOR, || Box::new(Surveyor::new()))
};

#[cfg(test)]
mod tests;
