//! The network of iSCSI disks: it must not be the network through which the host reaches all others.

use std::net::IpAddr;

use crate::summary::{DiskSummary, InventorySummary, NicSummary, RouteSummary};

/// The beginning of each reason that [`DefaultNics::reason_against`] returns.
pub(super) const REASONS: [&str; 4] = [NO_ADDRESS, INVALID_ADDRESS, NO_NIC, SAME_ADDRESS];

const NO_ADDRESS: &str = "Host IP address is not available";
const INVALID_ADDRESS: &str = "Cannot parse iSCSI host IP ";
const NO_NIC: &str = "Cannot find the network interface behind the default route";
const SAME_ADDRESS: &str = "iSCSI host IP ";

/// The network interfaces of the default routes.
pub(super) struct DefaultNics<'a> {
    ipv4: DefaultNic<'a>,
    ipv6: DefaultNic<'a>,
}

/// The network interface of the default route of an address family.
#[derive(Clone, Copy)]
enum DefaultNic<'a> {
    NoRoute,
    /// The inventory does not have the interface of the route.
    Missing,
    Nic(&'a NicSummary),
}

impl<'a> DefaultNics<'a> {
    pub(super) fn find(inventory: &'a InventorySummary) -> Self {
        let find = |is_default: fn(IpAddr) -> bool| {
            let is_default = |route: &&RouteSummary| route.destination.is_some_and(is_default);
            let Some(route) = inventory.routes.iter().filter(is_default).min_by_key(|route| route.metric)
            else {
                return DefaultNic::NoRoute;
            };
            let nic = inventory.nics.iter().find(|nic| nic.name == route.nic);
            nic.map_or(DefaultNic::Missing, DefaultNic::Nic)
        };
        Self {
            ipv4: find(|destination| destination.is_ipv4() && destination.is_unspecified()),
            ipv6: find(|destination| destination.is_ipv6() && destination.is_unspecified()),
        }
    }

    /// Returns the reason against an installation on an iSCSI disk. `None`: the network of the disk is valid.
    pub(super) fn reason_against(&self, disk: &DiskSummary) -> Option<String> {
        let address = &*disk.iscsi_host_address;
        if address.is_empty() {
            return Some(NO_ADDRESS.to_owned());
        }
        let parsed: IpAddr = match address.parse() {
            Ok(parsed) => parsed,
            Err(error) => return Some(format!("{INVALID_ADDRESS}{address}: {error}")),
        };
        match if parsed.is_ipv4() { self.ipv4 } else { self.ipv6 } {
            DefaultNic::NoRoute => None,
            DefaultNic::Missing => Some(NO_NIC.to_owned()),
            DefaultNic::Nic(nic) => nic
                .addresses
                .iter()
                .any(|cidr| cidr.address() == parsed)
                .then(|| format!("{SAME_ADDRESS}{parsed} is the same as host IP, they must be different")),
        }
    }
}
