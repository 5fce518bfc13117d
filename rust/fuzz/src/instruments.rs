//! The view of the running code that the fuzzer has: counters of reached edges, compared numbers, and memory in use.
//!
//! The unsafe code of this crate is in this file. Its invariants: the allocator passes every call on to the system's and
//! only counts, in cells of the thread that need no allocation; the counters of LLVM live as long as the program, and are
//! accessed as atomics, one byte or one aligned word at a time; the instructions that valgrind understands change nothing
//! outside it.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering::Relaxed};

/// The bytes that a thread may have in use at once. Beyond, there is no memory, as if the system had none.
const LIMIT: usize = 256 << 20;

/// The bytes in use from which a thread counts anew. Memory that another thread frees, such as that of a socket, still
/// counts as in use by the one that allocated it.
const ANEW: usize = 64 << 20;

struct Counting;

thread_local! {
    static LIVE: Cell<usize> = const { Cell::new(0) };
    static PEAK: Cell<usize> = const { Cell::new(0) };
}

/// Counts a change; false if it would exceed the limit. Memory that another thread allocated may be freed here.
fn count(less: usize, more: usize) -> bool {
    let live = LIVE.get().wrapping_sub(less).wrapping_add(more);
    let live = if live > usize::MAX / 2 { 0 } else { live };
    if live > LIMIT && more > less {
        return false;
    }
    LIVE.set(live);
    PEAK.set(PEAK.get().max(live));
    true
}

