//! Setters that update a summary from the replies of an agent. Each setter replaces one part of the summary.

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
    /// A disk, network interface or route beyond a limit is omitted as a whole. Otherwise a disk could become eligible
    /// because only the reason against it was dropped.
    pub fn set_inventory(&mut self, report: &InventoryReport<'_>, virtual_interfaces: VirtualInterfaces) {
        let mut log = ExcessLog::new(StepType::Inventory);
        self.inventory = Some(Box::new(read_inventory(&mut log, report, virtual_interfaces)));
        self.set_excess(log);
    }

    /// Replaces the connectivity to other hosts.
    ///
    /// Results with an invalid host id or address are ignored: they cannot be about a host of the cluster. Several
    /// results about the same host are merged.
    pub fn set_connectivity(&mut self, report: &ConnectivityReport<'_>) {
        let mut log = ExcessLog::new(StepType::ConnectivityCheck);
        self.peers = Some(read_peers(&mut log, report));
        self.set_excess(log);
    }

    /// Replaces the unused addresses.
    ///
    /// Networks with more addresses than a /22 are omitted, because the service never asks for them. Addresses outside
    /// their network are omitted. Several entries for the same network are merged.
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

    /// Replaces the time servers and their states.
    pub fn set_time_sources(&mut self, report: &List<NtpSource<'_>>) {
        let mut log = ExcessLog::new(StepType::NtpSynchronizer);
        self.time_sources = Some(read_time_sources(&mut log, report));
        self.set_excess(log);
    }

    /// Replaces the results of DNS lookups.
    ///
    /// A result beyond a limit is omitted as a whole: without its addresses, the name would seem not to resolve.
    pub fn set_names(&mut self, report: &DomainReport<'_>) {
        let mut log = ExcessLog::new(StepType::DomainResolution);
        self.names = Some(read_names(&mut log, report));
        self.set_excess(log);
    }

    /// Replaces the verification results of virtual IP addresses.
    ///
    /// An entry with a result or a VIP type unknown to this version is omitted, as if the address was not checked. An
    /// entry without a result also means "not checked", and is stored.
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

    /// Replaces the DHCP leases of virtual IP addresses.
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
    /// As in the Assisted Installer, the first encrypted device of the config determines the method of disk encryption.
    ///
    /// # Errors
    ///
    /// Returns an error if the reply contains an invalid Ignition config.
    pub fn set_ignition_endpoint(&mut self, report: &ApiVipReport<'_>) -> Result<(), InvalidReply> {
        let mut log = ExcessLog::new(StepType::ApiVipConnectivityCheck);
        self.ignition_endpoint = Some(read_ignition_endpoint(&mut log, report)?);
        self.set_excess(log);
        Ok(())
    }

    /// Replaces the connectivity to the Tang servers. `result` is the report of the step, or the error output of a
    /// failed step.
    pub fn set_tang(&mut self, result: Result<&TangReport<'_>, &str>) {
        let mut log = ExcessLog::new(StepType::TangConnectivityCheck);
        self.tang = Some(read_tang(&mut log, result));
        self.set_excess(log);
    }

    /// Replaces the results of speed checks. `stored` is the JSON object with the results of all checked disks, by
    /// path, or an empty text.
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

    /// Replaces the availability of container images. `stored` is the JSON object with the results for all images, by
    /// name, or an empty text.
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
