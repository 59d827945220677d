//! What a machine says over its serial line.

use std::io::{self, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::thread;
use std::time::Duration;

/// How much of the console is read at once, and how many reads may wait: a machine that talks faster than we write waits.
const READ_LEN: usize = 4096;
const MAX_WAITING: usize = 64;
const ESCAPE: u8 = 0x1B;

/// A running machine; it does not outlive this.
pub(super) struct Console {
    child: Child,
    bytes: Receiver<io::Result<Vec<u8>>>,
}

impl Console {
    pub(super) fn start(command: &mut Command) -> io::Result<Self> {
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
        let (sender, bytes) = mpsc::sync_channel(MAX_WAITING);
        if let Some(pipe) = child.stdout.take() {
            thread::spawn(move || hand_on(pipe, &sender));
        }
        Ok(Self { child, bytes })
    }

    /// The next that it says, or nothing if it says no more, or not for so long.
    pub(super) fn next(&mut self, patience: Duration) -> io::Result<Option<Vec<u8>>> {
        match self.bytes.recv_timeout(patience) {
            Ok(bytes) => bytes.map(Some),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => Ok(None),
        }
    }

    /// How it ended, once it says no more.
    pub(super) fn wait(&mut self) -> io::Result<ExitStatus> {
        self.child.wait()
    }
}

impl Drop for Console {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Hands on what a pipe gives, until it ends, fails, or nobody listens.
fn hand_on(mut pipe: impl Read, listener: &SyncSender<io::Result<Vec<u8>>>) {
    loop {
        let mut buffer = vec![0; READ_LEN];
        let read = pipe.read(&mut buffer);
        if matches!(read, Ok(0)) {
            return;
        }
        let is_failure = read.is_err();
        let part = read.map(|len| {
            buffer.truncate(len);
            buffer
        });
        if listener.send(part).is_err() || is_failure {
            return;
        }
    }
}

/// Looks for words on a console, past the colours and cursor movements between them.
pub(super) struct Watch {
    marker: Vec<u8>,
    /// The end of what was said: as long as the marker at most.
    said: Vec<u8>,
    place: Place,
}

/// Where in a sequence for terminals the stream is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Text,
    /// Behind an escape.
    Escaped,
    /// In a sequence of parameters, which a letter ends.
    Control,
}

impl Watch {
    pub(super) fn new(marker: &str) -> Self {
        Self { marker: marker.as_bytes().to_vec(), said: Vec::new(), place: Place::Text }
    }

    /// Goes on with more bytes; whether the words are complete with one of them.
    pub(super) fn sees(&mut self, bytes: &[u8]) -> bool {
        bytes.iter().any(|byte| self.sees_byte(*byte))
    }

    fn sees_byte(&mut self, byte: u8) -> bool {
        self.place = match (self.place, byte) {
            (_, ESCAPE) => Place::Escaped,
            (Place::Escaped, b'[') => Place::Control,
            (Place::Control, 0x20..=0x3F) => Place::Control,
            (Place::Control | Place::Escaped, _) => Place::Text,
            (Place::Text, b'\r') => Place::Text,
            (Place::Text, _) => return self.says(byte),
        };
        false
    }

    fn says(&mut self, byte: u8) -> bool {
        self.said.push(byte);
        let surplus = self.said.len().saturating_sub(self.marker.len());
        self.said.drain(..surplus);
        self.said == self.marker
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_seen_however_they_arrive() {
        let said = b"x\r\n\x1B[2J\x1B[0;1mIgni\x1B[1;33mtion: \x1BMdone\x1B[0m\r\n";
        for size in [1, 5, said.len()] {
            let mut watch = Watch::new("Ignition: done");
            assert!(said.chunks(size).any(|part| watch.sees(part)), "in parts of {size}");
        }
        assert!(!Watch::new("Ignition: done").sees(b"Ignition:\ndone"));
        assert!(Watch::new("aab").sees(b"aaab"));
    }

    #[test]
    fn a_machine_that_ends_says_no_more() {
        let mut console = Console::start(Command::new("sh").args(["-c", "echo said; exit 3"])).unwrap();
        let patience = Duration::from_secs(60);
        assert_eq!(console.next(patience).unwrap(), Some(b"said\n".to_vec()));
        assert_eq!(console.next(patience).unwrap(), None);
        assert_eq!(console.wait().unwrap().code(), Some(3));
    }
}
