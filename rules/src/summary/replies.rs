//! Setters of a summary: each replaces the part that a reply is about.

use assisted::List;
use assisted::connectivity::ConnectivityReport;
use assisted::inventory_report::InventoryReport;
use assisted::reply::{
    ApiVipReport, DhcpReport, DomainReport, FreeNetwork, NtpSource, TangReport, VerifiedVip,
};
use assisted::step::StepType;

use super::connectivity::read_peers;
use super::error::InvalidReply;
use super::excess::ExcessLog;
use super::free_addresses::read_free_addresses;
use super::host_summary::HostSummary;
use super::ignition_endpoint::read_ignition_endpoint;
use super::inventory::{VirtualInterfaces, read_inventory};
use super::names::read_names;
use super::preparation::{read_disk_speeds, read_images};
use super::tang::read_tang;
use super::time_sources::read_time_sources;
use super::vips::{read_leases, read_vips};

impl HostSummary {
    /// Replaces the hardware.
    ///
    /// A disk, network interface or route that exceeds a limit is left out with all its values, so that no disk is
    /// eligible because a reason against it was lost.
    pub fn set_inventory(&mut self, report: &InventoryReport<'_>, virtual_interfaces: VirtualInterfaces) {
        let mut log = ExcessLog::new(StepType::Inventory);
        self.inventory = Some(Box::new(read_inventory(&mut log, report, virtual_interfaces)));
        self.set_excess(log);
    }

    /// Replaces the connectivity to other hosts.
    ///
    /// Results whose host id or address is invalid are left out: they cannot be about a host of the cluster. Several
    /// results about one host are taken together.
    pub fn set_connectivity(&mut self, report: &ConnectivityReport<'_>) {
        let mut log = ExcessLog::new(StepType::ConnectivityCheck);
        self.peers = Some(read_peers(&mut log, report));
        self.set_excess(log);
    }

    /// Replaces the unused addresses.
    ///
    /// Networks with more addresses than a /22 are left out: agents are not asked for them. Addresses outside of their
    /// network are left out, and several entries for one network are taken together.
    ///
    /// # Errors
    ///
    /// Returns an error if the list is empty, or if a network or an address is invalid.
    pub fn set_free_addresses(&mut self, report: &List<FreeNetwork<'_>>) -> Result<(), InvalidReply> {
        let mut log = ExcessLog::new(StepType::FreeNetworkAddresses);
        self.free_addresses = read_free_addresses(&mut log, report)?;
        self.set_excess(log);
        Ok(())
    }

    /// Replaces the time servers.
    pub fn set_time_sources(&mut self, report: &List<NtpSource<'_>>) {
        let mut log = ExcessLog::new(StepType::NtpSynchronizer);
        self.time_sources = Some(read_time_sources(&mut log, report));
        self.set_excess(log);
    }

    /// Replaces the results of DNS lookups.
    ///
    /// A result that exceeds a limit is left out as a whole: without its addresses, the name would seem to have none.
    pub fn set_names(&mut self, report: &DomainReport<'_>) {
        let mut log = ExcessLog::new(StepType::DomainResolution);
        self.names = Some(read_names(&mut log, report));
        self.set_excess(log);
    }

    /// Replaces the results of the checks of virtual IP addresses.
    ///
    /// An entry with a result or a use that this version does not know is left out, as if the address was not checked.
    /// An absent result means that as well, and is kept.
    ///
    /// # Errors
    ///
    /// Returns an error if an address is invalid.
    pub fn set_vips(&mut self, report: &List<VerifiedVip<'_>>) -> Result<(), InvalidReply> {
        let mut log = ExcessLog::new(StepType::VerifyVips);
        self.vips = read_vips(&mut log, report)?;
        self.set_excess(log);
        Ok(())
    }

    /// Replaces the leases of virtual IP addresses.
    ///
    /// # Errors
    ///
    /// Returns an error if an address is invalid.
    pub fn set_leases(&mut self, report: &DhcpReport<'_>) -> Result<(), InvalidReply> {
        self.leases = Some(read_leases(StepType::DhcpLeaseAllocate, report)?);
        Ok(())
    }

    /// Replaces the download of the Ignition config.
    ///
    /// The first encrypted device of the config decides on the disk encryption, as in the Assisted Installer.
    ///
    /// # Errors
    ///
    /// Returns an error if the reply contains an Ignition config that is not valid.
    pub fn set_ignition_endpoint(&mut self, report: &ApiVipReport<'_>) -> Result<(), InvalidReply> {
        let mut log = ExcessLog::new(StepType::ApiVipConnectivityCheck);
        self.ignition_endpoint = Some(read_ignition_endpoint(&mut log, report)?);
        self.set_excess(log);
        Ok(())
    }

    /// Replaces the connectivity to the Tang servers: the report, or the error output of a step that failed.
    pub fn set_tang(&mut self, result: Result<&TangReport<'_>, &str>) {
        let mut log = ExcessLog::new(StepType::TangConnectivityCheck);
        self.tang = Some(read_tang(&mut log, result));
        self.set_excess(log);
    }

    /// Replaces the results of speed checks. The text is the stored object of all results, by path; empty: none.
    ///
    /// # Errors
    ///
    /// Returns an error if the text is not such an object.
    pub fn set_disk_speeds(&mut self, stored: &str) -> Result<(), InvalidReply> {
        let mut log = ExcessLog::new(StepType::InstallationDiskSpeedCheck);
        self.disk_speeds = read_disk_speeds(&mut log, stored)?;
        self.set_excess(log);
        Ok(())
    }

    /// Replaces the availability of container images. The text is the stored object of all results, by name; empty:
    /// none.
    ///
    /// # Errors
    ///
    /// Returns an error if the text is not such an object.
    pub fn set_images(&mut self, stored: &str) -> Result<(), InvalidReply> {
        let mut log = ExcessLog::new(StepType::ContainerImageAvailability);
        self.images = read_images(&mut log, stored)?;
        self.set_excess(log);
        Ok(())
    }
}
