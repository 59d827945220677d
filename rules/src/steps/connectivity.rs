//! The argument of the `connectivity-check` step: the other hosts of the cluster.

use std::fmt;
use std::sync::Arc;

use assisted::connectivity::{ConnectivityCheckHost, ConnectivityCheckNic};
use assisted::host::HostStatus;
use assisted::{HostId, List};

use crate::summary::NicSummary;
use crate::view::HostView;

/// The JSON list of a cluster's hosts whose connectivity can be checked, ordered by host id.
///
/// All hosts of a cluster receive the same list, without their own entry. The caller creates the list once per change
/// of the cluster, and [`argument_for`](Self::argument_for) copies it without one entry. For 500 hosts with one
/// interface and one IPv4 address each, the list is about 67 KB. If each host receives it once a minute, the service
/// sends 0.6 MB per second. [`ConnectivityThrottle`](super::ConnectivityThrottle) reduces this rate to 0.2 MB per
/// second.
///
/// The list contains a host if its status is neither `discovering` nor `disconnected`, and one of its interfaces has an
/// address. The Assisted Installer differs: if one host has no interface, it omits the step for all hosts of the
/// cluster.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct ConnectivityTargets {
    /// JSON objects of the hosts, each followed by a comma.
    json: String,
    /// The host id of each entry, and the end of the entry in `json`. Sorted by id.
    ends: Vec<(HostId, usize)>,
}

/// Prints only the size, because the list may contain thousands of addresses.
impl fmt::Debug for ConnectivityTargets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectivityTargets")
            .field("hosts", &self.ends.len())
            .field("bytes", &self.len())
            .finish()
    }
}

impl ConnectivityTargets {
    /// Creates the list from the hosts of a cluster.
    ///
    /// # Errors
    ///
    /// Returns an error if an entry cannot be serialized as JSON.
    pub fn new(hosts: &[Arc<HostView>]) -> Result<Self, serde_json::Error> {
        let mut hosts: Vec<_> = hosts.iter().filter(|host| can_be_checked(host)).collect();
        hosts.sort_by_key(|host| host.id);
        let mut targets = Self::default();
        for host in hosts {
            targets.json.push_str(&serde_json::to_string(&entry(host))?);
            targets.json.push(',');
            targets.ends.push((host.id, targets.json.len()));
        }
        targets.json.shrink_to_fit();
        Ok(targets)
    }

    /// Returns the argument for a host: the list without the entry of this host. `None` if no other host can be
    /// checked.
    #[must_use]
    pub fn argument_for(&self, host: HostId) -> Option<String> {
        let end_of = |entries: usize| match entries.checked_sub(1) {
            Some(last) => self.ends.get(last).map(|(_, end)| *end),
            None => Some(0),
        };
        let before = self.json.get(..end_of(self.ends.partition_point(|(id, _)| *id < host))?)?;
        let after = self.json.get(end_of(self.ends.partition_point(|(id, _)| *id <= host))?..)?;
        if before.is_empty() && after.is_empty() {
            return None;
        }
        let mut argument = String::with_capacity(before.len() + after.len() + 1);
        argument.push('[');
        argument.push_str(before);
        argument.push_str(after);
        argument.pop();
        argument.push(']');
        Some(argument)
    }

    /// Returns the size of the JSON list in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.json.len()
    }

    /// Returns `true` if no host can be checked.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }
}

fn can_be_checked(host: &HostView) -> bool {
    !matches!(host.status, HostStatus::Discovering | HostStatus::Disconnected)
        && host.nics().iter().any(|nic| !nic.addresses.is_empty())
}

/// Returns the entry of a host. Interfaces without addresses are included, because the checking agent accepts replies
/// from their MAC addresses.
fn entry(host: &HostView) -> ConnectivityCheckHost {
    ConnectivityCheckHost { host_id: host.id, nics: host.nics().iter().map(nic).collect() }
}

fn nic(nic: &NicSummary) -> ConnectivityCheckNic {
    let addresses: Vec<_> = nic.addresses.iter().map(|address| address.address().to_string()).collect();
    ConnectivityCheckNic {
        ip_addresses: List(Some(addresses).filter(|addresses| !addresses.is_empty())),
        mac: nic.mac.to_string(),
        name: nic.name.to_string(),
    }
}
