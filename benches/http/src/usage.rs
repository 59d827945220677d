//! Reads the CPU time and memory of processes from `/proc`.

use std::collections::BTreeMap;
use std::fs;
use std::ops::AddAssign;
use std::time::Duration;

use anyhow::{Context, Result};

/// CPU time of a group of processes so far.
#[derive(Debug, Default, Clone)]
pub(crate) struct CpuTime {
    /// Nanoseconds of each living thread, by process and thread.
    threads: BTreeMap<(u32, u32), u64>,
    /// Clock ticks of whole processes, including finished threads.
    ticks: u64,
}

impl CpuTime {
    /// Reads the CPU time of a process and its children.
    ///
    /// # Errors
    ///
    /// Returns an error if the process has ended.
    pub(crate) fn read(pid: u32) -> Result<Self> {
        let mut time = Self::default();
        for pid in family(pid)? {
            time.add(pid).with_context(|| format!("reading the CPU time of process {pid}"))?;
        }
        Ok(time)
    }

    fn add(&mut self, pid: u32) -> Result<()> {
        for entry in fs::read_dir(format!("/proc/{pid}/task"))? {
            let Ok(thread) = entry?.file_name().to_string_lossy().parse() else { continue };
            // The counter is missing if the thread has ended since it was listed, or if the kernel does not support it.
            let text = fs::read_to_string(format!("/proc/{pid}/task/{thread}/schedstat")).unwrap_or_default();
            if let Some(time) = text.split(' ').next().and_then(|word| word.parse().ok()) {
                self.threads.insert((pid, thread), time);
            }
        }
        self.ticks += ticks(&fs::read_to_string(format!("/proc/{pid}/stat"))?).context("stat")?;
        Ok(())
    }

    /// Returns the CPU time since an earlier reading: exact to the nanosecond if all threads still live, otherwise in
    /// clock ticks.
    pub(crate) fn since(&self, earlier: &Self) -> Duration {
        let thread = |(key, time): (&(u32, u32), &u64)| {
            time.saturating_sub(earlier.threads.get(key).copied().unwrap_or_default())
        };
        let fine = Duration::from_nanos(self.threads.iter().map(thread).sum());
        let ticks = self.ticks.saturating_sub(earlier.ticks);
        let per_second = rustix::param::clock_ticks_per_second().max(1);
        let coarse = Duration::from_nanos(ticks.saturating_mul(1_000_000_000) / per_second);
        // Each reading rounds two counters; a larger difference is the time of finished threads.
        let rounding = Duration::from_nanos(4_000_000_000 / per_second);
        if coarse > fine + rounding { coarse } else { fine }
    }
}

/// Parses the user and system time of a process in `/proc/PID/stat`.
fn ticks(stat: &str) -> Option<u64> {
    // The program name is in parentheses and may contain any character.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    user.checked_add(system)
}

/// Lists a process and its children.
///
/// # Errors
///
/// Returns an error if the process has ended.
pub(crate) fn family(pid: u32) -> Result<Vec<u32>> {
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"))
        .with_context(|| format!("process {pid} has ended"))?;
    let children = children.split_whitespace().filter_map(|word| word.parse().ok());
    Ok(std::iter::once(pid).chain(children).collect())
}

/// Memory of processes in bytes. Pages that several processes share count once.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Memory {
    /// Private pages, which the end of the processes would free.
    pub(crate) private: u64,
    /// Mapped file pages, which are part of the page cache. The kernel can reclaim them.
    pub(crate) mapped: u64,
}

impl Memory {
    /// Reads the memory of a process and its children.
    ///
    /// # Errors
    ///
    /// Returns an error if the process has ended.
    pub(crate) fn read(pid: u32) -> Result<Self> {
        let mut memory = Self::default();
        for pid in family(pid)? {
            let path = format!("/proc/{pid}/smaps_rollup");
            let text = fs::read_to_string(&path).with_context(|| format!("reading {path}"))?;
            memory += Self::parse(&text).with_context(|| format!("reading {path}"))?;
        }
        Ok(memory)
    }

