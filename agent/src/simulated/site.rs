//! The hosts of a profile: their ids, names, addresses and faults.

use std::net::Ipv4Addr;
use std::sync::Arc;

use assisted::HostId;

use super::fault::Fault;
use super::fault_set::FaultSet;
use super::machine::SimulatedMachine;
use super::profile::{HostGroup, Profile, ProfileError};
use super::segment::Ipv4Segment;
use crate::jitter::{mix_bits, mix_text};

/// All hosts of a profile. Each machine finds the other hosts through the site.
#[derive(Debug)]
pub struct SimulatedSite {
    profile: Profile,
    seed: u64,
    hosts: Vec<HostSlot>,
}

/// The group, number and faults of one host.
#[derive(Clone, Debug)]
pub(super) struct HostSlot {
    pub(super) group: Arc<HostGroup>,
    /// Number of the host in its group, starting at 0.
    number: u32,
    pub(super) faults: FaultSet,
}

impl HostSlot {
    pub(super) fn has_fault(&self, fault: Fault) -> bool {
        self.faults.contains(fault)
    }

    /// Returns the name of the host as if it had no faults.
    pub(super) fn usual_name(&self) -> String {
        format!("{}-{}", self.group.name, u64::from(self.number) + 1)
    }

    /// Returns the number of the interface with the host's address. `None`: no interface has a link.
    pub(super) fn connected_interface(&self) -> Option<usize> {
        if self.has_fault(Fault::UnpluggedLink) {
            return None;
        }
        self.group.interfaces.iter().position(|interface| interface.connected)
    }
}

impl SimulatedSite {
    /// Creates a site with the first `hosts` hosts of a profile. Sites with different seeds have hosts with different
    /// ids and MAC addresses.
    ///
    /// # Errors
    ///
    /// Returns an error if the profile cannot be simulated, or if it has too few addresses.
    pub fn new(profile: Profile, hosts: u32, seed: u64) -> Result<Self, ProfileError> {
        profile.check()?;
        let network = profile.network;
        if network.segment(hosts.saturating_sub(1) / network.hosts()).is_none() {
            return Err(ProfileError::NoAddresses { hosts, network });
        }
        let groups: Vec<_> = profile.groups.iter().cloned().map(Arc::new).collect();
        let hosts: Option<_> = (0..hosts).map(|host| slot(&groups, host)).collect();
        Ok(Self { profile, seed, hosts: hosts.ok_or(ProfileError::NoHosts)? })
    }