// SAFETY: every block comes from the system's allocator and goes back to it, with the caller's own arguments. A null
// pointer reports a lack of memory.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if !count(0, layout.size()) {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller follows the rules of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if !count(0, layout.size()) {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller follows the rules of `alloc_zeroed`.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if !count(layout.size(), size) {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller follows the rules of `realloc`.
        unsafe { System.realloc(memory, layout, size) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        count(layout.size(), 0);
        // SAFETY: the caller follows the rules of `dealloc`.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Forgets the peak so far. Returns the bytes of this thread that are in use.
pub fn start_measuring() -> usize {
    if LIVE.get() > ANEW {
        LIVE.set(0);
    }
    PEAK.set(LIVE.get());
    LIVE.get()
}

/// The maximum number of bytes of this thread that were in use at once since [`start_measuring`].
pub fn peak() -> usize {
    PEAK.get()
}

/// The counters of each instrumented module that the linker has not merged with another's.
static COUNTERS: Mutex<Vec<&'static [AtomicU8]>> = Mutex::new(Vec::new());

/// Called by the constructors that LLVM adds to the instrumented modules.
///
/// # Safety
/// The range holds the module's counters, which live as long as the program.
#[unsafe(no_mangle)]
unsafe extern "C" fn __sanitizer_cov_8bit_counters_init(start: *mut u8, end: *mut u8) {
    let Ok(mut all) = COUNTERS.lock() else { return };
    let is_new = all
        .iter()
        .all(|known| known.as_ptr().cast() != start.cast_const());
    let length = (end as usize).saturating_sub(start as usize);
    if is_new && length > 0 {
        // SAFETY: the range is permanently valid, and every access of this crate is atomic.
        all.push(unsafe { std::slice::from_raw_parts(start.cast::<AtomicU8>(), length) });
    }
}

/// The number of counters; 0 if nothing is instrumented.
pub fn counters() -> usize {
    let all = COUNTERS.lock().expect("no holder panics");
    all.iter().map(|module| module.len()).sum()
}

/// Passes every counter that is not zero to `each`, with its index, and sets it to zero.
pub fn take_counters(mut each: impl FnMut(usize, u8)) {
    let all = COUNTERS.lock().expect("no holder panics");
    let mut index = 0;
    for module in all.iter() {
        // SAFETY: eight atomic bytes have the size of an atomic word, and `align_to` aligns the middle part.
        let (head, words, tail) = unsafe { module.align_to::<AtomicU64>() };
        take_bytes(head, index, &mut each);
        index += head.len();
        for word in words {
            let value = word.load(Relaxed);
            if value != 0 {
                word.store(0, Relaxed);
                let bytes = value.to_ne_bytes().into_iter().enumerate();
                bytes
                    .filter(|(_, hits)| *hits != 0)
                    .for_each(|(at, hits)| each(index + at, hits));
            }
            index += 8;
        }
        take_bytes(tail, index, &mut each);
        index += tail.len();
    }
}

fn take_bytes(bytes: &[AtomicU8], index: usize, each: &mut impl FnMut(usize, u8)) {
    for (at, byte) in bytes.iter().enumerate() {
        let hits = byte.load(Relaxed);
        if hits != 0 {
            byte.store(0, Relaxed);
            each(index + at, hits);
        }
    }
}

/// The number of remembered comparisons.
const COMPARED: usize = 512;

static IS_COMPARING: AtomicBool = AtomicBool::new(false);
static NEXT: AtomicUsize = AtomicUsize::new(0);
static LEFT: [AtomicU64; COMPARED] = [const { AtomicU64::new(0) }; COMPARED];
static RIGHT: [AtomicU64; COMPARED] = [const { AtomicU64::new(0) }; COMPARED];

/// Remembers the unequal numbers that the code compares from now on, the last ones if there are many.
pub fn start_comparing() {
    NEXT.store(0, Relaxed);
    IS_COMPARING.store(true, Relaxed);
}

/// The numbers that were compared since [`start_comparing`], in pairs.
pub fn stop_comparing() -> Vec<(u64, u64)> {
    IS_COMPARING.store(false, Relaxed);
    let count = NEXT.load(Relaxed).min(COMPARED);
    let mut pairs: Vec<_> = (0..count)
        .map(|at| (LEFT[at].load(Relaxed), RIGHT[at].load(Relaxed)))
        .collect();
    pairs.sort_unstable();
    pairs.dedup();
    pairs
}

#[inline]
fn compared(left: u64, right: u64) {
    if left != right && IS_COMPARING.load(Relaxed) {
        let at = NEXT.fetch_add(1, Relaxed) % COMPARED;
        LEFT[at].store(left, Relaxed);
        RIGHT[at].store(right, Relaxed);
    }
}

macro_rules! comparisons {
    ($($name:ident: $number:ty,)*) => {$(
        /// Called by instrumented code before it compares two numbers.
        #[unsafe(no_mangle)]
        extern "C" fn $name(left: $number, right: $number) {
            compared(left.into(), right.into());
        }
    )*};
}

comparisons! {
    __sanitizer_cov_trace_cmp1: u8,
    __sanitizer_cov_trace_cmp2: u16,
    __sanitizer_cov_trace_cmp4: u32,
    __sanitizer_cov_trace_cmp8: u64,
    __sanitizer_cov_trace_const_cmp1: u8,
    __sanitizer_cov_trace_const_cmp2: u16,
    __sanitizer_cov_trace_const_cmp4: u32,
    __sanitizer_cov_trace_const_cmp8: u64,
}

/// Called by instrumented code before a `match` on a number.
///
/// # Safety
/// `cases` points to the number of cases, a size in bits, and the cases.
#[unsafe(no_mangle)]
unsafe extern "C" fn __sanitizer_cov_trace_switch(value: u64, cases: *const u64) {
    if IS_COMPARING.load(Relaxed) {
        // SAFETY: the first word is the number of cases, which follow a second word.
        let cases = unsafe { std::slice::from_raw_parts(cases.add(2), *cases as usize) };
        cases.iter().for_each(|case| compared(value, *case));
    }
}

/// The requests of memcheck that make bytes undefined and defined.
const UNDEFINED: usize = 0x4d43_0001;
const DEFINED: usize = 0x4d43_0002;

/// Under valgrind, reports every branch and every address that depends on these bytes from now on, as if they had never
/// been written. Without it, does nothing.
pub fn hide(bytes: &[u8]) {
    tell_memcheck(UNDEFINED, bytes);
}

/// Ends [`hide`] for these bytes, because they are public.
pub fn reveal(bytes: &[u8]) {
    tell_memcheck(DEFINED, bytes);
}

#[cfg(target_arch = "x86_64")]
fn tell_memcheck(request: usize, bytes: &[u8]) {
    let arguments = [request, bytes.as_ptr() as usize, bytes.len(), 0, 0, 0];
    // SAFETY: the rotations add up to 128 bits, and the exchange is of a register with itself: valgrind recognises the
    // sequence, and a processor does nothing. The request only concerns what valgrind records about the bytes.
    unsafe {
        std::arch::asm!(
            "rol rdi, 3",
            "rol rdi, 13",
            "rol rdi, 61",
            "rol rdi, 51",
            "xchg rbx, rbx",
            inout("rax") arguments.as_ptr() => _,
            inout("rdx") 0_usize => _,
        );
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn tell_memcheck(_: usize, _: &[u8]) {}
