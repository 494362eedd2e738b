//! What must hold of memory: a stream of any length and kind keeps no more than a bounded part of itself.

use crate::case::Case;
use crate::sse::HELD_MAX;
use bytes::Bytes;
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Inputs of this seed are fed over and over: that takes far longer than anything else.
const SEED: u64 = 0;

const FED: usize = 8 * HELD_MAX;

/// The tail that is held, the room to join its lines, a copy on its way out; each may have grown by doubling.
const KEPT: usize = 6 * HELD_MAX;

/// Reads of about this size.
const READ: usize = 4096;

/// Counts what is allocated.
struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

// SAFETY: an allocator is an unsafe trait; every call goes on to the system's with the layout it came with.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let live = LIVE.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        PEAK.fetch_max(live, Ordering::Relaxed);
        // SAFETY: as the caller promised.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as the caller promised.
        unsafe { System.dealloc(at, layout) }
    }
}

pub fn check(case: &Case<'_>) {
    if case.stream.is_empty() || case.seed != SEED || !case.passes_events() {
        return;
    }
    let piece = Bytes::from(case.stream.repeat(READ.div_ceil(case.stream.len())));
    let before = LIVE.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    let mut answer = case.answer();
    for _ in 0..FED.div_ceil(piece.len()) {
        answer.feed(piece.clone());
    }
    let kept = PEAK.load(Ordering::Relaxed).saturating_sub(before);
    assert!(kept <= KEPT, "{kept} bytes were allocated for one stream");
}
