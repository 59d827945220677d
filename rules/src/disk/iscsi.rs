//! The network check of iSCSI disks: an iSCSI disk must not use the network interface of the default route.

use std::net::IpAddr;

use crate::summary::{DiskSummary, InventorySummary, NicSummary, RouteSummary};

/// Prefixes of the reasons that [`DefaultNics::reason_against`] returns.
pub(super) const REASONS: [&str; 4] = [NO_ADDRESS, INVALID_ADDRESS, NO_NIC, SAME_ADDRESS];

const NO_ADDRESS: &str = "Host IP address is not available";
const INVALID_ADDRESS: &str = "Cannot parse iSCSI host IP ";
const NO_NIC: &str = "Cannot find the network interface behind the default route";
const SAME_ADDRESS: &str = "iSCSI host IP ";

/// The network interfaces of the default routes, by address family.
pub(super) struct DefaultNics<'a> {
    ipv4: DefaultNic<'a>,
    ipv6: DefaultNic<'a>,
}

#[derive(Clone, Copy)]
enum DefaultNic<'a> {
    NoRoute,
    /// The inventory report does not list the interface of the route.
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

    /// Returns the reason why an iSCSI disk is not eligible, or `None` if its network is valid.
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
