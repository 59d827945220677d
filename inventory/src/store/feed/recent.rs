//! The latest events of a feed, which allow a subscriber to continue after an interruption.

use std::collections::VecDeque;
use std::fmt;

use tokio::sync::broadcast;

use super::event::FeedEvent;

/// Maximum number of events that a subscriber may miss or fall behind. After more events, it gets
/// [`FeedEvent::Resync`].
pub(super) const MAX_BEHIND: usize = 4096;

/// The position of an event in the feed of one process. Formatted as text for clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FeedPosition {
    /// The random number that identifies the feed.
    pub(super) origin: u64,
    /// The number of events up to and including the event at this position.
    pub(super) number: u64,
}

impl fmt::Display for FeedPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}-{}", self.origin, self.number)
    }
}

impl FeedPosition {
    /// Parses the text form of a position. Returns `None` if the text is invalid.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (origin, number) = text.split_once('-')?;
        Some(Self { origin: u64::from_str_radix(origin, 16).ok()?, number: number.parse().ok()? })
    }
}

/// The latest events, and the channel to the subscribers.
#[derive(Debug)]
pub(super) struct RecentEvents {
    /// The number of events ever sent.
    count: u64,
    latest: VecDeque<FeedEvent>,
    sender: broadcast::Sender<FeedEvent>,
}

/// A new subscription, possibly with events that precede it.
pub(super) struct Subscription {
    pub(super) receiver: broadcast::Receiver<FeedEvent>,
    /// The events after the requested position, up to the first event of the receiver.
    pub(super) missed: VecDeque<FeedEvent>,
    /// The number of events before the first event of the subscription.
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
        // An error means that the feed has no subscribers.
        let _ = self.sender.send(event);
    }

    pub(super) fn subscribe(&self) -> Subscription {
        Subscription { receiver: self.sender.subscribe(), missed: VecDeque::new(), count: self.count }
    }

    /// Returns a subscription to all events after the event with this number. Returns `None` if some of them are no
    /// longer available.
    pub(super) fn subscribe_after(&self, number: u64) -> Option<Subscription> {
        let missed = usize::try_from(self.count.checked_sub(number)?).ok()?;
        let first = self.latest.len().checked_sub(missed)?;
        let missed = self.latest.iter().skip(first).copied().collect();
        Some(Subscription { missed, count: number, ..self.subscribe() })
    }
}
