//! What a process takes of the machine, as the kernel tells it.

/// Resident memory in bytes.
#[track_caller]
pub fn resident(pid: u32) -> u64 {
    let status = read(pid, "status");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kib.unwrap_or_else(|| panic!("no VmRSS: {status}")) << 10
}

/// Open descriptors, by their numbers.
#[track_caller]
pub fn descriptors(pid: u32) -> Vec<u32> {
    let folder = format!("/proc/{pid}/fd");
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|e| panic!("{folder}: {e}"));
    entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .collect()
}

/// Time spent on the CPU, in hundredths of a second.
#[track_caller]
pub fn cpu_ticks(pid: u32) -> u64 {
    let stat = read(pid, "stat");
    // the name in brackets may hold anything
    let fields: Vec<&str> = stat
        .rsplit(')')
        .next()
        .unwrap_or_default()
        .split_whitespace()
        .collect();
    let field = |n: usize| {
        fields
            .get(n)
            .and_then(|f| f.parse::<u64>().ok())
            .unwrap_or(0)
    };
    field(11) + field(12)
}

#[track_caller]
fn read(pid: u32, name: &str) -> String {
    let path = format!("/proc/{pid}/{name}");
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"))
}
