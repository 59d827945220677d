//! Connection slots: limits for all connections of a server, and for the connections of each client.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};

use super::client::ClientAddress;
use super::limits::{MIN_SHARE, ServerLimits};

/// The connection slots of a server. All its listeners share them.
#[derive(Clone, Debug)]
pub(super) struct ConnectionSlots(Arc<SharedSlots>);

#[derive(Debug)]
struct SharedSlots {
    free: Arc<Semaphore>,
    client_quota: usize,
    /// The number of connections of each client that has any.
    counts: Mutex<HashMap<IpAddr, usize>>,
}

/// A slot without a client. Dropping it releases the slot.
#[derive(Debug)]
pub(super) struct FreeSlot {
    _permit: OwnedSemaphorePermit,
}

/// A slot assigned to a client. Dropping it releases the slot and reduces the client's count.
#[derive(Debug)]
pub(super) struct TakenSlot {
    _slot: FreeSlot,
    client: Option<IpAddr>,
    slots: ConnectionSlots,
}

impl ConnectionSlots {
    pub(super) fn new(limits: &ServerLimits) -> Self {
        let total = limits.connections.clamp(1, Semaphore::MAX_PERMITS);
        Self(Arc::new(SharedSlots {
            free: Arc::new(Semaphore::new(total)),
            client_quota: limits.connections_of_client,
            counts: Mutex::default(),
        }))
    }

    /// Waits for a slot. Returns an error if the semaphore is closed.
    pub(super) async fn acquire_free(&self) -> Result<FreeSlot, AcquireError> {
        Ok(FreeSlot { _permit: Arc::clone(&self.0.free).acquire_owned().await? })
    }

    /// Returns `true` if a new connection has to wait for a slot.
    pub(super) fn are_all_taken(&self) -> bool {
        self.0.free.available_permits() == 0
    }

    /// Assigns a slot to a client. Returns `None` if the client has reached its quota. There is no quota for clients
    /// without an address. They are on this machine, and file permissions control their access to the Unix socket.
    pub(super) fn assign(&self, slot: FreeSlot, address: Option<IpAddr>) -> Option<TakenSlot> {
        let client = ClientAddress(address).quota_key();
        if let Some(client) = client {
            let mut counts = self.0.counts.lock().unwrap_or_else(PoisonError::into_inner);
            let count = counts.get(&client).copied().unwrap_or(0);
            let share = self.0.free.available_permits().max(MIN_SHARE).min(self.0.client_quota);
            if count >= share {
                return None;
            }
            counts.insert(client, count.saturating_add(1));
        }
        Some(TakenSlot { _slot: slot, client, slots: self.clone() })
    }
}

impl Drop for TakenSlot {
    fn drop(&mut self) {
        let Some(client) = self.client else { return };
        let mut counts = self.slots.0.counts.lock().unwrap_or_else(PoisonError::into_inner);
        match counts.get_mut(&client) {
            Some(count) if *count > 1 => *count -= 1,
            _ => {
                counts.remove(&client);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connection_slots(connections: usize, connections_of_client: usize) -> ConnectionSlots {
        ConnectionSlots::new(&ServerLimits { connections, connections_of_client, ..ServerLimits::default() })
    }

    async fn take_slot(slots: &ConnectionSlots, address: &str) -> Option<TakenSlot> {
        let slot = slots.acquire_free().await.unwrap();
        slots.assign(slot, Some(address.parse().unwrap()))
    }

    async fn take_all_slots(slots: &ConnectionSlots, address: &str) -> Vec<TakenSlot> {
        let mut assigned = Vec::new();
        while !slots.are_all_taken()
            && let Some(slot) = take_slot(slots, address).await
        {
            assigned.push(slot);
        }
        assigned
    }

    #[tokio::test]
    async fn client_is_limited_to_its_quota() {
        let slots = connection_slots(1000, 100);
        let mut of_one = take_all_slots(&slots, "192.0.2.1").await;
        assert_eq!(of_one.len(), 100);
        assert!(
            take_slot(&slots, "::ffff:192.0.2.1").await.is_none(),
            "the same client as an IPv4-mapped address"
        );
        assert!(take_slot(&slots, "192.0.2.2").await.is_some());
        of_one.pop();
        assert!(take_slot(&slots, "192.0.2.1").await.is_some());
        drop(of_one);
        assert!(slots.0.counts.lock().unwrap().is_empty());
        assert_eq!(slots.0.free.available_permits(), 1000);
    }

    #[tokio::test]
    async fn ipv6_prefix_counts_as_one_client() {
        let slots = connection_slots(1000, 2);
        let _first = take_slot(&slots, "2001:db8::1").await.unwrap();
        let _second = take_slot(&slots, "2001:db8::2:0:0:1").await.unwrap();
        assert!(take_slot(&slots, "2001:db8::ffff:0:0:0").await.is_none());
        assert!(take_slot(&slots, "2001:db8:0:1::1").await.is_some());
    }

    #[tokio::test]
    async fn greedy_clients_leave_slots_to_others() {
        let slots = connection_slots(1000, 1000);
        let first = take_all_slots(&slots, "192.0.2.1").await;
        let second = take_all_slots(&slots, "192.0.2.2").await;
        assert_eq!((first.len(), second.len()), (500, 250));
        let mut others = Vec::new();
        for last in 3..=5 {
            others.push(take_all_slots(&slots, &format!("192.0.2.{last}")).await);
        }
        let counts: Vec<usize> = others.iter().map(Vec::len).collect();
        assert_eq!(counts, [125, 62, MIN_SHARE]);
    }

    #[tokio::test]
    async fn released_slot_goes_to_the_waiting_client() {
        let slots = connection_slots(1, 1);
        let slot = take_slot(&slots, "192.0.2.1").await.unwrap();
        assert!(slots.are_all_taken());
        let waiting = tokio::spawn({
            let slots = slots.clone();
            async move { take_slot(&slots, "192.0.2.2").await.is_some() }
        });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        drop(slot);
        assert!(waiting.await.unwrap());
    }
}
