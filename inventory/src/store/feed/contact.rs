//! The state of the database connection: whether the database responds, and whether notifications arrive.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::watch;

/// The contact with the database, as the change feed observes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Contact {
    /// The database responds, and the feed reports changes by other processes.
    Connected,
    /// As far as known, the database responds. The feed does not report changes by other processes, so caches must
    /// query the database.
    Polling,
    /// The connection for notifications has just been lost. The feed is checking whether the database responds.
    Reconnecting,
    /// The database accepts connections, but its tables cannot be read. They are locked or missing, or the database is
    /// too slow. Operations still try to use it.
    Unusable,
    /// The database does not respond. Operations fail immediately.
    Unreachable,
}

impl Contact {
    const ALL: [Self; 5] =
        [Self::Connected, Self::Polling, Self::Reconnecting, Self::Unusable, Self::Unreachable];
}

/// The current contact and the time of the last response, both readable without a lock.
#[derive(Debug)]
pub(super) struct ContactState {
    contact: watch::Sender<Contact>,
    code: AtomicU8,
    started: Instant,
    /// Time of the last response, in microseconds after `started`.
    responded_at: AtomicU64,
    /// Time when the feed began to reconnect, in microseconds after `started`.
    reconnecting_since: AtomicU64,
    times_listening: AtomicU64,
}

impl ContactState {
    pub(super) fn new(contact: Contact, started: Instant) -> Self {
        Self {
            contact: watch::Sender::new(contact),
            code: AtomicU8::new(contact as u8),
            started,
            responded_at: AtomicU64::new(0),
            reconnecting_since: AtomicU64::new(0),
            times_listening: AtomicU64::new(0),
        }
    }

    pub(super) fn get(&self) -> Contact {
        let code = self.code.load(Ordering::Acquire);
        // The code is always valid, because only `set` and `new` store it.
        Contact::ALL.into_iter().find(|contact| *contact as u8 == code).unwrap_or(Contact::Reconnecting)
    }

    pub(super) fn set(&self, contact: Contact) {
        if contact == Contact::Reconnecting && self.get() != contact {
            self.reconnecting_since.store(self.micros(), Ordering::Release);
        }
        self.code.store(contact as u8, Ordering::Release);
        self.contact.send_replace(contact);
    }

    /// Records that the database has just responded.
    pub(super) fn record_response(&self) {
        self.responded_at.fetch_max(self.micros(), Ordering::AcqRel);
    }

    /// Returns the time since the last response.
    pub(super) fn silence(&self) -> Duration {
        self.time_since(&self.responded_at)
    }

    fn micros(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    fn time_since(&self, micros: &AtomicU64) -> Duration {
        self.started.elapsed().saturating_sub(Duration::from_micros(micros.load(Ordering::Acquire)))
    }

    /// Records that a new connection is listening.
    pub(super) fn begin_listening(&self) {
        self.times_listening.fetch_add(1, Ordering::AcqRel);
    }

    pub(super) fn times_listening(&self) -> u64 {
        self.times_listening.load(Ordering::Acquire)
    }

    pub(super) async fn unreachable(&self) {
        // The sender outlives this call, so the wait returns no error.
        let _ = self.contact.subscribe().wait_for(|contact| *contact == Contact::Unreachable).await;
    }

    /// Waits until the feed has reconnected or has failed to reconnect, and returns the resulting contact. Returns
    /// [`Contact::Reconnecting`] as soon as the reconnection has taken `patience`, so later callers do not wait.
    pub(super) async fn wait_until_settled(&self, patience: Duration) -> Contact {
        let contact = self.get();
        if contact != Contact::Reconnecting {
            return contact;
        }
        let patience = patience.saturating_sub(self.time_since(&self.reconnecting_since));
        if patience.is_zero() {
            return contact;
        }
        let mut changes = self.contact.subscribe();
        let settled = changes.wait_for(|contact| *contact != Contact::Reconnecting);
        // After a timeout, `get` returns the current contact. The wait cannot fail, because the sender outlives this
        // call.
        let _ = tokio::time::timeout(patience, settled).await;
        self.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn waiting_ends_with_the_result_or_at_the_timeout() {
        let state = ContactState::new(Contact::Reconnecting, Instant::now());
        assert_eq!(state.wait_until_settled(Duration::from_millis(5)).await, Contact::Reconnecting);
        // `patience` has already passed, so the call returns immediately.
        let at_once = state.wait_until_settled(Duration::ZERO);
        assert_eq!(futures_util::FutureExt::now_or_never(at_once), Some(Contact::Reconnecting));
        state.set(Contact::Connected);
        state.set(Contact::Reconnecting);
        let settled = state.wait_until_settled(Duration::from_secs(60));
        let decided = async { state.set(Contact::Unreachable) };
        let (contact, ()) = tokio::join!(settled, decided);
        assert_eq!(contact, Contact::Unreachable);
        for contact in Contact::ALL {
            state.set(contact);
            assert_eq!(state.get(), contact);
        }
    }

    #[test]
    fn silence_begins_at_the_last_response() {
        let started = Instant::now().checked_sub(Duration::from_secs(60)).unwrap();
        let state = ContactState::new(Contact::Connected, started);
        assert!(state.silence() >= Duration::from_secs(60));
        state.record_response();
        assert!(state.silence() < Duration::from_secs(30));
    }
}
