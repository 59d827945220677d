//! The payload format of notifications between replicas.
//!
//! The first line contains the origin of the message, its number, and the time on the origin's clock. Each further line
//! is a change, or one of the words `ping` and `resync`.
//!
//! ```text
//! 9f3c5a7712e04b6d 42 1730000000
//! infra-env - 7c5b3a6e-6f5f-4e22-9b7c-1a3b2f0d9c11 5 written
//! host 7c5b3a6e-6f5f-4e22-9b7c-1a3b2f0d9c11 0b1d... 3 removed
//! ```

use std::fmt::Write as _;

use uuid::Uuid;

use super::event::{ChangeKind, RecordChange};
use crate::store::{Key, Kind};

/// Maximum length of a payload in bytes. PostgreSQL rejects longer payloads.
const MAX_BYTES: usize = 7999;
/// Maximum number of messages for one change. A larger change is announced with `resync`, and readers then compare all
/// records with the database.
const MAX_MESSAGES: usize = 16;

const PING: &str = "ping";
const RESYNC: &str = "resync";

/// The sender, number and time of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MessageHeader {
    pub(super) origin: u64,
    pub(super) sequence: u64,
    /// Time on the origin's clock, in microseconds.
    pub(super) micros: u64,
}

/// The content of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum MessageContent {
    Changes(Vec<RecordChange>),
    /// A message to its own sender, which shows that notifications arrive.
    Ping,
    /// A change too large to list its records, or lines that only a newer release understands.
    Resync,
}

impl MessageHeader {
    fn line(self) -> String {
        format!("{:016x} {} {}", self.origin, self.sequence, self.micros)
    }

    pub(super) fn ping(self) -> String {
        format!("{}\n{PING}", self.line())
    }

    /// Returns the messages that announce a change. Each message fits into one payload.
    pub(super) fn changes(self, changes: &[RecordChange]) -> Vec<String> {
        let mut messages = Vec::new();
        let mut message = self.line();
        for change in changes {
            let line = change_line(change);
            if message.len() + 1 + line.len() > MAX_BYTES {
                messages.push(std::mem::replace(&mut message, self.line()));
            }
            // Writing to a `String` never fails.
            let _ = write!(message, "\n{line}");
        }
        messages.push(message);
        if messages.len() > MAX_MESSAGES { vec![format!("{}\n{RESYNC}", self.line())] } else { messages }
    }
}

fn change_line(change: &RecordChange) -> String {
    let RecordChange { key, generation, kind } = change;
    let parent = key.parent.map_or_else(|| "-".to_owned(), |id| id.to_string());
    let kind = match kind {
        ChangeKind::Written => "written",
        ChangeKind::Removed => "removed",
    };
    format!("{} {parent} {} {generation} {kind}", key.kind.as_str(), key.id)
}

/// Parses a message. Returns `None` if its first line is invalid.
pub(super) fn parse(payload: &str) -> Option<(MessageHeader, MessageContent)> {
    let (header, lines) = payload.split_once('\n')?;
    let mut header = header.split(' ');
    let origin = u64::from_str_radix(header.next()?, 16).ok()?;
    let (sequence, micros) = (header.next()?.parse().ok()?, header.next()?.parse().ok()?);
    let content = match lines {
        PING => MessageContent::Ping,
        RESYNC => MessageContent::Resync,
        lines => {
            let changes: Option<Vec<_>> = lines.split('\n').map(parse_line).collect();
            changes.map_or(MessageContent::Resync, MessageContent::Changes)
        }
    };
    Some((MessageHeader { origin, sequence, micros }, content))
}

fn parse_line(line: &str) -> Option<RecordChange> {
    let mut parts = line.split(' ');
    let kind = parts.next()?;
    let kind = Kind::ALL.into_iter().find(|candidate| candidate.as_str() == kind)?;
    let parent = match parts.next()? {
        "-" => None,
        id => Some(id.parse::<Uuid>().ok()?),
    };
    let key = Key { kind, parent, id: parts.next()?.parse().ok()? };
    let generation = parts.next()?.parse().ok()?;
    let kind = match parts.next()? {
        "written" => ChangeKind::Written,
        "removed" => ChangeKind::Removed,
        _ => return None,
    };
    parts.next().is_none().then_some(RecordChange { key, generation, kind })
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: MessageHeader = MessageHeader { origin: 0x9f, sequence: 42, micros: 7 };

    fn changes(count: i64) -> Vec<RecordChange> {
        let kinds = [(ChangeKind::Written, Kind::Host), (ChangeKind::Removed, Kind::InfraEnv)];
        let kind = |number| if number % 2 == 0 { kinds[0] } else { kinds[1] };
        let change = |generation| {
            let (change, kind) = kind(generation);
            let parent = (kind == Kind::Host).then(Uuid::new_v4);
            RecordChange { key: Key { kind, parent, id: Uuid::new_v4() }, generation, kind: change }
        };
        (0..count).map(change).collect()
    }

    #[test]
    fn changes_round_trip_through_messages() {
        for count in [1, 2, 80, 300] {
            let changes = changes(count);
            let messages = HEADER.changes(&changes);
            let mut received = Vec::new();
            for message in &messages {
                assert!(message.len() <= MAX_BYTES);
                let (header, content) = parse(message).unwrap();
                let MessageContent::Changes(part) = content else { panic!("{content:?}") };
                assert_eq!(header, HEADER);
                received.extend(part);
            }
            assert_eq!(received, changes);
        }
        assert_eq!(parse(&HEADER.ping()), Some((HEADER, MessageContent::Ping)));
    }

    #[test]
    fn changes_of_every_kind_round_trip() {
        let change = |kind| {
            let key = Key { kind, parent: Some(Uuid::new_v4()), id: Uuid::new_v4() };
            RecordChange { key, generation: i64::MAX, kind: ChangeKind::Written }
        };
        let changes = Kind::ALL.map(change).to_vec();
        let messages = HEADER.changes(&changes);
        assert_eq!(parse(&messages[0]), Some((HEADER, MessageContent::Changes(changes))));
    }

    #[test]
    fn very_large_change_is_announced_as_a_resync() {
        let messages = HEADER.changes(&changes(5000));
        assert_eq!(messages.len(), 1);
        assert_eq!(parse(&messages[0]), Some((HEADER, MessageContent::Resync)));
    }

    #[test]
    fn unknown_lines_are_parsed_as_a_resync() {
        let id = "7c5b3a6e-6f5f-4e22-9b7c-1a3b2f0d9c11";
        for line in [
            "",
            "pong",
            "node - 7c5b3a6e-6f5f-4e22-9b7c-1a3b2f0d9c11 1 written",
            &format!("host - {id} 1 moved"),
            &format!("host - {id} x written"),
            &format!("host x {id} 1 written"),
            &format!("host - {id} 1 written more"),
            &format!("host - {id} 1 written\n"),
        ] {
            let message = format!("9f 42 7\n{line}");
            assert_eq!(parse(&message), Some((HEADER, MessageContent::Resync)), "{line:?}");
        }
        for message in ["", "\n", "9f 42", "9f 42 7", "x 42 7\nping", "9f x 7\nping", "9f 42 x\nping"] {
            assert_eq!(parse(message), None, "{message:?}");
        }
    }
}
