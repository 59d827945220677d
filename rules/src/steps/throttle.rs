//! The limit on connectivity checks in large clusters.

use std::collections::VecDeque;

use assisted::HostId;

/// Maximum number of hosts that may start a connectivity check within [`PERIOD`], and maximum number of hosts of a
/// cluster without this limit.
const MAX_CHECKS: usize = 150;

/// Seconds in which at most [`MAX_CHECKS`] checks start.
const PERIOD: u64 = 60;

/// Seconds after which a waiting host that has not checked in loses its position.
const PATIENCE: u64 = 300;

/// Limits how many hosts of a cluster check their connectivity at the same time.
///
/// Each check of a host sends packets to all other hosts. In a cluster with more than 150 hosts, at most 150 hosts
/// start a check within any 60 seconds. The other hosts wait in a queue, first come, first served, so each host that
/// continues to check in gets its turn. A host that has not checked in for five minutes leaves the queue.
///
/// # Examples
///
/// ```
/// use assisted::HostId;
/// use rules::steps::ConnectivityThrottle;
///
/// assert!(!ConnectivityThrottle::applies_to(150));
/// let mut throttle = ConnectivityThrottle::default();
/// let hosts: Vec<_> = (0..151).map(|n| HostId(uuid::Uuid::from_u128(n))).collect();
/// assert!(hosts[..150].iter().all(|host| throttle.may_check(*host, 0)));
/// assert!(!throttle.may_check(hosts[150], 1));
/// assert!(throttle.may_check(hosts[150], 61));
/// ```
#[derive(Clone, Debug, Default)]
pub struct ConnectivityThrottle {
    /// Start of each check within the last [`PERIOD`], in order.
    started: VecDeque<u64>,
    /// The waiting hosts, each with its last check-in, in order of arrival.
    waiting: VecDeque<(HostId, u64)>,
}

impl ConnectivityThrottle {
    /// Returns `true` if connectivity checks are limited in a cluster with this number of hosts.
    #[must_use]
    pub fn applies_to(hosts: usize) -> bool {
        hosts > MAX_CHECKS
    }

    /// Returns `true` if a host that checks in may check its connectivity now. Otherwise the host waits.
    ///
    /// `now_seconds` comes from a clock that does not run backwards.
    pub fn may_check(&mut self, host: HostId, now_seconds: u64) -> bool {
        let age = |time: u64| now_seconds.saturating_sub(time);
        self.started.retain(|start| age(*start) < PERIOD);
        self.waiting.retain(|(other, seen)| *other == host || age(*seen) < PATIENCE);
        let position = self.waiting.iter().position(|(other, _)| *other == host);
        // A free slot is reserved for each host that came first.
        let hosts_before = position.unwrap_or(self.waiting.len());
        if self.started.len() + hosts_before < MAX_CHECKS {
            if let Some(position) = position {
                self.waiting.remove(position);
            }
            self.started.push_back(now_seconds);
            return true;
        }
        match position.and_then(|position| self.waiting.get_mut(position)) {
            Some((_, seen)) => *seen = now_seconds,
            None => self.waiting.push_back((host, now_seconds)),
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use uuid::Uuid;

    use super::*;

    fn host(number: u128) -> HostId {
        HostId(Uuid::from_u128(number))
    }

    #[test]
    fn each_host_of_a_large_cluster_gets_its_turn() {
        let mut throttle = ConnectivityThrottle::default();
        let mut checks: BTreeMap<HostId, Vec<u64>> = BTreeMap::new();
        for now in 0..1200 {
            // Of 600 hosts, ten check in each second.
            for number in (0..600).filter(|number| u64::try_from(number % 60).unwrap() == now % 60) {
                if throttle.may_check(host(number), now) {
                    checks.entry(host(number)).or_default().push(now);
                }
            }
        }
        assert_eq!(checks.len(), 600);
        let longest = checks.values().flat_map(|times| times.windows(2).map(|pair| pair[1] - pair[0])).max();
        assert!(longest <= Some(300), "{longest:?}");
        let starts: Vec<_> = checks.values().flatten().copied().collect();
        for now in 0..1200 {
            let within = starts.iter().filter(|start| (now..now + PERIOD).contains(start)).count();
            assert!(within <= MAX_CHECKS, "{within} checks from {now} on");
        }
        assert!(starts.len() > 2300, "{}", starts.len());
    }

    #[test]
    fn waiting_hosts_check_in_order_of_arrival() {
        let mut throttle = ConnectivityThrottle::default();
        assert!((0..150).all(|number| throttle.may_check(host(number), 0)));
        assert!((150..400).all(|number| !throttle.may_check(host(number), 10)));
        assert!(!throttle.may_check(host(0), 65));
        assert!(!throttle.may_check(host(399), 65));
        assert!(throttle.may_check(host(299), 65));
        assert!(!throttle.may_check(host(300), 65));
    }

    #[test]
    fn silent_host_leaves_the_queue() {
        let mut throttle = ConnectivityThrottle::default();
        assert!((0..150).all(|number| throttle.may_check(host(number), 0)));
        assert!((150..300).all(|number| !throttle.may_check(host(number), 1)));
        assert!(!throttle.may_check(host(300), 70));
        assert!(!throttle.may_check(host(300), 300));
        assert!(throttle.may_check(host(300), 301));
    }
}
