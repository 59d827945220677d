//! A change by this process in a database shared with other replicas.

use super::change_feed::Feed;
use super::event::RecordChange;
use super::message::MessageHeader;
use super::undecided::UndecidedChange;

/// A change by this process, from its start until its outcome is known.
///
/// Each record is reported once: when the outcome is known, or when the notification arrives, whichever is first. If
/// the change is dropped without an outcome, it is reported immediately, and once more if its notification arrives.
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
            let in_progress = UndecidedChange::InProgress { reported: Vec::new() };
            feed.with_undecided(|undecided| undecided.insert(sequence, in_progress));
        }
        Self { feed: feed.clone(), header, changes: changes.to_vec(), is_decided: false }
    }

    /// Returns the notifications to send in the transaction of the change.
    pub(in crate::store) fn notifications(&self) -> Vec<String> {
        if self.changes.is_empty() { Vec::new() } else { self.header.changes(&self.changes) }
    }

    /// Reports the committed change. Later notifications of the change are ignored.
    pub(in crate::store) fn complete(mut self) {
        self.is_decided = true;
        self.feed.with_undecided(|undecided| {
            if let Some(UndecidedChange::InProgress { reported }) = undecided.0.remove(&self.header.sequence)
            {
                self.changes.retain(|change| !reported.contains(change));
            }
            self.feed.publish(&self.changes);
        });
    }

    /// Ends the change without a report, because nothing was written.
    pub(in crate::store) fn discard(mut self) {
        self.is_decided = true;
        self.feed.with_undecided(|undecided| undecided.0.remove(&self.header.sequence));
    }
}

impl Drop for OwnChange {
    fn drop(&mut self) {
        if self.is_decided || self.changes.is_empty() {
            return;
        }
        self.feed
            .with_undecided(|undecided| undecided.insert(self.header.sequence, UndecidedChange::Unknown));
        self.feed.publish(&self.changes);
    }
}

impl Feed {
    /// Reports the records in a notification of a change by this process, unless the change has already been reported.
    pub(super) fn publish_notified(&self, sequence: u64, changes: &[RecordChange]) {
        self.with_undecided(|undecided| match undecided.0.get_mut(&sequence) {
            Some(UndecidedChange::InProgress { reported }) => {
                self.publish(changes);
                reported.extend(changes);
            }
            Some(UndecidedChange::Unknown) => self.publish(changes),
            None => {}
        });
    }

    /// Forgets a change by this process if its outcome is unknown. Returns `true` if the change was forgotten.
    pub(super) fn take_unknown(&self, sequence: u64) -> bool {
        self.with_undecided(|undecided| {
            let is_unknown = matches!(undecided.0.get(&sequence), Some(UndecidedChange::Unknown));
            is_unknown && undecided.0.remove(&sequence).is_some()
        })
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::super::event::{ChangeKind, FeedEvent};
    use super::super::undecided::MAX_UNDECIDED;
    use super::*;
    use crate::store::{Key, Kind};

    fn change(generation: i64) -> RecordChange {
        let key = Key { kind: Kind::Cluster, parent: None, id: Uuid::new_v4() };
        RecordChange { key, generation, kind: ChangeKind::Written }
    }

    #[tokio::test]
    async fn change_without_an_outcome_is_reported_and_remembered() {
        let feed = Feed::of_shared_database();
        let (change, undecided) = (change(1), || feed.with_undecided(|undecided| undecided.0.len()));
        let mut reader = feed.subscribe();
        OwnChange::new(&feed, &[change]).discard();
        OwnChange::new(&feed, &[change]).complete();
        assert_eq!(undecided(), 0);
        let dropped = OwnChange::new(&feed, &[change]);
        let sequence = dropped.header.sequence;
        drop(dropped);
        drop(OwnChange::new(&feed, &[]));
        assert_eq!(undecided(), 1);
        feed.publish_notified(sequence, &[change]);
        for _ in 0..3 {
            assert_eq!(reader.next().await, Some(FeedEvent::Changed(change)));
        }
        assert!(reader.receiver.is_empty());
        assert!(feed.take_unknown(sequence) && !feed.take_unknown(sequence));
        for _ in 0..=MAX_UNDECIDED {
            drop(OwnChange::new(&feed, &[change]));
        }
        assert_eq!(undecided(), MAX_UNDECIDED);
    }

    #[tokio::test]
    async fn notification_before_the_result_reports_its_records_once() {
        let feed = Feed::of_shared_database();
        let (first, second) = (change(1), change(2));
        let mut reader = feed.subscribe();
        let own = OwnChange::new(&feed, &[first, second]);
        let sequence = own.header.sequence;
        assert!(!feed.take_unknown(sequence));
        // A large change is announced by several notifications.
        feed.publish_notified(sequence, &[first]);
        assert_eq!(reader.next().await, Some(FeedEvent::Changed(first)));
        assert!(reader.receiver.is_empty());
        own.complete();
        feed.publish_notified(sequence, &[second]);
        assert_eq!(reader.next().await, Some(FeedEvent::Changed(second)));
        assert!(reader.receiver.is_empty());
    }
}
