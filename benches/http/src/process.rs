//! A server process, which is stopped when its value is dropped.

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};

use crate::interrupt;
use crate::usage::family;

/// Maximum time until a server stops after SIGTERM.
const ENDING: Duration = Duration::from_secs(10);
/// Maximum time until a server is ready: a debug build needs a while to hash its base image.
pub(crate) const STARTING: Duration = Duration::from_secs(120);

#[derive(Debug)]
pub(crate) struct Process {
    name: String,
    child: Child,
}

impl Process {
    /// Starts a process with its output in the file `log`.
    ///
    /// # Errors
    ///
    /// Returns an error if the process cannot be started.
    pub(crate) fn start(name: &str, command: &mut Command, log: &Path) -> Result<Self> {
        let file = std::fs::File::options().create(true).append(true).open(log)?;
        command.stdin(Stdio::null()).stderr(file);
        // A Ctrl-C at the terminal must reach only the bench, which stops its servers after the last request.
        command.process_group(0);
        let child = command.spawn().with_context(|| format!("starting {:?}", command.get_program()))?;
        Ok(Self { name: name.to_owned(), child })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// # Errors
    ///
    /// Returns an error if the process has ended or the bench was interrupted.
    pub(crate) fn check(&mut self) -> Result<()> {
        interrupt::check()?;
        match self.child.try_wait()? {
            None => Ok(()),
            Some(status) => bail!("{} has ended: {status}", self.name),
        }
    }

    /// Returns the first line of the process's output. A thread reads and drops the rest.
    ///
    /// # Errors
    ///
    /// Returns an error if no line arrives within [`STARTING`].
    pub(crate) fn first_line(&mut self) -> Result<String> {
        let output = self.child.stdout.take().context("its output was already taken")?;
        let (sender, receiver) = mpsc::channel();
        std::thread::Builder::new().name("output".to_owned()).spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                let _ = sender.send(line);
            }
        })?;
        let start = Instant::now();
        loop {
            match receiver.recv_timeout(Duration::from_millis(20)) {
                Ok(line) => return Ok(line),
                Err(mpsc::RecvTimeoutError::Timeout) if start.elapsed() < STARTING => self.check()?,
                Err(_) => {
                    self.check()?;
                    bail!("{} does not print its address", self.name)
                }
            }
        }
    }

    /// Ends the process with SIGTERM, and waits for it.
    ///
    /// # Errors
    ///
    /// Returns an error if the process ignores the signal and must be killed.
    pub(crate) fn stop(mut self) -> Result<()> {
        self.end()
    }

    fn end(&mut self) -> Result<()> {
        if self.child.try_wait()?.is_some() {
            return Ok(());
        }
        let processes = family(self.pid()).unwrap_or_default();
        let term = |pid: u32| i32::try_from(pid).ok().and_then(Pid::from_raw);
        if let Some(pid) = term(self.pid()) {
            kill_process(pid, Signal::TERM)?;
        }
        let start = Instant::now();
        while start.elapsed() < ENDING {
            if self.child.try_wait()?.is_some() {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        // The worker processes would survive a killed master.
        for pid in processes.into_iter().filter_map(term) {
            let _ = kill_process(pid, Signal::KILL);
        }
        self.child.wait()?;
        bail!("{} had to be killed", self.name)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Err(error) = self.end() {
            eprintln!("Warning: ending {}: {error:#}", self.name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Process {
        let log = tempfile::NamedTempFile::new().unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", script]).stdout(Stdio::piped());
        Process::start("a shell", &mut command, log.path()).unwrap()
    }

    #[test]
    fn dropped_process_is_killed() {
        let mut process = shell("echo first; echo second; exec sleep 600");
        assert_eq!(process.first_line().unwrap(), "first");
        process.check().unwrap();
        let folder = format!("/proc/{}", process.pid());
        assert!(Path::new(&folder).exists());
        drop(process);
        assert!(!Path::new(&folder).exists());
    }

    #[test]
    fn process_that_exits_silently_is_an_error() {
        let error = shell("exit 3").first_line().unwrap_err();
        assert!(error.to_string().starts_with("a shell"), "{error}");
    }
}
