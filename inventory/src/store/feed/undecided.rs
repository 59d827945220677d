//! Changes by this process whose outcome is not yet known.

use std::collections::BTreeMap;

use super::event::RecordChange;

/// Maximum number of changes with an unknown outcome. The oldest ones are dropped.
pub(super) const MAX_UNDECIDED: usize = 1024;

/// The changes by this process with an unknown outcome, keyed by the sequence number of their messages.
#[derive(Debug, Default)]
pub(super) struct UndecidedChanges(pub(super) BTreeMap<u64, UndecidedChange>);

#[derive(Debug)]
pub(super) enum UndecidedChange {
    /// The commit is in progress. The records in notifications that arrive before the result are reported immediately,
    /// and collected in `reported`.
    InProgress { reported: Vec<RecordChange> },
    /// The commit failed, or its caller stopped waiting. The change may or may not have been made, and only its
    /// notification shows which.
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
