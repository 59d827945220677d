//! The events of the feed.

use crate::store::{Key, Step};

/// What happened to a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ChangeKind {
    /// The record was inserted or replaced.
    Written,
    /// The record was removed.
    Removed,
}

/// A change of one record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RecordChange {
    /// The record.
    pub key: Key,
    /// The generation that was written, or the last one of a removed record.
    pub generation: i64,
    /// What happened to it.
    pub kind: ChangeKind,
}

impl RecordChange {
    /// Returns the change that a step makes to a record, if it makes one.
    pub(in crate::store) fn from_step(step: &Step) -> Option<Self> {
        match step {
            Step::Insert(row) | Step::Replace(row) => {
                Some(Self { key: row.key, generation: row.generation, kind: ChangeKind::Written })
            }
            Step::Remove(key, generation) => {
                Some(Self { key: *key, generation: *generation, kind: ChangeKind::Removed })
            }
            _ => None,
        }
    }
}

/// An event of the feed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FeedEvent {
    /// A record changed.
    Changed(RecordChange),
    /// Events were lost: any record may have changed since the last event.
    Resync,
}
