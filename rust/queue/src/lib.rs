//! Lock-free queues, on which zeroxide's message pipes and mailboxes are built.
//!
//! | module       | writers | readers | carries  | allocates                                         |
//! |--------------|---------|---------|----------|---------------------------------------------------|
//! | [`spsc`]     | one     | one     | messages | once per 256 or more items, not at all when steady |
//! | [`mpsc`]     | any     | one     | commands | once per item                                     |
//! | [`doorbell`] | any     | one     | one bit  | never                                             |
//! | [`loan`]     | any     | one at a time | a right | never                                        |
//! | [`exclusive`] | any    | one at a time | a value, and commands for its holder | once per command |
//! | [`parker`]   | any     | one     | one bit  | never                                             |
//! | [`waiters`]  | any     | any     | one bit, to every waiter | when more wait than before          |
//!
//! This crate has no file descriptors, system calls or dependencies, and its queues have no locks; the list of waiters
//! has one. A thread that has nothing to read sleeps by its own means, and the queues only tell the writer whether it
//! must be woken.
//!
//! # A reader that sleeps
//!
//! Popping, sleeping and waking always follow the same scheme. Here the reader sleeps by parking its thread; in the
//! sockets it waits for an eventfd or a futex.
//!
//! ```
//! use std::thread;
//!
//! let (mut producer, mut consumer) = zeroxide_queue::spsc::channel();
//! let reader = thread::spawn(move || {
//!     let mut sum = 0;
//!     loop {
//!         while let Some(number) = consumer.pop() {
//!             sum += number;
//!         }
//!         if consumer.is_finished() {
//!             return sum;
//!         }
//!         if consumer.sleep() {
//!             thread::park();
//!         }
//!     }
//! });
//! for number in 1..=100 {
//!     producer.push(number);
//!     if number % 10 == 0 && producer.flush() {
//!         reader.thread().unpark();
//!     }
//! }
//! if producer.close() {
//!     reader.thread().unpark();
//! }
//! assert_eq!(reader.join().unwrap(), 5050);
//! ```
//!
//! # The memory model
//!
//! *Everything has one writer at a time.* A slot belongs to the producer until its number is published, to the consumer
//! until its item is popped, and to the producer again once its chunk has come back as the spare. A counter always has
//! the same writer. So the only question at each step is how the next owner learns that the previous one is done.
//!
//! *Ownership is passed by a Release store that the new owner reads with Acquire.* Everything the old owner did before
//! the store then happens before everything the new owner does after the load. There are four such pairs:
//!
//! | handed over                     | Release                        | Acquire                         |
//! |---------------------------------|--------------------------------|---------------------------------|
//! | items, and links between chunks | `published`, stored by `flush` | `published`, loaded by `pop`    |
//! | an emptied chunk                | `spare`, swapped in by `pop`   | `spare`, swapped out by `push`  |
//! | nodes of the mailbox queue      | `newest`, exchanged by `push`  | `newest`, swapped by `take_all` |
//! | the end of the consumer         | `consumer_gone`                | `is_consumer_gone`              |
//!
//! *A count makes the first pair cheap.* `published` is the number of items ever published, and not a list of full
//! slots. One store hands over any number of items, one load takes all of them, and between two loads the consumer
//! reads as if there were no other thread. The count never decreases, so a stale value is harmless: it is only a lower
//! bound.
//!
//! *Sleeping needs more than Release and Acquire.* Two threads each write one value and read the other's, and neither
//! may miss the other's write. Only a sequentially consistent fence on both sides guarantees that; the proof is in
//! [`doorbell`], and [`exclusive`] and [`waiters`] use the scheme again. The fence is the one expensive instruction of a
//! flush, and the reason to flush per batch instead of per message.
//!
//! *Everything else is Relaxed*, with the reason in a comment. No access is SeqCst, only fences are, because
//! loom, which checks this crate, treats SeqCst accesses as weaker than they are.
//!
//! *Frequent writers have their own cache lines.* The count and the bell of a queue share a line, which stays in the
//! producer's cache as long as the consumer has prefetched items left. The consumer writes to another line.
//!
//! The rules that the unsafe code relies on are listed in `SAFETY.md`, next to this crate's
//! `Cargo.toml`.
//!
//! # Tests
//!
//! `tests/model.rs` compares the queues with a `VecDeque`, operation by operation, and runs the
//! scenarios of `tests/scenarios` on real threads. `tests/loom.rs` runs the same scenarios under
//! every interleaving, with chunks of two items, in a target directory of its own:
//!
//! ```text
//! RUSTFLAGS="--cfg zeroxide_loom" CARGO_TARGET_DIR=target/loom \
//!     cargo test -p zeroxide-queue --test loom --release
//! ```
//!
//! `tests/allocations.rs` counts allocations.

// This crate has no dependencies, so it is built first, and on other systems a build fails here after a second.
#[cfg(not(target_os = "linux"))]
compile_error!("zeroxide runs only on Linux so far, not on this operating system");

mod chunk;
pub mod doorbell;
pub mod exclusive;
pub mod loan;
pub mod mpsc;
pub mod parker;
mod primitive;
pub mod spsc;
pub mod waiters;
