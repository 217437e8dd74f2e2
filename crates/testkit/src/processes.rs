//! Processes that carry a mark in their environment.

#[cfg(target_os = "linux")]
pub(crate) fn marked(name: &str, value: &str) -> Vec<i32> {
    let mark = format!("{name}={value}");
    let carries = |pid: i32| {
        // Gone meanwhile, or not ours to read: not marked.
        let environ = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environ.split(|byte| *byte == 0).any(|entry| entry == mark.as_bytes())
    };
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(|pid| carries(*pid)).collect()
}

/// Elsewhere nobody can tell.
#[cfg(not(target_os = "linux"))]
pub(crate) fn marked(_name: &str, _value: &str) -> Vec<i32> {
    Vec::new()
}

/// Ends a process at once.
pub(crate) fn kill(pid: i32) {
    if let Some(pid) = rustix::process::Pid::from_raw(pid) {
        // Gone meanwhile is as good.
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
    }
}
