//! Returns memory to the system that was freed but that the allocator keeps, and reports how much there is.

use std::fs;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// The minimum interval between two operations.
const EVERY: Duration = Duration::from_secs(1);
/// The operations take at most one part in this many of the time. The larger the process, the longer each of them takes.
const SHARE: u64 = 100;

/// Shared by all threads of the process.
static RATION: Ration = Ration::new();

/// Returns freed memory to the system, unless that was done only just; then returns when to ask again. It may take
/// milliseconds, in which no thread can allocate, so call it at the end of something large, and without locks. Does
/// nothing if the allocator has no such call.
pub(crate) fn give_back() -> Option<Duration> {
    if cfg!(zeroxide_shuttle) {
        // The limit is one of real time, and would make a schedule depend on it.
        return None;
    }
    let start = now();
    if let Err(wait) = RATION.begin(start) {
        return Some(Duration::from_nanos(wait));
    }
    trim();
    RATION.end(start, now());
    None
}

fn trim() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: does not affect memory in use, and may be called by any thread at any time.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Memory that must remain for other small allocations, whose failure would abort the process.
const RESERVE: usize = 8 << 20;

/// The memory of every simulated machine, in bytes.
const SIMULATED: u64 = 1 << 30;

/// Whether the system can provide this many bytes to the process now, and a reserve for small allocations.
pub(crate) fn leaves_reserve(bytes: usize) -> bool {
    // A schedule must not depend on the memory that other processes leave.
    cfg!(zeroxide_shuttle) || is_there(RESERVE.saturating_add(bytes))
}

/// Whether the system can provide this many bytes to the process now. Maps them untouched and unmaps them again. Does
/// not use the allocator, which would adapt to the request.
fn is_there(bytes: usize) -> bool {
    // SAFETY: a new mapping that no other code knows, and that is unmapped at once.
    unsafe {
        let start = libc::mmap(
            ptr::null_mut(),
            bytes,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANON,
            -1,
            0,
        );
        start != libc::MAP_FAILED && libc::munmap(start, bytes) == 0
    }
}

/// The maximum number of bytes of this process, according to the machine, its control group and its own limit.
pub(crate) fn most() -> u64 {
    if cfg!(zeroxide_shuttle) {
        return SIMULATED;
    }
    let mut space = libc::rlimit {
        rlim_cur: libc::RLIM_INFINITY,
        rlim_max: libc::RLIM_INFINITY,
    };
    // SAFETY: there is space for the result, which an error leaves unchanged.
    unsafe { libc::getrlimit(libc::RLIMIT_AS, &raw mut space) };
    // SAFETY: takes a number and returns one.
    let pages = unsafe { libc::sysconf(libc::_SC_PHYS_PAGES) };
    // SAFETY: as above.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    let machine = u64::try_from(pages.saturating_mul(page)).ok();
    let machine = machine.filter(|bytes| *bytes > 0);
    let most = group().into_iter().chain(machine).min();
    most.unwrap_or(u64::MAX).min(space.rlim_cur)
}

/// The smallest limit of the process's control groups.
fn group() -> Option<u64> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let limit = |file: String| fs::read_to_string(file).ok()?.trim().parse().ok();
    limit_files(&groups).into_iter().filter_map(limit).min()
}

/// The files with the limits of these control groups and of those above them, in both versions of the hierarchy.
fn limit_files(groups: &str) -> Vec<String> {
    let mut files = Vec::new();
    for line in groups.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else {
            continue;
        };
        let (root, name) = match controllers {
            "" => ("/sys/fs/cgroup", "memory.max"),
            some if some.split(',').any(|one| one == "memory") => {
                ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")
            }
            _ => continue,
        };
        // Within a container, the path may be the host's, and the group is at the root.
        files.push(format!("{root}/{name}"));
        let mut path = path;
        while let Some((above, _)) = path.rsplit_once('/').filter(|_| path.len() > 1) {
            files.push(format!("{root}{path}/{name}"));
            path = above;
        }
    }
    files
}

/// The time of a monotonic clock, in nanoseconds.
fn now() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    Duration::try_from(now).map_or(0, nanos)
}

fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

/// The time from which the operation may be repeated. A single number without a lock, because a fork may copy it at any
/// moment.
struct Ration(AtomicU64);

impl Ration {
    const fn new() -> Ration {
        Ration(AtomicU64::new(0))
    }

    /// Reserves the operation, or returns how long to wait for the next turn.
    fn begin(&self, now: u64) -> Result<(), u64> {
        let next = self.0.load(Ordering::Relaxed);
        if next > now {
            return Err(next - now);
        }
        let every = nanos(EVERY);
        let taken =
            self.0
                .compare_exchange(next, now + every, Ordering::Relaxed, Ordering::Relaxed);
        taken.map(|_| ()).map_err(|_| every)
    }

    /// Records that the operation ran from `start` to `end`.
    fn end(&self, start: u64, end: u64) {
        let took = end.saturating_sub(start);
        let next = end.saturating_add(took.saturating_mul(SHARE));
        self.0.fetch_max(next, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn limits_of_both_hierarchies_and_of_all_groups_above_count() {
        let groups =
            "12:cpu,cpuacct:/job\n4:rdma,memory:/job/step\n1:name=systemd:/job\n0::/user/one\n";
        assert_eq!(
            limit_files(groups),
            [
                "/sys/fs/cgroup/memory/memory.limit_in_bytes",
                "/sys/fs/cgroup/memory/job/step/memory.limit_in_bytes",
                "/sys/fs/cgroup/memory/job/memory.limit_in_bytes",
                "/sys/fs/cgroup/memory.max",
                "/sys/fs/cgroup/user/one/memory.max",
                "/sys/fs/cgroup/user/memory.max",
            ]
        );
        assert_eq!(limit_files("0::/\nno group"), ["/sys/fs/cgroup/memory.max"]);
    }

    #[test]
    fn there_is_memory_but_not_without_end() {
        assert!(is_there(1 << 20));
        assert!(!is_there(1 << 62));
        assert!(leaves_reserve(0));
        assert!(!leaves_reserve(1 << 62));
        assert!(!leaves_reserve(usize::MAX));
        assert!(most() > 64 << 20);
    }

    #[test]
    fn all_threads_have_one_ration() {
        let ration = Ration::new();
        let start = 5000 * MS;
        assert_eq!(ration.begin(start), Ok(()));
        assert_eq!(ration.begin(start), Err(1000 * MS));
        ration.end(start, start + 2 * MS);
        assert_eq!(ration.begin(start + 600 * MS), Err(400 * MS));
        assert_eq!(ration.begin(start + 1000 * MS), Ok(()));
        // In a process so large that the operation takes longer, it runs less often.
        ration.end(start + 1000 * MS, start + 1050 * MS);
        assert_eq!(ration.begin(start + 5000 * MS), Err(1050 * MS));
        assert_eq!(ration.begin(start + 6050 * MS), Ok(()));
    }
}
