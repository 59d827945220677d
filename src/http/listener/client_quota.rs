//! How connections are shared among clients.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::limits::{Limits, MIN_SHARE};

/// The connections that there may be, of all listeners of a server.
#[derive(Clone, Debug)]
pub(super) struct ConnectionSlots(Arc<Parts>);

#[derive(Debug)]
struct Parts {
    free: Arc<Semaphore>,
    most_of_client: usize,
    /// How many each client has that has any.
    taken: Mutex<HashMap<IpAddr, usize>>,
}

/// A place for one connection.
#[derive(Debug)]
pub(super) struct FreeSlot {
    _permit: OwnedSemaphorePermit,
}

/// A place that is counted as one of its client's. It is free again when this is dropped.
#[derive(Debug)]
pub(super) struct TakenSlot {
    _place: FreeSlot,
    client: Option<IpAddr>,
    places: ConnectionSlots,
}

impl ConnectionSlots {
    pub(super) fn new(limits: &Limits) -> Self {
        let most = limits.connections.clamp(1, Semaphore::MAX_PERMITS);
        Self(Arc::new(Parts {
            free: Arc::new(Semaphore::new(most)),
            most_of_client: limits.connections_of_client,
            taken: Mutex::default(),
        }))
    }

    /// A place, as soon as there is one. Nothing where there will never be one.
    pub(super) async fn free(&self) -> Option<FreeSlot> {
        Arc::clone(&self.0.free).acquire_owned().await.ok().map(|permit| FreeSlot { _permit: permit })
    }

    /// Whether somebody who wants a place has to wait.
    pub(super) fn are_taken(&self) -> bool {
        self.0.free.available_permits() == 0
    }

    /// Gives a place to a client, unless that has its share. Clients without address are of this machine, and reach the
    /// server through a file that says who may: they share with nobody.
    pub(super) fn take(&self, place: FreeSlot, address: Option<IpAddr>) -> Option<TakenSlot> {
        let client = address.map(client_of);
        if let Some(client) = client {
            let mut taken = self.0.taken.lock().unwrap_or_else(PoisonError::into_inner);
            let count = taken.get(&client).copied().unwrap_or(0);
            let share = self.0.free.available_permits().max(MIN_SHARE).min(self.0.most_of_client);
            if count >= share {
                return None;
            }
            taken.insert(client, count.saturating_add(1));
        }
        Some(TakenSlot { _place: place, client, places: self.clone() })
    }
}

impl Drop for TakenSlot {
    fn drop(&mut self) {
        let Some(client) = self.client else { return };
        let mut taken = self.places.0.taken.lock().unwrap_or_else(PoisonError::into_inner);
        match taken.get_mut(&client) {
            Some(count) if *count > 1 => *count -= 1,
            _ => {
                taken.remove(&client);
            }
        }
    }
}

/// Whom an address stands for. A machine has as many addresses of version 6 as it likes, below 64 bits that it does not
/// choose.
fn client_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
        }
        address @ IpAddr::V4(_) => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(connections: usize, connections_of_client: usize) -> ConnectionSlots {
        ConnectionSlots::new(&Limits { connections, connections_of_client, ..Limits::default() })
    }

    async fn take(places: &ConnectionSlots, address: &str) -> Option<TakenSlot> {
        let place = places.free().await.unwrap();
        places.take(place, Some(address.parse().unwrap()))
    }

    async fn take_all(places: &ConnectionSlots, address: &str) -> Vec<TakenSlot> {
        let mut taken = Vec::new();
        while !places.are_taken()
            && let Some(place) = take(places, address).await
        {
            taken.push(place);
        }
        taken
    }

    #[tokio::test]
    async fn a_client_has_its_share_and_no_more() {
        let places = places(1000, 100);
        let mut of_one = take_all(&places, "192.0.2.1").await;
        assert_eq!(of_one.len(), 100);
        assert!(take(&places, "::ffff:192.0.2.1").await.is_none(), "the same in the other notation");
        assert!(take(&places, "192.0.2.2").await.is_some());
        of_one.pop();
        assert!(take(&places, "192.0.2.1").await.is_some());
        drop(of_one);
        assert!(places.0.taken.lock().unwrap().is_empty());
        assert_eq!(places.0.free.available_permits(), 1000);
    }

    #[tokio::test]
    async fn a_network_of_version_6_is_one_client() {
        let places = places(1000, 2);
        let _first = take(&places, "2001:db8::1").await.unwrap();
        let _second = take(&places, "2001:db8::2:0:0:1").await.unwrap();
        assert!(take(&places, "2001:db8::ffff:0:0:0").await.is_none());
        assert!(take(&places, "2001:db8:0:1::1").await.is_some());
    }

    #[tokio::test]
    async fn greedy_clients_leave_places_to_others() {
        let places = places(1000, 1000);
        let first = take_all(&places, "192.0.2.1").await;
        let second = take_all(&places, "192.0.2.2").await;
        assert_eq!((first.len(), second.len()), (500, 250));
        let mut others = Vec::new();
        for last in 3..=5 {
            others.push(take_all(&places, &format!("192.0.2.{last}")).await);
        }
        let counts: Vec<usize> = others.iter().map(Vec::len).collect();
        assert_eq!(counts, [125, 62, MIN_SHARE]);
    }

    #[tokio::test]
    async fn a_place_that_is_given_back_is_for_who_waits() {
        let places = places(1, 1);
        let taken = take(&places, "192.0.2.1").await.unwrap();
        assert!(places.are_taken());
        let waiting = tokio::spawn({
            let places = places.clone();
            async move { take(&places, "192.0.2.2").await.is_some() }
        });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        drop(taken);
        assert!(waiting.await.unwrap());
    }
}
