//! Limits the rate of connectivity checks in large clusters.

use std::collections::VecDeque;

use assisted::HostId;

/// Maximum number of hosts that may start a connectivity check within [`PERIOD`]. Clusters with at most this number of
/// hosts are not limited.
const MAX_CHECKS: usize = 150;

/// The period of the limit, in seconds.
const PERIOD: u64 = 60;

/// Number of seconds without a check-in after which a waiting host loses its position in the queue.
const PATIENCE: u64 = 300;

/// A limit on the number of hosts in a cluster that check their connectivity at the same time.
///
/// A check sends packets to all other hosts of the cluster. In a cluster of more than 150 hosts, at most 150 hosts
/// start a check within any 60 seconds. The other hosts wait in a queue, first come, first served. Each host that
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
    /// Start times of the checks within the last [`PERIOD`], in order.
    started: VecDeque<u64>,
    /// Waiting hosts and the time of their last check-in, in order of arrival.
    waiting: VecDeque<(HostId, u64)>,
}

impl ConnectivityThrottle {
    /// Returns `true` if connectivity checks are limited in a cluster of `hosts` hosts.
    #[must_use]
    pub fn applies_to(hosts: usize) -> bool {
        hosts > MAX_CHECKS
    }

    /// Returns `true` if a host may check its connectivity now. Otherwise the host joins the queue or stays in it.
    ///
    /// `now_seconds` must come from a monotonic clock.
    pub fn may_check(&mut self, host: HostId, now_seconds: u64) -> bool {
        let age = |time: u64| now_seconds.saturating_sub(time);
        self.started.retain(|start| age(*start) < PERIOD);
        self.waiting.retain(|(other, last_check_in)| *other == host || age(*last_check_in) < PATIENCE);
        let position = self.waiting.iter().position(|(other, _)| *other == host);
        // One free slot is reserved for each host that is ahead in the queue.
        let hosts_before = position.unwrap_or(self.waiting.len());
        if self.started.len() + hosts_before < MAX_CHECKS {
            if let Some(position) = position {
                self.waiting.remove(position);
            }
            self.started.push_back(now_seconds);
            return true;
        }
        match position.and_then(|position| self.waiting.get_mut(position)) {
            Some((_, last_check_in)) => *last_check_in = now_seconds,
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
            // Each of the 600 hosts checks in once a minute: ten hosts in each second.
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
