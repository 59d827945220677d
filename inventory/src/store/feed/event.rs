//! The events of the feed.

use crate::store::{Key, Kind, Step};

/// What happened to a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ChangeKind {
    /// The record was inserted or replaced.
    Written,
    /// The record was removed.
    Removed,
}

/// A change of one record, or of the validation results of one host ([`Kind::HostResults`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RecordChange {
    /// The record.
    pub key: Key,
    /// The generation that was written, or the last one of a removed record. Validation results, and an assessment that
    /// is removed with its cluster, have a unique number that increases with time.
    pub generation: i64,
    /// What happened to it.
    pub kind: ChangeKind,
}

impl RecordChange {
    /// Returns the changes that a step makes. `time` is the unique time of the step.
    ///
    /// The deletion of a host also removes its validation results. Only the change of the host is reported.
    pub(in crate::store) fn from_step(step: &Step, time: i64) -> impl Iterator<Item = Self> + use<> {
        let written = |key, generation| Self { key, generation, kind: ChangeKind::Written };
        let removed = |key, generation| Self { key, generation, kind: ChangeKind::Removed };
        let changes = match step {
            Step::Insert(row) | Step::Replace(row) => [Some(written(row.key, row.generation)), None],
            Step::Remove(key, generation) => {
                let assessment =
                    (key.kind == Kind::Cluster).then(|| removed(Key::of_assessment(key.id), time));
                [Some(removed(*key, *generation)), assessment]
            }
            Step::PutReport(host, kind, _) | Step::RewriteReport(host, kind, _)
                if !kind.is_named_by_host() =>
            {
                [Some(written(Key::of_host_results(*host), time)), None]
            }
            Step::RemoveReport(host, kind) if !kind.is_named_by_host() => {
                [Some(removed(Key::of_host_results(*host), time)), None]
            }
            _ => [None, None],
        };
        changes.into_iter().flatten()
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
