//! How much memory may still be taken: what the host has and what the cgroups of this process leave.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// Bytes that can be taken before the host or a cgroup runs out; `None` where neither says anything.
pub(crate) fn available() -> Option<u64> {
    let host = kilobytes("/proc/meminfo", "MemAvailable:");
    host.into_iter().chain(groups().iter().filter_map(|group| group_leaves(group))).min()
}

/// Bytes of this process that are in memory.
pub(crate) fn resident() -> Option<u64> {
    kilobytes("/proc/self/status", "VmRSS:")
}

fn kilobytes(file: &str, key: &str) -> Option<u64> {
    let text = fs::read_to_string(file).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(key))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// The memory cgroups that hold this process, from its own to the root. Inside a container the path may not be there;
/// then the root of the mount is the container's own group.
fn groups() -> Vec<PathBuf> {
    let text = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let mut found = Vec::new();
    for line in text.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { continue };
        let root = match controllers {
            "" => Path::new("/sys/fs/cgroup"),
            all if all.split(',').any(|one| one == "memory") => Path::new("/sys/fs/cgroup/memory"),
            _ => continue,
        };
        let own = root.join(path.trim_start_matches('/'));
        found.extend(own.ancestors().take_while(|group| group.starts_with(root)).map(Path::to_path_buf));
    }
    found
}

/// Pages of files that nobody used lately do not count: the kernel drops them first.
fn group_leaves(group: &Path) -> Option<u64> {
    let number = |name: &str| fs::read_to_string(group.join(name)).ok()?.trim().parse::<u64>().ok();
    let limit = number("memory.max").or_else(|| number("memory.limit_in_bytes"))?;
    let used = number("memory.current").or_else(|| number("memory.usage_in_bytes"))?;
    let stat = fs::read_to_string(group.join("memory.stat")).unwrap_or_default();
    let of = |key: &str| {
        stat.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(' ')?.trim().parse::<u64>().ok())
    };
    let idle = of("total_inactive_file").or_else(|| of("inactive_file")).unwrap_or_default();
    Some(limit.saturating_sub(used.saturating_sub(idle)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_leaves_its_limit_less_what_is_used_but_for_idle_files() {
        let folder = tempfile::TempDir::new().unwrap();
        let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
        assert_eq!(group_leaves(folder.path()), None);
        write("memory.current", "700\n");
        write("memory.max", "max\n");
        assert_eq!(group_leaves(folder.path()), None, "no limit");
        write("memory.max", "1000\n");
        assert_eq!(group_leaves(folder.path()), Some(300));
        write("memory.stat", "anon 400\ninactive_file 200\n");
        assert_eq!(group_leaves(folder.path()), Some(500));
    }

    #[test]
    fn this_process_is_in_memory_and_some_is_left() {
        assert!(resident().unwrap() > 1 << 20);
        assert!(available().unwrap() > 1 << 20);
    }
}
