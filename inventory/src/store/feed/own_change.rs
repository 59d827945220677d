//! A change that this process makes in a shared database.

use super::message::MessageHeader;
use super::{Feed, MAX_UNDECIDED, RecordChange};

/// A change of this process, from its begin until its outcome is known.
///
/// If it is dropped without an outcome, the change may be made or not: the commit failed, or its caller stopped
/// waiting. Then it is reported at once, and again if its notification arrives.
#[derive(Debug)]
pub(in crate::store) struct OwnChange {
    feed: Feed,
    header: MessageHeader,
    changes: Vec<RecordChange>,
    is_decided: bool,
}

impl OwnChange {
    pub(in crate::store) fn new(feed: &Feed, changes: &[RecordChange]) -> Self {
        let (origin, sequence, micros) = (feed.0.origin, feed.next_sequence(), feed.clock_micros());
        let header = MessageHeader { origin, sequence, micros };
        Self { feed: feed.clone(), header, changes: changes.to_vec(), is_decided: false }
    }

    /// Returns the notifications that are a part of the change.
    pub(in crate::store) fn notifications(&self) -> Vec<String> {
        if self.changes.is_empty() { Vec::new() } else { self.header.changes(&self.changes) }
    }

    /// Reports the change. Its notification then adds nothing.
    pub(in crate::store) fn complete(mut self) {
        self.is_decided = true;
        self.feed.publish(&self.changes);
    }

    /// Reports nothing: nothing was written.
    pub(in crate::store) fn discard(mut self) {
        self.is_decided = true;
    }
}

impl Drop for OwnChange {
    fn drop(&mut self) {
        if self.is_decided || self.changes.is_empty() {
            return;
        }
        self.feed.with_undecided(|undecided| {
            undecided.insert(self.header.sequence);
            if undecided.len() > MAX_UNDECIDED {
                undecided.pop_first();
            }
        });
        self.feed.publish(&self.changes);
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::super::{ChangeKind, FeedEvent};
    use super::*;
    use crate::store::{Key, Kind};

    #[tokio::test]
    async fn change_without_an_outcome_is_reported_and_remembered() {
        let feed = Feed::of_shared_database();
        let key = Key { kind: Kind::Cluster, parent: None, id: Uuid::new_v4() };
        let change = RecordChange { key, generation: 1, kind: ChangeKind::Written };
        let mut reader = feed.subscribe();
        OwnChange::new(&feed, &[change]).discard();
        OwnChange::new(&feed, &[change]).complete();
        drop(OwnChange::new(&feed, &[change]));
        drop(OwnChange::new(&feed, &[]));
        for _ in 0..2 {
            assert_eq!(reader.next().await, Some(FeedEvent::Changed(change)));
        }
        assert!(reader.receiver.is_empty());
        assert_eq!(feed.with_undecided(|undecided| undecided.len()), 1);
        for _ in 0..=MAX_UNDECIDED {
            drop(OwnChange::new(&feed, &[change]));
        }
        assert_eq!(feed.with_undecided(|undecided| undecided.len()), MAX_UNDECIDED);
    }
}
