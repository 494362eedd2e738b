//! The CPU time of a process, as the kernel counts it.

use std::process::{Command, Stdio};
use std::time::Duration;

/// User and system time of a process and of those it has started that still run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cpu {
    pub user: Duration,
    pub system: Duration,
}

impl Cpu {
    /// Of these processes together.
    pub fn of(pids: &[u32]) -> Cpu {
        pids.iter()
            .map(|pid| read(*pid))
            .fold(Cpu::default(), |sum, cpu| Cpu {
                user: sum.user + cpu.user,
                system: sum.system + cpu.system,
            })
    }

    pub fn since(self, before: Cpu) -> Cpu {
        Cpu {
            user: self.user.saturating_sub(before.user),
            system: self.system.saturating_sub(before.system),
        }
    }

    pub fn total(self) -> Duration {
        self.user + self.system
    }
}

/// Keeps a process and all its threads on one core, so that it is not moved about in the middle of a measurement. Whether
/// that could be done: it takes `taskset` and a core of that number.
pub fn keep_on_core(pid: u32, core: usize) -> bool {
    let told = Command::new("taskset")
        .args(["-acp", &core.to_string(), &pid.to_string()])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    told.is_ok_and(|status| status.success())
}

/// Fields 14 and 15 of `/proc/PID/stat` (proc_pid_stat(5)), in clock ticks.
fn read(pid: u32) -> Cpu {
    let path = format!("/proc/{pid}/stat");
    let stat = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
    let fields: Vec<&str> = stat
        .rsplit(')')
        .next()
        .unwrap_or_default()
        .split_whitespace()
        .collect();
    let ticks = |at: usize| {
        fields[at]
            .parse::<u64>()
            .unwrap_or_else(|e| panic!("{path}: {e}"))
    };
    let time = |at: usize| Duration::from_secs_f64(ticks(at) as f64 / ticks_per_second());
    Cpu {
        user: time(11),
        system: time(12),
    }
}

fn ticks_per_second() -> f64 {
    static TICKS: std::sync::OnceLock<f64> = std::sync::OnceLock::new();
    *TICKS.get_or_init(|| {
        let told = Command::new("getconf")
            .arg("CLK_TCK")
            .output()
            .expect("getconf runs");
        String::from_utf8_lossy(&told.stdout)
            .trim()
            .parse()
            .expect("CLK_TCK")
    })
}
