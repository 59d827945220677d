//! The changes of this process whose outcome is unknown.

use std::collections::BTreeMap;

use super::event::RecordChange;

/// Maximum number of own changes whose outcome is unknown. Older ones are forgotten.
pub(super) const MAX_UNDECIDED: usize = 1024;

/// The own changes whose outcome is unknown, by the number of their messages.
#[derive(Debug, Default)]
pub(super) struct UndecidedChanges(pub(super) BTreeMap<u64, UndecidedChange>);

#[derive(Debug)]
pub(super) enum UndecidedChange {
    /// The commit is in progress. If its notification arrives before its result, the notification reports the records.
    InProgress { reported: Vec<RecordChange> },
    /// The commit failed, or its caller stopped waiting: the change may be made or not. Its notification decides.
    Unknown,
}

impl UndecidedChanges {
    pub(super) fn insert(&mut self, sequence: u64, change: UndecidedChange) {
        self.0.insert(sequence, change);
        if self.0.len() > MAX_UNDECIDED {
            self.0.pop_first();
        }
    }
}
