//! Starts programs that end together with this process, and finds free ports for them.

use std::fs::{self, File};
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A shell script that runs the program `$3...` with the log file `$2`. When standard input closes, the script kills
/// the program and removes the folder `$1`. Standard input closes even if this test process is killed.
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

/// A program of the hub. It is killed when this value is dropped or this process ends, even by `SIGKILL`.
#[derive(Debug)]
pub(super) struct Program {
    name: &'static str,
    log: PathBuf,
    /// Owns the pipe to the guard.
    guard: Child,
}

impl Program {
    /// Starts the program `name` in the folder `programs`. After the program is killed, the guard removes `folder`.
    pub(super) fn start(name: &'static str, programs: &Path, folder: &Path, arguments: &[String]) -> Self {
        let log = folder.join(format!("{name}.log"));
        File::create(&log).unwrap();
        let guard = Command::new("sh")
            .args(["-c", GUARD, "sh"])
            .args([folder, &log, &programs.join(name)])
            .args(arguments)
            // Ctrl-C in the terminal of the tests must not end the guard before its program.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Self { name, log, guard }
    }

    /// Returns the log if the program has exited.
    pub(super) fn log_of_ended(&mut self) -> Option<String> {
        let status = self.guard.try_wait().unwrap()?;
        let log = fs::read_to_string(&self.log).unwrap_or_default();
        Some(format!("{} ended with {status}:\n{log}", self.name))
    }

    /// Returns the last part of the log, for messages.
    pub(super) fn log_tail(&self) -> String {
        let log = fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        format!("{}:\n{}\n", self.name, lines[lines.len().saturating_sub(20)..].join("\n"))
    }

    /// Returns the process id of the guard. The program is its child.
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

/// Returns distinct ports on which no process listens. Another process may take a port before it is used.
pub(super) fn free_ports<const COUNT: usize>() -> [u16; COUNT] {
    // All sockets are open at the same time, so the ports are distinct.
    let listeners = [(); COUNT].map(|()| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap());
    listeners.map(|listener| listener.local_addr().unwrap().port())
}