    /// Adds a fault to `hosts` hosts, selected by the seed.
    ///
    /// # Examples
    ///
    /// ```
    /// use agent::simulated::{Fault, Profile, SimulatedSite};
    ///
    /// let profile: Profile = serde_json::from_str(r#"{"groups": [{"name": "worker"}]}"#)?;
    /// let site = SimulatedSite::new(profile, 10, 42)?.with_fault(Fault::SlowDisk, 3);
    /// assert_eq!(site.hosts_with(Fault::SlowDisk), 3);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn with_fault(mut self, fault: Fault, hosts: u32) -> Self {
        // The first host keeps its name, because the other hosts duplicate it.
        let first = usize::from(fault == Fault::DuplicateHostname && self.hosts.len() > 1);
        let salt = mix_bits(self.seed ^ mix_text(&fault.to_string()));
        let mut order: Vec<usize> = (first..self.hosts.len()).collect();
        order.sort_unstable_by_key(|number| mix_bits(salt ^ *number as u64));
        let count = usize::try_from(hosts).unwrap_or(usize::MAX);
        for number in order.into_iter().take(count) {
            if let Some(host) = self.hosts.get_mut(number) {
                host.faults.insert(fault);
            }
        }
        self
    }

    /// Returns the number of hosts with a fault.
    #[must_use]
    pub fn hosts_with(&self, fault: Fault) -> usize {
        self.hosts.iter().filter(|host| host.has_fault(fault)).count()
    }

    /// Returns the machines of all hosts, in the order of their numbers.
    pub fn machines(self: &Arc<Self>) -> impl Iterator<Item = SimulatedMachine> {
        let site = Arc::clone(self);
        let all = self.hosts.iter().cloned().zip(0..);
        all.map(move |(slot, number)| SimulatedMachine {
            site: Arc::clone(&site),
            number,
            slot,
            checks: Arc::default(),
        })
    }

    /// Returns the profile that describes the hosts.
    #[must_use]
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    pub(super) fn seed(&self) -> u64 {
        self.seed
    }

    pub(super) fn host_id(&self, host: u32) -> HostId {
        let high = mix_bits(self.seed ^ mix_bits(u64::from(host)));
        let low = mix_bits(high ^ self.seed.rotate_left(32));
        let bytes = u128::from(high) << 64 | u128::from(low);
        HostId(uuid::Builder::from_random_bytes(bytes.to_be_bytes()).into_uuid())
    }

    /// Returns the name of the first host, which all hosts with the fault `duplicate-hostname` report.
    pub(super) fn first_name(&self) -> Option<String> {
        self.hosts.first().map(HostSlot::usual_name)
    }

    pub(super) fn slot(&self, host: u32) -> Option<&HostSlot> {
        self.hosts.get(usize::try_from(host).ok()?)
    }

    /// Returns the network segment of a host.
    pub(super) fn segment(&self, host: u32) -> Option<Ipv4Segment> {
        let network = self.profile.network;
        network.segment(host / network.hosts())
    }

    /// Returns the address of a connected host.
    pub(super) fn address(&self, host: u32) -> Option<Ipv4Addr> {
        self.slot(host)?.connected_interface()?;
        Some(self.segment(host)?.host_address(host % self.profile.network.hosts()))
    }

    /// Returns the connected host that has an address.
    pub(super) fn host_at(&self, address: Ipv4Addr) -> Option<u32> {
        let host = self.profile.network.host_number(address)?;
        (self.address(host) == Some(address)).then_some(host)
    }

    /// Returns `true` for the address of a gateway.
    pub(super) fn is_gateway(&self, address: Ipv4Addr) -> bool {
        let network = self.profile.network;
        let segments = self.hosts.len().div_ceil(usize::try_from(network.hosts()).unwrap_or(usize::MAX));
        let number = network.gateway_number(address).and_then(|number| usize::try_from(number).ok());
        number.is_some_and(|number| number < segments)
    }

    pub(super) fn mac_address(&self, host: u32, interface: usize) -> String {
        self.mac_address_with_prefix("52", host, interface)
    }

    /// Returns the MAC address of the second machine that uses the address of a host.
    pub(super) fn intruder_mac_address(&self, host: u32) -> String {
        self.mac_address_with_prefix("5a", host, 0)
    }

    /// Returns a MAC address whose first byte marks it as locally administered.
    fn mac_address_with_prefix(&self, prefix: &str, host: u32, interface: usize) -> String {
        let [seed, ..] = mix_bits(self.seed).to_be_bytes();
        // `SimulatedSite::new` checked that interface numbers fit in four bits.
        let interface = u32::try_from(interface).unwrap_or(u32::MAX) & 0xf;
        let [a, b, c, d] = (host.wrapping_mul(16) | interface).to_be_bytes();
        format!("{prefix}:{seed:02x}:{a:02x}:{b:02x}:{c:02x}:{d:02x}")
    }
}

