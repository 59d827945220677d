//! The latest events of a feed, so that a subscriber can continue where it stopped.

use std::collections::VecDeque;
use std::fmt;

use tokio::sync::broadcast;

use super::event::FeedEvent;

/// The events that a subscriber may fall behind or miss. Beyond that, it gets [`FeedEvent::Resync`].
pub(super) const MAX_BEHIND: usize = 4096;

/// The position of an event in the feed of one process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FeedPosition {
    /// The process whose feed this is.
    pub(super) origin: u64,
    /// The number of events up to this one.
    pub(super) number: u64,
}

impl fmt::Display for FeedPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}-{}", self.origin, self.number)
    }
}

impl FeedPosition {
    /// Returns the position that a text shows, or `None` if it shows none.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (origin, number) = text.split_once('-')?;
        Some(Self { origin: u64::from_str_radix(origin, 16).ok()?, number: number.parse().ok()? })
    }
}

/// The latest events, and the channel to subscribers.
#[derive(Debug)]
pub(super) struct RecentEvents {
    /// The number of events that were ever sent.
    count: u64,
    latest: VecDeque<FeedEvent>,
    sender: broadcast::Sender<FeedEvent>,
}

/// A new subscription.
pub(super) struct Subscription {
    pub(super) receiver: broadcast::Receiver<FeedEvent>,
    /// The events after the position where the subscriber continues, before those of the receiver.
    pub(super) missed: VecDeque<FeedEvent>,
    /// The number of events before the first missed one.
    pub(super) count: u64,
}

impl RecentEvents {
    pub(super) fn new() -> Self {
        Self { count: 0, latest: VecDeque::new(), sender: broadcast::channel(MAX_BEHIND).0 }
    }

    pub(super) fn send(&mut self, event: FeedEvent) {
        self.count = self.count.wrapping_add(1);
        if self.latest.len() == MAX_BEHIND {
            self.latest.pop_front();
        }
        self.latest.push_back(event);
        // Without subscribers, there is nothing to do.
        let _ = self.sender.send(event);
    }

    /// Returns a subscription to all events from now on.
    pub(super) fn subscribe(&self) -> Subscription {
        Subscription { receiver: self.sender.subscribe(), missed: VecDeque::new(), count: self.count }
    }

    /// Returns a subscription to all events after the one with this number, or `None` if some of them are forgotten.
    pub(super) fn subscribe_after(&self, number: u64) -> Option<Subscription> {
        let missed = usize::try_from(self.count.checked_sub(number)?).ok()?;
        let first = self.latest.len().checked_sub(missed)?;
        let missed = self.latest.iter().skip(first).copied().collect();
        Some(Subscription { missed, count: number, ..self.subscribe() })
    }
}
