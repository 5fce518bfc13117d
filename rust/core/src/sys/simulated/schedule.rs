//! Which thread runs next.

use shuttle::scheduler::{Schedule, Scheduler, Task, TaskId};

use super::{Random, WORLD, World};

/// The first thread that the scenario's own thread starts.
const KERNEL: usize = 1;

/// Runs schedules with consecutive seeds. The seed also chooses how a schedule comes about, because each way finds other
/// faults.
pub(super) struct Seeds {
    first: u64,
    count: u64,
    done: u64,
    random: Random,
    way: Way,
    /// The threads that can run. It keeps its room.
    runnable: Vec<TaskId>,
    /// The kernel thread runs once in this many switches, even if others can.
    notice: usize,
}

/// How a schedule comes about.
enum Way {
    /// At every switch, any thread may be next.
    Any,
    /// The current thread continues, except once in this many switches.
    Stay(usize),
    /// The thread of the highest rank continues. Once in `every` switches, and if it spins, its rank becomes the lowest.
    Ranks {
        every: usize,
        ranks: Vec<u64>,
        lowest: u64,
    },
}

impl Seeds {
    pub(super) fn new(first: u64, count: u64) -> Seeds {
        Seeds {
            first,
            count,
            done: 0,
            random: Random::new(0),
            way: Way::Any,
            runnable: Vec::new(),
            notice: 1,
        }
    }
}

impl Scheduler for Seeds {
    fn new_execution(&mut self) -> Option<Schedule> {
        if self.done == self.count {
            return None;
        }
        let seed = self.first + self.done;
        self.done += 1;
        WORLD.set(World::new(seed));
        self.random = Random::new(seed);
        self.notice = [4, 16, 64, 256][self.random.below(4)];
        self.way = match self.random.below(6) {
            0 => Way::Any,
            1 => Way::Stay(3),
            2 => Way::Stay(10),
            3 => Way::Stay(50),
            rest => Way::Ranks {
                every: if rest == 4 { 40 } else { 200 },
                ranks: Vec::new(),
                lowest: u64::MAX / 2,
            },
        };
        Some(Schedule::new(seed))
    }

    fn next_task(
        &mut self,
        tasks: &[&Task],
        current: Option<TaskId>,
        is_yielding: bool,
    ) -> Option<TaskId> {
        // Others are parked: a wait of a real thread also ends without a reason, but no word is said for nothing here.
        let runnable = &mut self.runnable;
        runnable.clear();
        let mut kernel = None;
        for task in tasks.iter().filter(|task| task.runnable()) {
            match usize::from(task.id()) {
                KERNEL => kernel = Some(task.id()),
                _ => runnable.push(task.id()),
            }
        }
        let idle = runnable.is_empty();
        let next = if kernel.is_some() && (idle || self.random.below(self.notice) == 0) {
            kernel
        } else {
            let current = current.filter(|current| runnable.contains(current));
            let random = &mut self.random;
            Some(self.way.next(runnable, current, is_yielding, random))
        };
        WORLD.with_borrow_mut(|world| {
            world.idle = idle;
            world.note(next.map_or(usize::MAX, usize::from), runnable.len());
        });
        next
    }

    fn next_u64(&mut self) -> u64 {
        self.random.next()
    }
}

impl Way {
    fn next(
        &mut self,
        runnable: &[TaskId],
        current: Option<TaskId>,
        is_yielding: bool,
        random: &mut Random,
    ) -> TaskId {
        match self {
            Way::Any => runnable[random.below(runnable.len())],
            Way::Stay(every) => match current {
                Some(current) if !is_yielding && random.below(*every) > 0 => current,
                _ => runnable[random.below(runnable.len())],
            },
            Way::Ranks {
                every,
                ranks,
                lowest,
            } => {
                let most = runnable.iter().map(|&task| usize::from(task)).max();
                while most.is_some_and(|most| ranks.len() <= most) {
                    ranks.push(u64::MAX / 2 + random.next() / 2);
                }
                if let Some(current) = current
                    && (is_yielding || random.below(*every) == 0)
                {
                    *lowest -= 1;
                    ranks[usize::from(current)] = *lowest;
                }
                let rank = |task: &&TaskId| ranks[usize::from(**task)];
                *runnable.iter().max_by_key(rank).expect("a thread can run")
            }
        }
    }
}