    fn parse(text: &str) -> Option<Self> {
        let field = |name: &str| {
            let rest = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
            let kilobytes: u64 = rest.trim().strip_suffix("kB")?.trim().parse().ok()?;
            kilobytes.checked_mul(1024)
        };
        let private = field("Pss_Anon").or_else(|| field("Anonymous"))?;
        let mapped = field("Pss_File").or_else(|| field("Rss")?.checked_sub(private))?;
        Some(Self { private, mapped })
    }
}

/// Reads the total length of all pages that only this process has mapped (`Private_*` in `smaps_rollup`): its own data,
/// and pages of files, such as its program, that no other process has mapped.
///
/// # Errors
///
/// Returns an error if the process has ended.
pub(crate) fn private_pages(pid: u32) -> Result<u64> {
    let path = format!("/proc/{pid}/smaps_rollup");
    let text = fs::read_to_string(&path).with_context(|| format!("reading {path}"))?;
    parse_private_pages(&text).with_context(|| format!("reading {path}"))
}

fn parse_private_pages(text: &str) -> Option<u64> {
    let mut lines = text.lines().filter(|line| line.starts_with("Private_")).peekable();
    lines.peek()?;
    let kilobytes = |line: &str| -> Option<u64> {
        line.split_once(':')?.1.trim().strip_suffix("kB")?.trim().parse().ok()
    };
    lines.try_fold(0_u64, |sum, line| sum.checked_add(kilobytes(line)?.checked_mul(1024)?))
}

impl AddAssign for Memory {
    fn add_assign(&mut self, other: Self) {
        self.private += other.private;
        self.mapped += other.mapped;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn cpu_ticks_are_parsed_after_any_process_name() {
        let stat = "7 (a ) b) S 1 2 3 4 5 6 7 8 9 10 250 50 13 14";
        assert_eq!(ticks(stat), Some(300));
        assert_eq!(ticks("7 (a"), None);
        assert_eq!(ticks("7 (a) S 1 2"), None);
    }

    #[test]
    fn memory_is_pss_or_rss() {
        let text = "00400000-7ff [rollup]\nRss:   900 kB\nPss:  800 kB\nPss_Anon: 300 kB\nPss_File: 500 kB\nAnonymous: 350 kB\n";
        let kib = |private: u64, mapped: u64| Some(Memory { private: private << 10, mapped: mapped << 10 });
        assert_eq!(Memory::parse(text), kib(300, 500));
        assert_eq!(Memory::parse("Rss: 900 kB\nAnonymous: 350 kB\n"), kib(350, 550));
        assert_eq!(Memory::parse("Rss: 900\n"), None);
    }

    #[test]
    fn private_pages_are_added_up() {
        let text =
            "Rss: 900 kB\nPrivate_Clean:   100 kB\nPrivate_Dirty:  20 kB\nPrivate_Hugetlb: 0 kB\nPss: 1 kB\n";
        assert_eq!(parse_private_pages(text), Some(120 << 10));
        assert_eq!(parse_private_pages("Rss: 900 kB\n"), None);
        assert_eq!(parse_private_pages("Private_Clean: 1\n"), None);
        assert!(private_pages(std::process::id()).unwrap() > 64 << 10);
    }

    #[test]
    fn finished_threads_are_counted_in_ticks() {
        let earlier = CpuTime { threads: [((1, 1), 5_000_000)].into(), ticks: 100 };
        let fine = CpuTime { threads: [((1, 1), 9_000_000), ((1, 2), 1_000_000)].into(), ticks: 101 };
        assert_eq!(fine.since(&earlier), Duration::from_millis(5));
        let ended = CpuTime { ticks: 300, ..fine };
        assert_eq!(ended.since(&earlier), Duration::from_secs(200) / u32::try_from(clock()).unwrap());
    }

    fn clock() -> u64 {
        rustix::param::clock_ticks_per_second()
    }

    #[test]
    fn usage_of_this_process_is_positive() {
        let pid = std::process::id();
        let before = CpuTime::read(pid).unwrap();
        let start = Instant::now();
        while start.elapsed() < Duration::from_millis(60) {
            std::hint::spin_loop();
        }
        assert!(CpuTime::read(pid).unwrap().since(&before) > Duration::from_millis(1));
        assert!(Memory::read(pid).unwrap().private > 64 << 10);
    }
}
