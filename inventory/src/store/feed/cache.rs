//! Caches that the feed keeps current.

use std::fmt;

use super::event::RecordChange;
use crate::store::Key;

/// A cache of records. It is called before the feed's subscribers, and before a caller learns that its own change is
/// done.
pub trait FeedCache: fmt::Debug + Send + Sync {
    /// Returns the cached records and their generations. The feed compares them with the database every few seconds, so
    /// that a lost notification has no lasting effect.
    fn cached(&self) -> Vec<(Key, i64)>;

    /// Drops a record that changed.
    fn drop_changed(&self, change: &RecordChange);

    /// Drops all records: any of them may have changed.
    fn drop_all(&self);
}
