//! The summary of a host: all facts that its agent has reported.

use std::mem::size_of;

use assisted::step::StepType;

use super::compact::{compact, exact, exact_option};
use super::connectivity::Peers;
use super::excess::{Excess, ExcessLog};
use super::free_addresses::FreeAddresses;
use super::ignition_endpoint::IgnitionEndpoint;
use super::inventory::InventorySummary;
use super::memory::HeapLen as _;
use super::names::ResolvedName;
use super::preparation::{DiskSpeed, ImageAvailability};
use super::tang::TangServers;
use super::time_sources::TimeSource;
use super::vips::{VerifiedVip, VipLeases};

compact! {
    /// The facts about a host, from the replies of its agent.
    ///
    /// # Examples
    ///
    /// ```
    /// use assisted::inventory_report::InventoryReport;
    /// use rules::summary::{HostSummary, VirtualInterfaces};
    ///
    /// let reply = r#"{"hostname": "node-1", "interfaces": [{"name": "eth0", "ipv4_addresses": ["192.0.2.1/24"]}]}"#;
    /// let report: InventoryReport<'_> = serde_json::from_str(reply)?;
    /// let mut summary = HostSummary::default();
    /// summary.set_inventory(&report, VirtualInterfaces::Drop);
    ///
    /// assert_eq!(summary.inventory.map(|inventory| inventory.nics.len()), Some(1));
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    HostSummary {
        /// The hardware. `None` if no inventory report is stored.
        inventory: Option<Box<InventorySummary>>,
        /// Connectivity to the other hosts of the cluster. `None` if no report is stored.
        peers: Option<Peers>,
        /// Unused addresses in the networks of the host. Empty if no report is stored.
        #[serde(deserialize_with = "exact")]
        free_addresses: Vec<FreeAddresses>,
        /// The time servers and their state. `None` if no report is stored.
        #[serde(deserialize_with = "exact_option")]
        time_sources: Option<Vec<TimeSource>>,
        /// Results of DNS lookups. `None` if no report is stored.
        #[serde(deserialize_with = "exact_option")]
        names: Option<Vec<ResolvedName>>,
        /// Verification results of virtual IP addresses.
        #[serde(deserialize_with = "exact")]
        vips: Vec<VerifiedVip>,
        /// DHCP leases of virtual IP addresses.
        leases: Option<VipLeases>,
        /// Download of the Ignition config of the cluster that the host joins. `None` if not attempted.
        ignition_endpoint: Option<IgnitionEndpoint>,
        /// Connectivity to the Tang servers. `None` if not checked.
        tang: Option<TangServers>,
        /// Write speeds of disks, sorted by disk.
        #[serde(deserialize_with = "exact")]
        disk_speeds: Vec<DiskSpeed>,
        /// Availability of container images on the host.
        #[serde(deserialize_with = "exact")]
        images: Vec<ImageAvailability>,
        /// Parts of replies that exceeded a limit, so that this summary contains only the beginning of them.
        #[serde(deserialize_with = "exact")]
        excess: Vec<Excess>,
    }
}

impl HostSummary {
    /// Removes the facts that a reboot invalidates: the hardware, the time servers and the availability of container
    /// images. Call this when the agent registers again.
    pub fn clear_boot_facts(&mut self) {
        self.inventory = None;
        self.clear_excess(&[StepType::Inventory]);
        self.clear_boot_facts_except_inventory();
    }

    /// Removes the same facts as [`clear_boot_facts`](Self::clear_boot_facts), except the hardware. Call this when the
    /// installation of the host is being prepared.
    pub fn clear_boot_facts_except_inventory(&mut self) {
        self.time_sources = None;
        self.images = Vec::new();
        self.clear_excess(&[StepType::NtpSynchronizer, StepType::ContainerImageAvailability]);
    }

    /// Removes the facts that depend on the host's cluster. The hardware, the time servers and the disk speeds stay.
    /// Call this when the host leaves its cluster.
    pub fn clear_cluster_facts(&mut self) {
        self.peers = None;
        self.free_addresses = Vec::new();
        self.names = None;
        self.vips = Vec::new();
        self.leases = None;
        self.ignition_endpoint = None;
        self.tang = None;
        self.images = Vec::new();
        self.clear_excess(&[
            StepType::ConnectivityCheck,
            StepType::FreeNetworkAddresses,
            StepType::DomainResolution,
            StepType::VerifyVips,
            StepType::DhcpLeaseAllocate,
            StepType::ApiVipConnectivityCheck,
            StepType::TangConnectivityCheck,
            StepType::ContainerImageAvailability,
        ]);
    }

    /// Returns a message for users about all parts that exceeded a limit, or `None` if there are no such parts.
    #[must_use]
    pub fn excess_text(&self) -> Option<String> {
        let lines: Vec<String> =
            self.excess.iter().map(|excess| format!("{}: {excess}", excess.step)).collect();
        (!lines.is_empty()).then(|| lines.join("; "))
    }

    /// Returns the size of the summary in memory in bytes, without the overhead of the allocator.
    #[must_use]
    pub fn memory_len(&self) -> usize {
        size_of::<Self>().saturating_add(self.heap_len())
    }

    /// Replaces the records of exceeded limits for the step of this reply.
    pub(super) fn set_excess(&mut self, log: ExcessLog) {
        self.clear_excess(&[log.step()]);
        self.excess.extend(log.into_excess());
        self.excess.sort_unstable();
        self.excess.shrink_to_fit();
    }

    fn clear_excess(&mut self, steps: &[StepType]) {
        self.excess.retain(|excess| !steps.contains(&excess.step));
        self.excess.shrink_to_fit();
    }
}
