//! Programs that end with this process, and free ports for them.

use std::fs::{self, File};
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Runs the program `$3...` with the log `$2`. Kills the program and removes the folder `$1` when the standard input
/// closes, which happens even if the process at its other end is killed.
const GUARD: &str = r#"
folder=$1 log=$2
shift 2
exec 3<&0 </dev/null
"$@" >"$log" 2>&1 3<&- &
program=$!
{ read -r _ <&3; trap '' TERM; kill -9 "$program"; rm -rf "$folder" || rm -rf "$folder"; } &
wait "$program"
status=$?
kill "$!"
exit "$status"
"#;

/// A program of the hub. It is killed when this value is dropped or this process ends, also by `SIGKILL`.
#[derive(Debug)]
pub(super) struct Program {
    name: &'static str,
    log: PathBuf,
    /// Holds the pipe to the guard.
    guard: Child,
}

impl Program {
    /// Starts the program `name` of the folder `programs`. The guard removes `folder` when the program is killed.
    pub(super) fn start(name: &'static str, programs: &Path, folder: &Path, arguments: &[String]) -> Self {
        let log = folder.join(format!("{name}.log"));
        File::create(&log).unwrap();
        let guard = Command::new("sh")
            .args(["-c", GUARD, "sh"])
            .args([folder, &log, &programs.join(name)])
            .args(arguments)
            // A Ctrl-C for the tests must not end the guard before the program.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Self { name, log, guard }
    }

    /// Returns the log if the program has ended.
    pub(super) fn log_of_ended(&mut self) -> Option<String> {
        let status = self.guard.try_wait().unwrap()?;
        let log = fs::read_to_string(&self.log).unwrap_or_default();
        Some(format!("{} ended with {status}:\n{log}", self.name))
    }

    /// Returns the end of the log, for messages.
    pub(super) fn log_tail(&self) -> String {
        let log = fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        format!("{}:\n{}\n", self.name, lines[lines.len().saturating_sub(20)..].join("\n"))
    }

    /// Returns the id of the guard, whose child is the program.
    pub(super) fn guard_id(&self) -> u32 {
        self.guard.id()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        drop(self.guard.stdin.take());
        let _ = self.guard.wait();
    }
}

/// Returns different ports that no process listens on. Another process may take one before it is used.
pub(super) fn free_ports<const COUNT: usize>() -> [u16; COUNT] {
    // All are open at the same time, so that they differ.
    let listeners = [(); COUNT].map(|()| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap());
    listeners.map(|listener| listener.local_addr().unwrap().port())
}
