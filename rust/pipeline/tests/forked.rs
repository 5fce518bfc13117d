//! A collector in a process that was forked from the one that made it.

use std::time::{Duration, Instant};

use zeroxide_pipeline::collector::{Collector, Config};

unsafe extern "C" {
    fn fork() -> i32;
    fn waitpid(pid: i32, status: *mut i32, options: i32) -> i32;
    fn kill(pid: i32, signal: i32) -> i32;
    fn _exit(status: i32) -> !;
}

const WNOHANG: i32 = 1;
const SIGKILL: i32 = 9;

#[test]
fn a_child_that_drops_it_does_not_wait() {
    let dir = tempfile::tempdir().expect("a folder");
    let collector = Collector::start(Config::new(dir.path())).expect("a collector");
    // SAFETY: the child drops a value and ends, without using anything that other threads may have locked, except the
    // allocator, which handles forks itself.
    let child = unsafe { fork() };
    if child == 0 {
        drop(collector);
        // SAFETY: it has no conditions.
        unsafe { _exit(0) };
    }
    assert!(child > 0);
    let (until, mut status) = (Instant::now() + Duration::from_secs(10), -1);
    // SAFETY: the child is ours and was not waited for, the status is a place to write to.
    while unsafe { waitpid(child, &raw mut status, WNOHANG) } == 0 {
        if Instant::now() > until {
            // SAFETY: as above.
            unsafe { kill(child, SIGKILL) };
            panic!("the child waits");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(status, 0);
    assert!(collector.stats(Duration::from_secs(10)).is_ok());
    collector.close().expect("closed in order");
}
