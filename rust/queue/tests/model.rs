//! The queues against the simplest possible model: a `VecDeque` and a few counters.
#![cfg(not(zeroxide_loom))]

mod scenarios;

use std::{collections::VecDeque, panic, rc::Rc};

use proptest::prelude::*;
use zeroxide_queue::{
    doorbell::Doorbell,
    mpsc,
    spsc::{self, Consumer, Producer},
};

/// The operations on a pipe's queue. The amounts span two chunks of 272, and some keep the queue at chunks of 16.
#[derive(Clone, Debug)]
enum Step {
    Push(usize),
    Rollback(usize),
    Flush,
    FlushBut(usize),
    Pop(usize),
    Peek,
    Sleep,
    Close,
    DropProducer,
    DropConsumer,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (1..600usize).prop_map(Step::Push),
        6 => (1..20usize).prop_map(Step::Push),
        3 => (1..600usize).prop_map(Step::Rollback),
        6 => Just(Step::Flush),
        3 => (1..600usize).prop_map(Step::FlushBut),
        8 => (1..600usize).prop_map(Step::Pop),
        6 => (1..20usize).prop_map(Step::Pop),
        2 => Just(Step::Peek),
        3 => Just(Step::Sleep),
        1 => Just(Step::Close),
        1 => Just(Step::DropProducer),
        1 => Just(Step::DropConsumer),
    ]
}

/// A number with a count of live values: the queue and the model must also agree on how many values are left.
type Value = (u64, Rc<()>);

/// The queue, and its expected contents.
struct Pair {
    producer: Option<Producer<Value>>,
    consumer: Option<Consumer<Value>>,
    published: VecDeque<u64>,
    unflushed: VecDeque<u64>,
    /// Values pushed after the close: never delivered, but not leaked either.
    undeliverable: usize,
    closed: bool,
    asleep: bool,
    next: u64,
    living: Rc<()>,
}

impl Pair {
    fn new() -> Self {
        let (producer, consumer) = spsc::channel();
        Self {
            producer: Some(producer),
            consumer: Some(consumer),
            published: VecDeque::new(),
            unflushed: VecDeque::new(),
            undeliverable: 0,
            closed: false,
            asleep: false,
            next: 0,
            living: Rc::new(()),
        }
    }

    fn publish(&mut self) {
        self.published.append(&mut self.unflushed);
        self.asleep = false;
    }

    fn write(&mut self, step: &Step) {
        let Some(producer) = &mut self.producer else {
            return;
        };
        match step {
            Step::Push(amount) => {
                for _ in 0..*amount {
                    let mut value = (self.next, self.living.clone());
                    if self.next.is_multiple_of(2) {
                        producer.push(value);
                    } else {
                        producer.push_taken(&mut value);
                        assert_eq!(value.0, 0);
                    }
                    if self.closed {
                        self.undeliverable += 1;
                    } else {
                        self.unflushed.push_back(self.next);
                    }
                    self.next += 1;
                }
            }
            Step::Rollback(amount) if !self.closed => {
                for _ in 0..*amount {
                    let value = producer.rollback().map(|(number, _)| number);
                    assert_eq!(value, self.unflushed.pop_back());
                }
            }
            Step::Flush => {
                let wake = producer.flush();
                let due = !self.closed && !self.unflushed.is_empty();
                assert_eq!(wake, due && self.asleep);
                if due {
                    self.publish();
                }
            }
            Step::FlushBut(kept) => {
                let wake = producer.flush_but(*kept);
                let due = match self.unflushed.len().checked_sub(*kept) {
                    Some(due) if !self.closed => due,
                    _ => 0,
                };
                assert_eq!(wake, due > 0 && self.asleep);
                if due > 0 {
                    self.published.extend(self.unflushed.drain(..due));
                    self.asleep = false;
                }
            }
            Step::Close => {
                assert_eq!(producer.close(), !self.closed && self.asleep);
                self.publish();
                self.closed = true;
            }
            Step::DropProducer => {
                self.producer = None;
                self.publish();
                self.undeliverable = 0;
                self.closed = true;
            }
            _ => {}
        }
    }

    fn read(&mut self, step: &Step) {
        let Some(consumer) = &mut self.consumer else {
            return;
        };
        match step {
            Step::Pop(amount) => {
                // Each replaces an earlier value, and both must be dropped at the end.
                let mut place = (0, self.living.clone());
                for turn in 0..*amount {
                    let value = if turn % 2 == 0 {
                        consumer.pop().map(|(number, _)| number)
                    } else {
                        consumer.pop_to(&mut place).then_some(place.0)
                    };
                    assert_eq!(value, self.published.pop_front());
                }
            }
            Step::Peek => {
                let value = consumer.peek().map(|(number, _)| number);
                assert_eq!(value, self.published.front());
            }
            Step::Sleep => {
                let asleep = consumer.sleep();
                assert_eq!(asleep, self.published.is_empty() && !self.closed);
                self.asleep |= asleep;
            }
            Step::DropConsumer => {
                self.consumer = None;
                self.published.clear();
            }
            _ => {}
        }
    }

