//! Running a program to its end, or to the end of our patience.

use std::ffi::OsStr;
use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

/// No command on a small image takes a tenth of it.
const PATIENCE: Duration = Duration::from_secs(120);

/// What a program left behind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Output {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
}

impl Output {
    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.stdout).unwrap()
    }

    /// Requires success and gives what was printed.
    #[track_caller]
    pub(crate) fn success(self) -> Vec<u8> {
        assert_eq!(self.status.code(), Some(0), "{}{}", self.stderr, self.signal());
        self.stdout
    }

    /// As [`success`](Self::success), of text.
    #[track_caller]
    pub(crate) fn printed(self) -> String {
        String::from_utf8(self.success()).unwrap()
    }

    /// Requires a failure with one error that says `phrase`, and nothing on the standard output.
    #[track_caller]
    pub(crate) fn failure(&self, phrase: &str) {
        assert_eq!(self.status.code(), Some(1), "{}{}", self.stderr, self.signal());
        assert!(self.stderr.contains(phrase), "no {phrase:?} in: {}", self.stderr);
        assert_eq!(self.stderr.matches("Error: ").count(), 1, "{}", self.stderr);
        assert!(!self.stderr.contains("panicked"), "{}", self.stderr);
    }

    /// Requires that the command line was refused.
    #[track_caller]
    pub(crate) fn usage(&self, phrase: &str) {
        assert_eq!(self.status.code(), Some(2), "{}", self.stderr);
        assert!(self.stderr.contains(phrase), "no {phrase:?} in: {}", self.stderr);
        assert!(self.stdout.is_empty());
    }

    fn signal(&self) -> String {
        self.status.signal().map(|signal| format!("killed by signal {signal}")).unwrap_or_default()
    }
}

/// A program about to be run.
#[derive(Debug)]
pub(crate) struct Run {
    command: Command,
    stdin: Vec<u8>,
    patience: Duration,
}

impl Run {
    pub(crate) fn new(program: impl AsRef<OsStr>, folder: &Path) -> Self {
        let mut command = Command::new(program);
        command.current_dir(folder).env("LC_ALL", "C").env("RUST_BACKTRACE", "0").env("COLUMNS", "100");
        Self { command, stdin: Vec::new(), patience: PATIENCE }
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

    pub(crate) fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// The command as it stands, for tests that handle the process themselves.
    pub(crate) fn command(self) -> Command {
        self.command
    }

    /// Runs it to its end.
    #[track_caller]
    pub(crate) fn output(mut self) -> Output {
        self.command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let what = format!("{:?}", self.command);
        let mut child = self.command.spawn().unwrap_or_else(|error| panic!("{what}: {error}"));
        feed(child.stdin.take().unwrap(), self.stdin);
        let stdout = drain(child.stdout.take().unwrap());
        let stderr = drain(child.stderr.take().unwrap());
        let mut wait_for = |pipe: &Receiver<Vec<u8>>| {
            pipe.recv_timeout(self.patience).unwrap_or_else(|_| {
                child.kill().unwrap();
                panic!("{what} does not end");
            })
        };
        let (stdout, stderr) = (wait_for(&stdout), wait_for(&stderr));
        let status = child.wait().unwrap();
        Output { status, stdout, stderr: String::from_utf8_lossy(&stderr).into_owned() }
    }
}

/// Writes the input from a thread. A program that does not want it all is right to close the pipe.
fn feed(mut pipe: ChildStdin, bytes: Vec<u8>) {
    thread::spawn(move || pipe.write_all(&bytes));
}

fn drain(mut pipe: impl Read + Send + 'static) -> Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        pipe.read_to_end(&mut bytes).unwrap();
        sender.send(bytes)
    });
    receiver
}
