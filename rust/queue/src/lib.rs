//! Lock-free queues: what lies under zeroxide's message pipes and mailboxes.
//!
//! | module       | writers | readers | carries  | allocates                                         |
//! |--------------|---------|---------|----------|---------------------------------------------------|
//! | [`spsc`]     | one     | one     | messages | once per 256 or more items, not at all when steady |
//! | [`mpsc`]     | any     | one     | commands | once per item                                     |
//! | [`doorbell`] | any     | one     | one bit  | never                                             |
//! | [`lookout`]  | any     | one at a time | one bit | never                                        |
//!
//! There are no locks, no file descriptors and no system calls in here, and no dependencies. A
//! thread that has nothing to read sleeps by means of its own; the queues only tell the writer
//! whether it has to be woken.
//!
//! # A reader that sleeps
//!
//! Popping, sleeping and waking always make the same figure. Here the reader sleeps by parking its
//! thread; in the sockets it waits for an eventfd or a futex.
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
//! # The memory model, in prose
//!
//! *Everything has one writer at a time.* A slot belongs to the producer until its number is
//! published, to the consumer until its item is popped, and to the producer again once its chunk
//! has come back as the spare. A counter has one writer for life. So the question at each step is
//! only how the next owner learns that the last one is done.
//!
//! *Handing over is a Release store that the new owner reads with Acquire.* What came before the
//! store, in the old owner's program, has then happened for the new owner as well. There are four
//! such pairs:
//!
//! | handed over                     | Release                        | Acquire                         |
//! |---------------------------------|--------------------------------|---------------------------------|
//! | items, and links between chunks | `published`, stored by `flush` | `published`, loaded by `pop`    |
//! | an emptied chunk                | `spare`, swapped in by `pop`   | `spare`, swapped out by `push`  |
//! | nodes of the mailbox queue      | `newest`, exchanged by `push`  | `newest`, swapped by `take_all` |
//! | the end of the consumer         | `consumer_gone`                | `is_consumer_gone`              |
//!
//! *A count makes the first pair cheap.* `published` says how many items there have ever been, not
//! which slot is full. One store hands over any number of items, one load takes them all, and
//! between two loads the consumer reads as if there were no other thread. Since the count never
//! falls, a stale value is harmless: it promises less than there is.
//!
//! *Sleeping needs more than Release and Acquire.* There, two threads each write one thing and read
//! the other, and each must not miss what the other wrote. Only a sequentially consistent fence on
//! both sides rules that out; the proof is in [`doorbell`]. It is the one expensive instruction of
//! a flush, and the reason to flush per batch instead of per message.
//!
//! *Everything else is Relaxed*, and says why at the line where it is. No access is SeqCst, only
//! the two fences are: loom, which checks all this, treats SeqCst accesses as weaker than they are.
//!
//! *Who writes often has a cache line of its own.* The count and the bell of a queue lie on one
//! line, which the producer keeps as long as the consumer has prefetched items left; what the
//! consumer writes lies on another.
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
//! `tests/allocations.rs` counts what the allocator is asked for.

// This crate depends on nothing, so it is built first: on another system, a build ends here after a second.
#[cfg(not(target_os = "linux"))]
compile_error!("zeroxide runs only on Linux so far, not on this operating system");

mod chunk;
pub mod doorbell;
pub mod lookout;
pub mod mpsc;
mod primitive;
pub mod spsc;
