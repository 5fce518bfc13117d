//! Threads, tasks and watchers in lists of waiters.

use std::ops::ControlFlow::{self, Break, Continue};
use std::sync::Arc as StdArc;
use std::task::{Wake, Waker};

use zeroxide_queue::parker::{On, Parker, System};
use zeroxide_queue::waiters::{Place, Waiter, Waiters};

use super::{Arc, AtomicU32, AtomicUsize, Condvar, Mutex, Relaxed, park, thread, wait};

/// The bed of a thread: a word, which is compared under a lock as by the system's futex, or a bell that sounds until it
/// is silenced.
#[derive(Default)]
pub struct Berth {
    sounds: Mutex<bool>,
    changed: Condvar,
}

impl System for Berth {
    fn wake_word(&self, _: &AtomicU32) {
        drop(self.sounds.lock().unwrap());
        self.changed.notify_all();
    }

    fn sound_bell(&self) {
        *self.sounds.lock().unwrap() = true;
        self.changed.notify_all();
    }
}

impl Berth {
    fn sleep(&self, on: On, word: &AtomicU32, asleep: u32) {
        let mut sounds = self.sounds.lock().unwrap();
        match on {
            On::Word => {
                if word.load(Relaxed) == asleep {
                    drop(wait(&self.changed, sounds));
                }
            }
            On::Descriptors => {
                while !*sounds {
                    sounds = wait(&self.changed, sounds);
                }
                *sounds = false;
            }
        }
    }
}

fn parker() -> Arc<Parker<Berth>> {
    Arc::new(Parker::new(Berth::default()))
}

/// Something that is counted, and what waits for it.
struct Topic {
    news: AtomicUsize,
    waiters: Waiters<Berth, Berth>,
}

impl Topic {
    fn new() -> Topic {
        Topic {
            news: AtomicUsize::new(0),
            waiters: Waiters::new(),
        }
    }

    fn tell(&self) {
        self.news.fetch_add(1, Relaxed);
        if self.waiters.advance() {
            self.waiters.take(System::sound_bell, wake);
        }
    }

    /// Waits until there are `all` news.
    fn wait_for(&self, all: usize, parker: &Arc<Parker<Berth>>, on: On) {
        loop {
            let ticket = self.waiters.ticket();
            if self.news.load(Relaxed) == all {
                return;
            }
            let sleep = |word: &AtomicU32, asleep| -> ControlFlow<()> {
                parker.system().sleep(on, word, asleep);
                Continue(())
            };
            assert_eq!(self.waiters.wait(parker, ticket, on, sleep), None);
        }
    }
}

fn wake(waiter: Waiter<Berth>) {
    match waiter {
        Waiter::Thread(parker) => {
            if let Some(on) = parker.notify() {
                parker.rouse(on);
            }
        }
        Waiter::Task(_, waker) => waker.wake(),
    }
}

/// Each thread sees all news, in whatever way it sleeps. The last writer is the calling thread.
pub fn threads_learn_about_all_news(sleepers: &[On], writers: usize, each: usize) {
    let topic = Arc::new(Topic::new());
    let mut threads = Vec::new();
    for on in sleepers.iter().copied() {
        let topic = topic.clone();
        threads.push(thread::spawn(move || {
            topic.wait_for(writers * each, &parker(), on);
        }));
    }
    for _ in 1..writers {
        let topic = topic.clone();
        threads.push(thread::spawn(move || (0..each).for_each(|_| topic.tell())));
    }
    (0..each).for_each(|_| topic.tell());
    threads
        .into_iter()
        .for_each(|thread| thread.join().unwrap());
    assert!(!topic.waiters.has_any(), "a thread was left in the list");
}

/// One thread waits for two things with one parker.
pub fn a_thread_waits_for_two_things(on: On, each: usize) {
    let topics = Arc::new([Topic::new(), Topic::new()]);
    let ours = topics.clone();
    let sleeper = thread::spawn(move || {
        let parker = parker();
        loop {
            ours.iter().for_each(|topic| topic.waiters.enter(&parker));
            if ours.iter().all(|topic| topic.news.load(Relaxed) == each) {
                break;
            }
            parker.sleep(on, |word, asleep| parker.system().sleep(on, word, asleep));
        }
        ours.iter().for_each(|topic| topic.waiters.leave(&parker));
    });
    let theirs = topics.clone();
    let other = thread::spawn(move || (0..each).for_each(|_| theirs[1].tell()));
    (0..each).for_each(|_| topics[0].tell());
    other.join().unwrap();
    sleeper.join().unwrap();
    assert!(topics.iter().all(|topic| !topic.waiters.has_any()));
}

/// A thread gives up one wait and begins the next one, while it is notified for the first.
pub fn a_late_notice_does_no_harm(first: On, second: On) {
    let topics = Arc::new([Topic::new(), Topic::new()]);
    let ours = topics.clone();
    let sleeper = thread::spawn(move || {
        let parker = parker();
        let [one, other] = &*ours;
        let ticket = one.waiters.ticket();
        let gave_up = one.waiters.wait(&parker, ticket, first, |_, _| Break(()));
        assert!(gave_up.is_some() || one.news.load(Relaxed) == 1);
        other.wait_for(1, &parker, second);
    });
    topics.iter().for_each(Topic::tell);
    sleeper.join().unwrap();
    assert!(topics.iter().all(|topic| !topic.waiters.has_any()));
}

/// Wakes a thread that runs a task.
struct Runs(thread::Thread);

impl Wake for Runs {
    fn wake(self: StdArc<Self>) {
        self.0.unpark();
    }
}

/// A task sees all news, next to a thread. Nothing is left of it in the list.
pub fn tasks_learn_about_all_news(each: usize, beside_a_thread: bool) {
    let topic = Arc::new(Topic::new());
    let ours = topic.clone();
    let runner = thread::spawn(move || {
        let waker = Waker::from(StdArc::new(Runs(thread::current())));
        loop {
            let ticket = ours.waiters.ticket();
            if ours.news.load(Relaxed) == each {
                break;
            }
            if ours.waiters.enlist(Place::Own(1), &waker, ticket) {
                park();
            }
        }
        ours.waiters.delist(Place::Own(1));
    });
    let sleeper = beside_a_thread.then(|| {
        let topic = topic.clone();
        thread::spawn(move || topic.wait_for(each, &parker(), On::Word))
    });
    (0..each).for_each(|_| topic.tell());
    sleeper
        .into_iter()
        .chain([runner])
        .for_each(|thread| thread.join().unwrap());
    assert!(!topic.waiters.has_any());
}

/// All news sound a watcher's bell while it watches, and none afterwards.
pub fn watchers_are_raised_while_they_watch(writers: usize) {
    let topic = Arc::new(Topic::new());
    let ours = topic.clone();
    let watcher = thread::spawn(move || {
        let bell = Arc::new(Berth::default());
        ours.waiters.watch(bell.clone());
        while ours.news.load(Relaxed) < writers {
            bell.sleep(On::Descriptors, &AtomicU32::new(0), 0);
        }
        ours.waiters.unwatch(&bell);
        *bell.sounds.lock().unwrap() = false;
        bell
    });
    let others: Vec<_> = (1..writers)
        .map(|_| {
            let topic = topic.clone();
            thread::spawn(move || topic.tell())
        })
        .collect();
    topic.tell();
    others.into_iter().for_each(|other| other.join().unwrap());
    let bell = watcher.join().unwrap();
    topic.tell();
    assert!(!*bell.sounds.lock().unwrap(), "raised after it left");
    assert!(!topic.waiters.has_any());
}
