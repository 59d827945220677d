//! The events that the change feed publishes.

use crate::store::{Key, Kind, Step};

/// The kind of a change to a record: written or removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ChangeKind {
    /// The record was inserted or replaced.
    Written,
    /// The record was removed.
    Removed,
}

/// A change to one record, or to the validation results of one host ([`Kind::HostResults`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RecordChange {
    /// Key of the changed record.
    pub key: Key,
    /// The generation of the written record, or the last generation of the removed record. For validation results, and
    /// for an assessment removed with its cluster, a unique number that increases with time.
    pub generation: i64,
    /// Whether the record was written or removed.
    pub kind: ChangeKind,
}

impl RecordChange {
    /// Returns the changes to publish for a step. `time` is the unique timestamp of the step.
    ///
    /// Deleting a host also removes its validation results, but only the change to the host is published.
    pub(in crate::store) fn from_step(step: &Step, time: i64) -> impl Iterator<Item = Self> + use<> {
        let write = |key, generation| Self { key, generation, kind: ChangeKind::Written };
        let removal = |key, generation| Self { key, generation, kind: ChangeKind::Removed };
        let changes = match step {
            Step::Insert(row) | Step::Replace(row) => [Some(write(row.key, row.generation)), None],
            Step::Remove(key, generation) => {
                let assessment =
                    (key.kind == Kind::Cluster).then(|| removal(Key::of_assessment(key.id), time));
                [Some(removal(*key, *generation)), assessment]
            }
            Step::PutReport(host, kind, _) | Step::RewriteReport(host, kind, _)
                if !kind.is_named_by_host() =>
            {
                [Some(write(Key::of_host_results(*host), time)), None]
            }
            Step::RemoveReport(host, kind) if !kind.is_named_by_host() => {
                [Some(removal(Key::of_host_results(*host), time)), None]
            }
            _ => [None, None],
        };
        changes.into_iter().flatten()
    }
}

/// An event that subscribers receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FeedEvent {
    /// A record has changed. Subscribers read it from the database.
    Changed(RecordChange),
    /// Events were lost. Any record may have changed since the previous event.
    Resync,
}
