//! The hardware, the system and the time of a run.

use std::fmt;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};

/// The hardware and software on which the measurements depend.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Machine {
    pub(crate) date: String,
    pub(crate) cpu: String,
    pub(crate) cores: usize,
    pub(crate) kernel: String,
    /// The TCP congestion control; empty in files of older versions of the bench. BBR uses timers, which cost more than
    /// they gain on loopback.
    #[serde(default)]
    pub(crate) congestion: String,
    /// Load average of the last minute, before the run.
    pub(crate) load: String,
}

impl Machine {
    pub(crate) fn detect() -> Self {
        let line = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let cpu = line("/proc/cpuinfo");
        let cpu = cpu.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
        Self {
            date: chrono::Utc::now().format("%Y-%m-%d").to_string(),
            cpu: cpu.map_or("unknown processor", |(_, name)| name.trim()).to_owned(),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            kernel: rustix::system::uname().release().to_string_lossy().into_owned(),
            congestion: line("/proc/sys/net/ipv4/tcp_congestion_control").trim().to_owned(),
            load: line("/proc/loadavg").split(' ').next().unwrap_or_default().to_owned(),
        }
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { date, cpu, cores, kernel, congestion, load } = self;
        write!(f, "{date}, {cpu}, {cores} cores, Linux {kernel}, ")?;
        if !congestion.is_empty() {
            write!(f, "TCP with {congestion}, ")?;
        }
        write!(f, "load {load} before the start.")
    }
}

/// Returns the last word of the first line of a program's version output.
///
/// # Errors
///
/// Returns an error if the program cannot be run.
pub(crate) fn version(program: &Path, option: &str) -> Result<String> {
    let about = || format!("running {} {option}", program.display());
    let output = Command::new(program).arg(option).output().with_context(about)?;
    ensure!(output.status.success(), "{}: {}", about(), output.status);
    // nginx prints its version to standard error.
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    let word = text.lines().next().and_then(|line| line.split([' ', '/']).next_back());
    Ok(word.unwrap_or_default().to_owned())
}

/// Raises the limit of open files of this process and its children to the maximum.
///
/// # Errors
///
/// Returns an error if the system call fails.
pub(crate) fn raise_limit_of_files() -> Result<()> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    Ok(setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit })?)
}
