//! Runs a virtual machine, and finds a marker in the output of its serial console.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::thread;
use std::time::Duration;

/// Maximum number of bytes per read.
const READ_LEN: usize = 4096;
/// Maximum number of reads to buffer. A machine that writes faster than its output is printed has to wait.
const MAX_WAITING: usize = 64;
const ESCAPE: u8 = 0x1B;
/// QEMU messages after which KVM no longer runs the machine, although QEMU keeps running.
const KVM_FAILURES: [&str; 3] = ["KVM internal error", "KVM: entry failed", "kvm run failed"];

#[derive(Debug, PartialEq, Eq)]
pub(super) enum MachineOutput {
    /// Bytes from the serial console.
    Console(Vec<u8>),
    /// A message from QEMU that KVM cannot run the machine.
    KvmFailure(String),
}

/// A running machine. Dropping it stops the machine.
pub(super) struct RunningMachine {
    child: Child,
    output: Receiver<io::Result<MachineOutput>>,
}

impl RunningMachine {
    pub(super) fn start(command: &mut Command) -> io::Result<Self> {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn()?;
        let (sender, output) = mpsc::sync_channel(MAX_WAITING);
        if let Some(pipe) = child.stderr.take() {
            let sender = sender.clone();
            thread::spawn(move || forward_messages(pipe, &sender));
        }
        if let Some(pipe) = child.stdout.take() {
            thread::spawn(move || forward_output(pipe, &sender));
        }
        Ok(Self { child, output })
    }

    /// Returns the next output. Returns `None` if the machine has ended, or if it writes nothing for `patience`.
    pub(super) fn next_output(&mut self, patience: Duration) -> io::Result<Option<MachineOutput>> {
        match self.output.recv_timeout(patience) {
            Ok(output) => output.map(Some),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => Ok(None),
        }
    }

    pub(super) fn wait(&mut self) -> io::Result<ExitStatus> {
        self.child.wait()
    }
}

impl Drop for RunningMachine {
    fn drop(&mut self) {
        // An error means that the machine has already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends the bytes of a pipe to a channel, until reading fails, the pipe ends, or the receiver is dropped.
fn forward_output(mut pipe: impl Read, listener: &SyncSender<io::Result<MachineOutput>>) {
    loop {
        let mut buffer = vec![0; READ_LEN];
        let read = pipe.read(&mut buffer);
        if matches!(read, Ok(0)) {
            return;
        }
        let is_failure = read.is_err();
        let part = read.map(|len| {
            buffer.truncate(len);
            MachineOutput::Console(buffer)
        });
        if listener.send(part).is_err() || is_failure {
            return;
        }
    }
}

/// Copies QEMU's messages to stderr. Also sends the first message about a KVM failure to the channel.
fn forward_messages(pipe: impl Read, listener: &SyncSender<io::Result<MachineOutput>>) {
    let mut failure = None;
    for line in BufReader::new(pipe).split(b'\n').map_while(Result::ok) {
        let line = String::from_utf8_lossy(&line);
        // Ignore a closed stderr, so that the machine continues.
        let _ = writeln!(io::stderr(), "{line}");
        if failure.is_none() && KVM_FAILURES.iter().any(|text| line.contains(text)) {
            failure = Some(listener.send(Ok(MachineOutput::KvmFailure(line.into_owned()))));
        }
    }
}

/// Finds a marker in console output. Ignores terminal sequences for colours and cursor movements.
pub(super) struct MarkerWatch {
    marker: Vec<u8>,
    /// The last bytes of the output, at most as many as the marker has.
    recent: Vec<u8>,
    position: SequencePosition,
}

/// Position in a terminal control sequence.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SequencePosition {
    Text,
    /// After an escape character.
    Escaped,
    /// In a sequence with parameters. A letter ends it.
    Control,
}

impl MarkerWatch {
    pub(super) fn new(marker: &str) -> Self {
        Self { marker: marker.as_bytes().to_vec(), recent: Vec::new(), position: SequencePosition::Text }
    }

    /// Adds bytes of output. Returns `true` if they complete the marker.
    pub(super) fn find_marker(&mut self, bytes: &[u8]) -> bool {
        bytes.iter().any(|byte| self.find_marker_at(*byte))
    }

    fn find_marker_at(&mut self, byte: u8) -> bool {
        self.position = match (self.position, byte) {
            (_, ESCAPE) => SequencePosition::Escaped,
            (SequencePosition::Escaped, b'[') => SequencePosition::Control,
            (SequencePosition::Control, 0x20..=0x3F) => SequencePosition::Control,
            (SequencePosition::Control | SequencePosition::Escaped, _) => SequencePosition::Text,
            (SequencePosition::Text, b'\r') => SequencePosition::Text,
            (SequencePosition::Text, _) => return self.match_marker_byte(byte),
        };
        false
    }

    fn match_marker_byte(&mut self, byte: u8) -> bool {
        self.recent.push(byte);
        let surplus = self.recent.len().saturating_sub(self.marker.len());
        self.recent.drain(..surplus);
        self.recent == self.marker
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marker_split_across_reads_is_found() {
        let output = b"x\r\n\x1B[2J\x1B[0;1mIgni\x1B[1;33mtion: \x1BMdone\x1B[0m\r\n";
        for size in [1, 5, output.len()] {
            let mut watch = MarkerWatch::new("Ignition: done");
            assert!(output.chunks(size).any(|part| watch.find_marker(part)), "in parts of {size}");
        }
        assert!(!MarkerWatch::new("Ignition: done").find_marker(b"Ignition:\ndone"));
        assert!(MarkerWatch::new("aab").find_marker(b"aaab"));
    }

    #[test]
    fn ended_machine_has_no_more_output() {
        let mut console =
            RunningMachine::start(Command::new("sh").args(["-c", "echo text; exit 3"])).unwrap();
        let patience = Duration::from_secs(60);
        assert_eq!(console.next_output(patience).unwrap(), Some(MachineOutput::Console(b"text\n".to_vec())));
        assert_eq!(console.next_output(patience).unwrap(), None);
        assert_eq!(console.wait().unwrap().code(), Some(3));
    }
}
