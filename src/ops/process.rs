//! What the process knows of itself: descriptors and the lateness of its event loop.

use crate::clock;
use crate::metrics::Metrics;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

/// How many descriptors are open; nothing where that cannot be found out, as when there is none left to look with.
pub fn open_fds() -> Option<u64> {
    // kernels since 6.2 say it as the folder's size (proc_pid_fd(5)); on others it is counted
    let size = std::fs::metadata("/proc/self/fd").map_or(0, |fds| fds.len());
    if size > 0 {
        return Some(size);
    }
    let counted = std::fs::read_dir("/proc/self/fd").ok()?.count();
    // reading the folder opens one
    u64::try_from(counted).ok()?.checked_sub(1)
}

/// Lets the process open as many descriptors as it is allowed to.
#[allow(
    unsafe_code,
    reason = "the limits of the process are only reached by system calls"
)]
pub fn raise_fd_limit() {
    let Some(limit) = fd_limit() else {
        return;
    };
    let wanted = libc::rlimit {
        rlim_cur: limit.rlim_max,
        ..limit
    };
    // SAFETY: the call only reads the struct, which outlives it.
    if unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const wanted) } != 0 {
        log::warn!(
            "only {} descriptors may be open: {}",
            limit.rlim_cur,
            std::io::Error::last_os_error()
        );
    }
}

/// How many descriptors may be open; 0 where the system does not say.
pub fn max_fds() -> u64 {
    fd_limit().map_or(0, |limit| limit.rlim_cur)
}

#[allow(
    unsafe_code,
    reason = "the limits of the process are only reached by system calls"
)]
fn fd_limit() -> Option<libc::rlimit> {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: the call only writes the struct, which outlives it.
    let read = unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) };
    (read == 0).then_some(limit)
}

/// Measures how late the event loop wakes, from a task of its own on that loop.
pub struct LoopLag {
    metrics: Arc<Metrics>,
    /// Told how late it woke, each time.
    told: Box<dyn FnMut(Duration) + Send + Sync>,
}

const STEP: Duration = Duration::from_millis(100);
const STEPS_KEPT: usize = 100;

impl LoopLag {
    pub fn new(
        metrics: Arc<Metrics>,
        told: impl FnMut(Duration) + Send + Sync + 'static,
    ) -> LoopLag {
        LoopLag {
            metrics,
            told: Box::new(told),
        }
    }

    /// Runs for as long as it is polled.
    pub async fn run(mut self) {
        let mut last = VecDeque::with_capacity(STEPS_KEPT);
        loop {
            let before = clock::instant();
            tokio::time::sleep(STEP).await;
            // the timer's own grain is a millisecond
            let late = before
                .elapsed()
                .saturating_sub(STEP + Duration::from_millis(1));
            if last.len() == STEPS_KEPT {
                last.pop_front();
            }
            last.push_back(late);
            let worst = last.iter().max().copied().unwrap_or_default();
            self.metrics.table.loop_lag.set(worst.as_secs_f64());
            (self.told)(late);
        }
    }
}

/// Has what only concerns a gateway that serves, a reload and the reopening of logs, pass over one that starts: untaken,
/// such a signal ends a process. `Signals` takes them once it serves.
#[allow(
    unsafe_code,
    reason = "what a signal does is only changed by a system call"
)]
pub fn start_through_signals() {
    for number in [libc::SIGHUP, libc::SIGUSR1] {
        // SAFETY: no code of ours is set to run, the kernel only forgets the signal.
        if unsafe { libc::signal(number, libc::SIG_IGN) } == libc::SIG_ERR {
            let e = std::io::Error::last_os_error();
            log::warn!("signal {number} ends the process until it serves: {e}");
        }
    }
}