    fn check(&mut self) {
        if let Some(producer) = &self.producer {
            assert_eq!(
                producer.unflushed(),
                self.unflushed.len() + self.undeliverable
            );
            assert_eq!(producer.is_consumer_gone(), self.consumer.is_none());
        }
        if let Some(consumer) = &mut self.consumer {
            if let Some(producer) = &self.producer {
                let (told, true_depth) = (producer.published_unread(), self.published.len());
                assert!((true_depth..=true_depth + 272).contains(&told));
            }
            assert_eq!(consumer.len(), self.published.len());
            assert_eq!(consumer.is_empty(), self.published.is_empty());
            assert_eq!(consumer.is_producer_gone(), self.closed);
            let finished = self.closed && self.published.is_empty();
            assert_eq!(consumer.is_finished(), finished);
        }
        // Values that no consumer will read live until the producer is dropped.
        let living = Rc::strong_count(&self.living) - 1;
        let known = self.published.len() + self.unflushed.len() + self.undeliverable;
        match (&self.producer, &self.consumer) {
            (None, None) => assert_eq!(living, 0),
            _ => assert_eq!(living, known),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

    #[test]
    fn spsc_is_a_vecdeque_with_a_curtain(steps in prop::collection::vec(step(), 1..60)) {
        let mut pair = Pair::new();
        for step in &steps {
            pair.write(step);
            pair.read(step);
            pair.check();
        }
        let living = pair.living.clone();
        drop(pair);
        assert_eq!(Rc::strong_count(&living), 1);
    }

    #[test]
    fn mpsc_is_a_vecdeque(steps in prop::collection::vec((0..20usize, 0..20usize), 1..40)) {
        let queue = mpsc::Queue::new();
        let living = Rc::new(());
        let mut model = VecDeque::new();
        for (pushed, (push, take)) in steps.into_iter().enumerate() {
            for number in 0..push {
                let was_empty = queue.push((pushed, number, living.clone()));
                assert_eq!(was_empty, model.is_empty());
                model.push_back((pushed, number));
            }
            assert_eq!(queue.is_empty(), model.is_empty());
            if take % 2 == 0 {
                continue;
            }
            let mut batch = queue.take_all();
            assert!(queue.is_empty());
            assert_eq!(batch.len(), model.len());
            for expected in model.drain(..).take(take) {
                let (pushed, number, _) = batch.next().unwrap();
                assert_eq!((pushed, number), expected);
            }
            drop(batch);
            assert_eq!(Rc::strong_count(&living), 1);
        }
        drop(queue);
        assert_eq!(Rc::strong_count(&living), 1);
    }
}

/// If the destructor of a value panics, no other value is lost, and none is dropped twice.
#[test]
fn a_panicking_destructor_loses_nothing() {
    struct Grumpy {
        number: u32,
        _living: Rc<()>,
    }
    impl Drop for Grumpy {
        fn drop(&mut self) {
            if self.number == 7 {
                // A panic without a report.
                panic::resume_unwind(Box::new("seven does not want to go"));
            }
        }
    }
    let living = Rc::new(());
    let (mut producer, consumer) = spsc::channel();
    for number in 0..600 {
        let _living = living.clone();
        producer.push(Grumpy { number, _living });
    }
    let _ = producer.flush();
    let panicked = panic::catch_unwind(panic::AssertUnwindSafe(|| drop(consumer)));
    assert!(panicked.is_err());
    drop(producer);
    assert_eq!(Rc::strong_count(&living), 1);
}

#[test]
fn a_value_is_popped_once_although_the_replaced_one_panics() {
    #[derive(Debug)]
    struct Value(&'static str, bool);
    impl Drop for Value {
        fn drop(&mut self) {
            assert!(!self.1, "as planned");
        }
    }
    let (mut producer, mut consumer) = spsc::channel();
    producer.push(Value("only", false));
    let _ = producer.flush();
    let mut place = Value("old", true);
    let popping = panic::AssertUnwindSafe(|| consumer.pop_to(&mut place));
    panic::catch_unwind(popping).expect_err("it panics");
    assert_eq!(place.0, "only");
    assert!(consumer.pop().is_none());
}

#[test]
fn values_may_have_no_size() {
    let (mut producer, mut consumer) = spsc::channel();
    (0..1000).for_each(|_| producer.push(()));
    let _ = producer.close();
    assert_eq!(std::iter::from_fn(|| consumer.pop()).count(), 1000);
    assert!(consumer.is_finished());
}

#[test]
fn the_ends_may_change_threads() {
    fn is_send<T: Send>() {}
    fn is_sync<T: Sync>() {}
    is_send::<Producer<String>>();
    is_send::<Consumer<String>>();
    is_send::<mpsc::Queue<String>>();
    is_sync::<mpsc::Queue<String>>();
    is_send::<mpsc::Batch<String>>();
    is_sync::<Doorbell>();
}

/// The scenarios of `tests/scenarios` on real threads, many times and with amounts that span chunks of 16 and of 272.
mod on_real_threads {
    use zeroxide_queue::parker::On;

    use super::scenarios::{self, driving, waiting};

    #[test]
    fn everything_arrives_in_order() {
        for batch in [1, 7, 100, 1000, 5000] {
            scenarios::everything_arrives_in_order(50_000, batch);
        }
    }

    #[test]
    fn a_recycled_chunk_is_filled_after_it_was_read() {
        (0..200).for_each(|_| scenarios::a_recycled_chunk_is_filled_after_it_was_read(16));
    }

    #[test]
    fn one_wake_per_sleep() {
        (0..20).for_each(|_| scenarios::one_wake_per_sleep(2_000));
    }

    #[test]
    fn a_look_leaves_the_wake_to_a_sleeper() {
        (0..200).for_each(|_| scenarios::a_look_leaves_the_wake_to_a_sleeper());
    }

    #[test]
    fn rollback_is_invisible() {
        for taken_back in [0, 1, 15, 16, 17, 272, 1000] {
            for kept in [0, 1, 15, 16, 17, 100, 287, 288, 289, 560] {
                scenarios::rollback_is_invisible(kept, taken_back);
            }
        }
    }

    #[test]
    fn both_ends_drop_the_remaining_values() {
        for read in [0, 1, 15, 16, 17, 287, 288, 289, 700] {
            (0..50).for_each(|_| scenarios::both_ends_drop_the_remaining_values(700, read));
        }
    }

    #[test]
    fn writers_share_a_queue() {
        (0..20).for_each(|_| scenarios::writers_share_a_queue(1_000));
    }

    #[test]
    fn writers_share_a_doorbell() {
        (0..20).for_each(|_| scenarios::writers_share_a_doorbell(1_000));
    }

    #[test]
    fn a_rung_bell_brings_the_news() {
        (0..500).for_each(|_| scenarios::a_rung_bell_brings_the_news());
    }

    #[test]
    fn threads_learn_about_all_news() {
        let sleepers = [On::Word, On::Descriptors, On::Word];
        (0..20).for_each(|_| waiting::threads_learn_about_all_news(&sleepers, 2, 1_000));
    }

    #[test]
    fn a_thread_waits_for_two_things() {
        (0..20).for_each(|_| waiting::a_thread_waits_for_two_things(On::Word, 1_000));
        (0..20).for_each(|_| waiting::a_thread_waits_for_two_things(On::Descriptors, 1_000));
    }

    #[test]
    fn a_late_notice_does_no_harm() {
        (0..500).for_each(|_| waiting::a_late_notice_does_no_harm(On::Word, On::Descriptors));
        (0..500).for_each(|_| waiting::a_late_notice_does_no_harm(On::Descriptors, On::Word));
    }

    #[test]
    fn tasks_learn_about_all_news() {
        (0..20).for_each(|_| waiting::tasks_learn_about_all_news(1_000, true));
    }

    #[test]
    fn watchers_are_raised_while_they_watch() {
        (0..200).for_each(|_| waiting::watchers_are_raised_while_they_watch(4));
    }

    #[test]
    fn messages_are_received_by_either_reader() {
        use zeroxide_queue::loan::Event::{Recall, Revoke};
        const EVENTS: &[zeroxide_queue::loan::Event] = &[Recall, Recall, Revoke, Recall, Revoke];
        for pauses in [false, true] {
            (0..50).for_each(|_| {
                driving::messages_are_received_by_either_reader(500, pauses, EVENTS);
            });
        }
    }

    #[test]
    fn a_lent_thing_is_not_forgotten() {
        use zeroxide_queue::loan::Event::{Look, Recall, Revoke};
        const EVENTS: &[zeroxide_queue::loan::Event] = &[Look, Recall, Look, Look, Revoke, Look];
        (0..500).for_each(|_| scenarios::a_lent_thing_is_not_forgotten(3, 50, EVENTS));
    }

    #[test]
    fn urgent_posts_are_served() {
        let posters: [&[bool]; 3] = [&[true], &[false, true, false], &[false, false, true, true]];
        (0..20).for_each(|_| scenarios::urgent_posts_are_served(&posters, 1_000, [true, true]));
    }

    #[test]
    fn an_end_that_leaves_publishes_its_work() {
        (0..500).for_each(|_| scenarios::an_end_that_leaves_publishes_its_work());
    }

    #[test]
    fn mailboxes_drop_the_remaining_values() {
        (0..500).for_each(|_| scenarios::mailboxes_drop_the_remaining_values(20));
    }
}
