//! What is known about a host from the replies of its agent: typed, compact and bounded.
//!
//! A reply is parsed once, when it arrives. Validations, steps and roles read only the summary, never the reply.

mod bits;
mod parts;

pub use parts::{
    AddressCollision, BrokenMtu, DiskSpeed, DiskSummary, Excess, ExcessPart, FreeAddresses, IgnitionEndpoint,
    ImageAvailability, InventorySummary, NicSummary, PeerAddress, PeerSummary, Peers, ResolvedName,
    RouteSummary, TangServers, TimeSource, Truncation, VendorSummary, VerifiedVip, VipLeases,
};

use serde::{Deserialize, Serialize};

/// Everything that is known about a host from the replies of its agent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct HostSummary {
    /// The hardware. `None`: no report is stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inventory: Option<Box<InventorySummary>>,
    /// Connectivity to the other hosts of the cluster. `None`: no report is stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peers: Option<Peers>,
    /// Unused addresses, for each network. Empty: no report is stored.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub free_addresses: Vec<FreeAddresses>,
    /// The time servers. `None`: no report is stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_sources: Option<Vec<TimeSource>>,
    /// Results of DNS lookups. `None`: no report is stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub names: Option<Vec<ResolvedName>>,
    /// Results of the checks of virtual IP addresses.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub vips: Vec<VerifiedVip>,
    /// Leases of virtual IP addresses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub leases: Option<VipLeases>,
    /// Download of the Ignition config of the cluster that the host joins. `None`: not attempted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ignition_endpoint: Option<IgnitionEndpoint>,
    /// Connectivity to the Tang servers. `None`: not checked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tang: Option<TangServers>,
    /// Results of speed checks, by disk.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub disk_speeds: Vec<DiskSpeed>,
    /// Availability of container images.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<ImageAvailability>,
    /// Parts of reports that exceed their limit, so that the summary does not have all of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub excess: Vec<Excess>,
}
