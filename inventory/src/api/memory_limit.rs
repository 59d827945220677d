//! The memory that this process may use, if its address space (`ulimit -v`) or its control groups are limited.

use std::fs;
use std::path::Path;

use rustix::process::{Resource, getrlimit};

const CONTROL_GROUPS: &str = "/sys/fs/cgroup";

/// The memory that this process may allocate. `None`: no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct AvailableMemory {
    /// Remaining address space, in bytes. A larger allocation fails, which ends the process unless the code handles it.
    address_space: Option<u64>,
    /// Memory limit of the control groups, in bytes. If their processes use more, the kernel kills one of them.
    control_groups: Option<u64>,
}

impl AvailableMemory {
    /// Returns the address space that this process may still use, and the limit of its control groups.
    pub(crate) fn from_process() -> Self {
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let rest = |resource: Resource, used: &str| {
            getrlimit(resource).current.map(|limit| limit.saturating_sub(kibibytes(&status, used) << 10))
        };
        let limits = [rest(Resource::As, "VmSize:"), rest(Resource::Data, "VmData:")];
        let memberships = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        Self {
            address_space: limits.into_iter().flatten().min(),
            control_groups: limit_of_control_groups(Path::new(CONTROL_GROUPS), &memberships),
        }
    }

    /// Returns `true` if allocations may fail.
    pub(super) fn has_limited_address_space(self) -> bool {
        self.address_space.is_some()
    }

    /// Returns the smaller of `bytes` and the available memory divided by `divisor`.
    pub(super) fn limit(self, bytes: usize, divisor: u64) -> usize {
        let available = self.address_space.into_iter().chain(self.control_groups).min();
        let part = available.map(|available| available / divisor.max(1));
        part.map_or(bytes, |part| usize::try_from(part).map_or(bytes, |part| part.min(bytes)))
    }
}

/// Returns a number from `/proc/self/status`, or 0 if the system does not report it.
fn kibibytes(status: &str, name: &str) -> u64 {
    let value = status.lines().find_map(|line| line.strip_prefix(name)?.trim().strip_suffix("kB"));
    value.and_then(|value| value.trim().parse().ok()).unwrap_or(0)
}

/// Returns the lowest memory limit of a process's control groups and of the groups that contain them. `memberships` is
/// the content of `/proc/self/cgroup`. In a container, `memberships` may contain paths of the host, while the root of
/// the file system is the container's own group.
fn limit_of_control_groups(root: &Path, memberships: &str) -> Option<u64> {
    let limits = memberships.lines().flat_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, path) = (fields.next().unwrap_or_default(), fields.next().unwrap_or_default());
        let (root, file) = match controllers {
            "" => (root.to_owned(), "memory.max"),
            _ if controllers.split(',').any(|name| name == "memory") => {
                (root.join("memory"), "memory.limit_in_bytes")
            }
            _ => return Vec::new(),
        };
        let groups = Path::new(path.trim_start_matches('/')).ancestors();
        groups.filter_map(|group| read_limit(&root.join(group).join(file))).collect()
    });
    limits.min()
}

/// Reads a limit from a file. The file of a group without a limit contains `max`.
fn read_limit(file: &Path) -> Option<u64> {
    fs::read_to_string(file).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    #[test]
    fn lowest_limit_of_all_control_groups_applies() {
        let root = TempDir::new().unwrap();
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let limit = |memberships| limit_of_control_groups(root.path(), memberships);
        assert_eq!(limit("0::/a/b\n"), None);
        write("a/b/memory.max", "max\n");
        assert_eq!(limit("0::/a/b\n"), None);
        write("a/memory.max", "3000\n");
        assert_eq!(limit("0::/a/b\n"), Some(3000));
        write("a/b/memory.max", "4000\n");
        assert_eq!(limit("0::/a/b\n"), Some(3000));
        assert_eq!(limit("1:cpu:/a\n"), None);
        write("memory/memory.limit_in_bytes", "2000\n");
        assert_eq!(limit("4:cpu,memory:/not/mounted\n0::/a\n"), Some(2000));
    }

    #[test]
    fn limit_is_a_fraction_of_the_scarcest_memory() {
        let memory = |address_space, control_groups| AvailableMemory { address_space, control_groups };
        assert_eq!(memory(None, None).limit(100, 2), 100);
        assert_eq!(memory(Some(150), None).limit(100, 2), 75);
        assert_eq!(memory(Some(150), Some(90)).limit(100, 2), 45);
        assert_eq!(memory(Some(900), None).limit(100, 2), 100);
    }

    #[test]
    fn address_space_of_this_process_can_be_read() {
        let status = fs::read_to_string("/proc/self/status").unwrap();
        assert!(kibibytes(&status, "VmSize:") > kibibytes(&status, "VmRSS:"), "{status}");
    }
}