/// Returns the group of a host and its number in the group. The first hosts belong to the first group.
fn slot(groups: &[Arc<HostGroup>], host: u32) -> Option<HostSlot> {
    let counted: u32 = groups.iter().filter_map(|group| group.count).fold(0, u32::saturating_add);
    let has_rest = groups.iter().any(|group| group.count.is_none());
    // If no group takes all remaining hosts, further hosts start again with the first group.
    let (cycle, mut rest) =
        if has_rest { (0, host) } else { (host.checked_div(counted)?, host.checked_rem(counted)?) };
    for group in groups {
        let count = group.count.unwrap_or(u32::MAX);
        let Some(after) = rest.checked_sub(count) else {
            let number = cycle.checked_mul(count)?.checked_add(rest)?;
            return Some(HostSlot { group: Arc::clone(group), number, faults: FaultSet::new(&group.faults) });
        };
        rest = after;
    }
    None
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn site(groups: &str, hosts: u32, seed: u64) -> SimulatedSite {
        let profile = serde_json::from_str(&format!(r#"{{"groups": {groups}}}"#)).unwrap();
        SimulatedSite::new(profile, hosts, seed).unwrap()
    }

    fn names(groups: &str, hosts: u32) -> Vec<String> {
        site(groups, hosts, 1).hosts.iter().map(HostSlot::usual_name).collect()
    }

    #[test]
    fn counted_groups_repeat() {
        let groups = r#"[{"name": "a", "count": 2}, {"name": "b", "count": 1}]"#;
        assert_eq!(names(groups, 7), ["a-1", "a-2", "b-1", "a-3", "a-4", "b-2", "a-5"]);
    }

    #[test]
    fn group_without_count_takes_the_rest() {
        let groups = r#"[{"name": "a", "count": 2}, {"name": "b"}]"#;
        assert_eq!(names(groups, 5), ["a-1", "a-2", "b-1", "b-2", "b-3"]);
    }

    #[test]
    fn ids_and_addresses_of_many_hosts_are_distinct() {
        let site = site(r#"[{"name": "a"}]"#, 10_000, 7);
        let numbers = 0..10_000;
        let count = |texts: BTreeSet<String>| assert_eq!(texts.len(), 10_000);
        count(numbers.clone().map(|host| site.host_id(host).to_string()).collect());
        count(numbers.clone().map(|host| site.address(host).unwrap().to_string()).collect());
        count(numbers.clone().map(|host| site.mac_address(host, 0)).collect());
        for host in [0, 243, 244, 9_999] {
            assert_eq!(site.host_at(site.address(host).unwrap()), Some(host));
        }
        assert_eq!(site.host_at(Ipv4Addr::new(192, 168, 111, 1)), None);
        assert!(site.is_gateway(Ipv4Addr::new(192, 168, 112, 1)));
        assert!(!site.is_gateway(Ipv4Addr::new(192, 168, 112, 2)));
        assert!(!site.is_gateway(Ipv4Addr::new(192, 168, 200, 1)));
    }

    #[test]
    fn seed_determines_ids_and_faulty_hosts() {
        let faulty = |seed| {
            let site = site(r#"[{"name": "a"}]"#, 100, seed).with_fault(Fault::NoNtp, 10);
            (0..100).filter(|host| site.slot(*host).unwrap().has_fault(Fault::NoNtp)).collect::<Vec<_>>()
        };
        assert_eq!(faulty(1), faulty(1));
        assert_ne!(faulty(1), faulty(2));
        assert_eq!(faulty(3).len(), 10);
        let id = |seed| site(r#"[{"name": "a"}]"#, 1, seed).host_id(0);
        assert_eq!(id(1), id(1));
        assert_ne!(id(1), id(2));
    }

    #[test]
    fn rejects_more_hosts_than_addresses() {
        let text = r#"{"network": "255.255.255.0/24", "groups": [{"name": "a"}]}"#;
        let profile: Profile = serde_json::from_str(text).unwrap();
        SimulatedSite::new(profile.clone(), 244, 1).unwrap();
        let error = SimulatedSite::new(profile, 245, 1).unwrap_err();
        assert_eq!(
            error.to_string(),
            "not enough IPv4 addresses for 245 hosts: the first network is 255.255.255.0/24"
        );
    }
}
