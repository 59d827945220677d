//! The interface of caches that the feed keeps current.

use std::fmt;

use super::event::RecordChange;
use crate::store::Key;

/// A cache of records. The feed notifies caches before its subscribers, and before the caller of a change gets the
/// result.
pub trait FeedCache: fmt::Debug + Send + Sync {
    /// Returns the cached records to compare with the database, with their generations. The feed calls this every few
    /// seconds, so that a lost notification has no lasting effect.
    fn cached(&self) -> Vec<(Key, i64)>;

    /// Drops a record that has changed.
    fn drop_changed(&self, change: &RecordChange);

    /// Drops all records, because any of them may have changed.
    fn drop_all(&self);
}
