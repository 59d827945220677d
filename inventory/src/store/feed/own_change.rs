//! A change that this process makes in a shared database.

use super::message::MessageHeader;
use super::{Feed, MAX_UNDECIDED, RecordChange};

/// A change of this process, from its begin until its outcome is known.
///
/// If its notification arrives before that, the notification reports it too: the change is made.
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
        if !changes.is_empty() {
            feed.with_undecided(|undecided| {
                undecided.insert(sequence);
                if undecided.len() > MAX_UNDECIDED {
                    undecided.pop_first();
                }
            });
        }
        Self { feed: feed.clone(), header, changes: changes.to_vec(), is_decided: false }
    }

    /// Returns the notifications that are a part of the change.
    pub(in crate::store) fn notifications(&self) -> Vec<String> {
        if self.changes.is_empty() { Vec::new() } else { self.header.changes(&self.changes) }
    }

    /// Reports the change. Its notification then adds nothing.
    pub(in crate::store) fn complete(mut self) {
        self.decide();
        self.feed.publish(&self.changes);
    }

    /// Reports nothing: nothing was written.
    pub(in crate::store) fn discard(mut self) {
        self.decide();
    }

    fn decide(&mut self) {
        self.is_decided = true;
        if !self.changes.is_empty() {
            self.feed.take_undecided(self.header.sequence);
        }
    }
}

impl Drop for OwnChange {
    fn drop(&mut self) {
        if !self.is_decided {
            self.feed.publish(&self.changes);
        }
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
        let undecided = || feed.with_undecided(|undecided| undecided.len());
        let (discarded, completed) = (OwnChange::new(&feed, &[change]), OwnChange::new(&feed, &[change]));
        assert_eq!(undecided(), 2, "a notification reports a change before its outcome is known");
        discarded.discard();
        completed.complete();
        assert_eq!(undecided(), 0);
        drop(OwnChange::new(&feed, &[change]));
        drop(OwnChange::new(&feed, &[]));
        for _ in 0..2 {
            assert_eq!(reader.next().await, Some(FeedEvent::Changed(change)));
        }
        assert!(reader.receiver.is_empty());
        assert_eq!(undecided(), 1);
        for _ in 0..=MAX_UNDECIDED {
            drop(OwnChange::new(&feed, &[change]));
        }
        assert_eq!(undecided(), MAX_UNDECIDED);
    }
}
