//! The machine the figures are from.

use serde_json::{Value, json};
use std::fmt;

pub struct Machine {
    cpu: String,
    cores: usize,
    kernel: String,
}

impl Machine {
    pub fn this() -> Machine {
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let cpuinfo = read("/proc/cpuinfo");
        let cpu = cpuinfo
            .lines()
            .find_map(|line| line.strip_prefix("model name")?.split_once(": "));
        Machine {
            cpu: cpu.map_or("unknown CPU", |(_, name)| name).to_owned(),
            cores: std::thread::available_parallelism().map_or(0, usize::from),
            kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
        }
    }

    pub fn json(&self) -> Value {
        json!({"cpu": self.cpu, "cores": self.cores, "kernel": self.kernel})
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}, {} cores, Linux {}",
            self.cpu, self.cores, self.kernel
        )
    }
}
