//! Processor time, which is what a target is given: on a busy machine it runs longer, and does as much.

use std::fs::File;
use std::io::Read;
use std::time::Duration;

/// Linux counts these times in hundredths of a second.
const TICK: Duration = Duration::from_millis(10);

/// The processor time of this process so far.
pub(crate) fn used() -> Duration {
    let [user, system, ..] = times();
    user + system
}

/// The processor time of the children that have ended.
pub(crate) fn used_by_children() -> Duration {
    let [.., user, system] = times();
    user + system
}

/// The processor time in the program and in the kernel, of this process and of its children.
fn times() -> [Duration; 4] {
    // On the stack, because an input that runs meanwhile has a limit of memory.
    let mut stat = [0; 1024];
    let read = File::open("/proc/self/stat").and_then(|mut file| file.read(&mut stat));
    let text = str::from_utf8(&stat[..read.unwrap_or(0)]).unwrap_or_default();
    // The name of the program, in brackets, may contain spaces. The first field after it has number 3.
    let fields = text.rsplit(") ").next().unwrap_or_default();
    let mut fields = fields.split(' ').skip(14 - 3);
    [(); 4].map(|()| {
        let ticks = fields.next().and_then(|field| field.parse().ok());
        TICK * ticks.unwrap_or(0)
    })
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn work_is_counted_where_it_is_done() {
        let before = (used(), used_by_children());
        let mut sum = 0_u64;
        while used() < before.0 + TICK * 5 {
            sum = std::hint::black_box(sum.wrapping_add(1));
        }
        assert_eq!(used_by_children(), before.1);
        let loops = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done";
        let status = Command::new("sh").args(["-c", loops]).status().unwrap();
        assert!(status.success() && used_by_children() > before.1);
    }
}
