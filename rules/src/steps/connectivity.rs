//! The argument of `connectivity-check`: the other hosts of the cluster.

use std::fmt;
use std::sync::Arc;

use assisted::connectivity::{ConnectivityCheckHost, ConnectivityCheckNic};
use assisted::host::HostStatus;
use assisted::{HostId, List};

use crate::summary::NicSummary;
use crate::view::HostView;

/// The hosts of a cluster whose connectivity can be checked, as JSON, ordered by id.
///
/// All hosts of a cluster receive the same list, each without its own entry. A caller makes the list once per change of
/// the cluster, and [`argument_for`](Self::argument_for) copies it without the entry. The list of 500 hosts that have
/// one interface with an IPv4 address is about 67 KB. If each of them receives it once a minute, that is 0.6 MB per
/// second; [`ConnectivityThrottle`](super::ConnectivityThrottle) reduces it to 0.2 MB.
///
/// A host is in the list if its status is neither `discovering` nor `disconnected` and one of its interfaces has an
/// address. The Assisted Installer omits the step for all hosts of a cluster if one host has no interface.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct ConnectivityTargets {
    /// Entries, each followed by a comma.
    json: String,
    /// Each entry's host and its end in `json`, in order.
    ends: Vec<(HostId, usize)>,
}

/// Shows only the size. The list may have thousands of addresses.
impl fmt::Debug for ConnectivityTargets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectivityTargets")
            .field("hosts", &self.ends.len())
            .field("bytes", &self.len())
            .finish()
    }
}

impl ConnectivityTargets {
    /// Makes the list from the hosts of a cluster.
    ///
    /// # Errors
    ///
    /// Returns an error if an entry cannot be written as JSON.
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

    /// Returns the argument for a host: the list without the host's own entry. `None` if no other host can be checked.
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

    /// Returns the size of the list in bytes.
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

/// Returns the entry of a host. It includes interfaces without addresses: an agent accepts answers from their MAC
/// addresses.
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
