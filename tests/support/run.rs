//! Runs a program to its end or to a time limit.

use std::ffi::OsStr;
use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

/// More than ten times the duration of any command on a small image.
const PATIENCE: Duration = Duration::from_secs(120);

/// The exit status and output of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RunOutput {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
}

impl RunOutput {
    pub(crate) fn stdout_text(&self) -> &str {
        std::str::from_utf8(&self.stdout).unwrap()
    }

    /// Asserts that the program succeeded, and returns its output.
    #[track_caller]
    pub(crate) fn expect_success(self) -> Vec<u8> {
        assert_eq!(self.status.code(), Some(0), "{}{}", self.stderr, self.expect_signal());
        self.stdout
    }

    /// Asserts success like [`expect_success`](Self::expect_success), and returns the output as text.
    #[track_caller]
    pub(crate) fn expect_text(self) -> String {
        String::from_utf8(self.expect_success()).unwrap()
    }

    /// Asserts that the program failed with one error that contains `phrase`, and with an empty standard output.
    #[track_caller]
    pub(crate) fn expect_failure(&self, phrase: &str) {
        assert_eq!(self.status.code(), Some(1), "{}{}", self.stderr, self.expect_signal());
        assert!(self.stderr.contains(phrase), "no {phrase:?} in: {}", self.stderr);
        assert_eq!(self.stderr.matches("Error: ").count(), 1, "{}", self.stderr);
        assert!(!self.stderr.contains("panicked"), "{}", self.stderr);
    }

    /// Asserts a usage error.
    #[track_caller]
    pub(crate) fn expect_usage_error(&self, phrase: &str) {
        assert_eq!(self.status.code(), Some(2), "{}", self.stderr);
        assert!(self.stderr.contains(phrase), "no {phrase:?} in: {}", self.stderr);
        assert!(self.stdout.is_empty());
    }

    fn expect_signal(&self) -> String {
        self.status.signal().map(|signal| format!("killed by signal {signal}")).unwrap_or_default()
    }
}

/// The setup of a program run.
#[derive(Debug)]
pub(crate) struct ProgramRun {
    command: Command,
    stdin: Vec<u8>,
    patience: Duration,
}

impl From<Command> for ProgramRun {
    fn from(command: Command) -> Self {
        Self { command, stdin: Vec::new(), patience: PATIENCE }
    }
}

impl ProgramRun {
    pub(crate) fn new(program: impl AsRef<OsStr>, folder: &Path) -> Self {
        let mut command = Command::new(program);
        command.current_dir(folder).env("LC_ALL", "C").env("RUST_BACKTRACE", "0").env("COLUMNS", "100");
        command.into()
    }

    pub(crate) fn args<S: AsRef<OsStr>>(mut self, arguments: impl IntoIterator<Item = S>) -> Self {
        self.command.args(arguments);
        self
    }

    pub(crate) fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.stdin = bytes.into();
        self
    }

    pub(crate) fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    pub(crate) fn time_limit(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Returns the command, for tests that manage the process.
    pub(crate) fn command(self) -> Command {
        self.command
    }

    /// Runs the program to its end.
    #[track_caller]
    pub(crate) fn run(mut self) -> RunOutput {
        self.command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let what = format!("{:?}", self.command);
        let mut child = self.command.spawn().unwrap_or_else(|error| panic!("{what}: {error}"));
        write_stdin(child.stdin.take().unwrap(), self.stdin);
        let stdout = read_in_background(child.stdout.take().unwrap());
        let stderr = read_in_background(child.stderr.take().unwrap());
        let mut wait_for = |pipe: &Receiver<Vec<u8>>| {
            pipe.recv_timeout(self.patience).unwrap_or_else(|_| {
                child.kill().unwrap();
                panic!("{what} did not end in time");
            })
        };
        let (stdout, stderr) = (wait_for(&stdout), wait_for(&stderr));
        let status = child.wait().unwrap();
        RunOutput { status, stdout, stderr: String::from_utf8_lossy(&stderr).into_owned() }
    }
}

/// Writes the input from a thread. A program may close the pipe before it has read everything.
fn write_stdin(mut pipe: ChildStdin, bytes: Vec<u8>) {
    thread::spawn(move || pipe.write_all(&bytes));
}

fn read_in_background(mut pipe: impl Read + Send + 'static) -> Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        pipe.read_to_end(&mut bytes).unwrap();
        sender.send(bytes)
    });
    receiver
}
