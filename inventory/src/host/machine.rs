//! The inventory report: the hardware of a host, as its agent reports it in the reply of `inventory`.
//!
//! A report is parsed here and nowhere else: [`Machine::parse`] reads the text of an agent, [`Machine::from_stored`]
//! the text that is stored with a host.

use std::borrow::Cow;
use std::collections::BTreeSet;

use super::record::InstallationDisk;
use super::reported::{List, Text, read, reported, write};
use crate::error::Error;
use crate::id::HostId;

reported! {
    /// The hardware of a host.
    Machine<'a> {
        bmc_address: Text<'a>,
        bmc_v6address: Text<'a>,
        boot: Option<Boot<'a>>,
        cpu: Option<Cpu<'a>>,
        disks: List<Disk<'a>>,
        gpus: List<Gpu<'a>>,
        hostname: Text<'a>,
        interfaces: List<Interface<'a>>,
        memory: Option<Memory<'a>>,
        routes: List<Route<'a>>,
        system_vendor: Option<SystemVendor<'a>>,
        tpm_version: Text<'a>,
        truncation: Option<Truncation<'a>>,
    }

    /// Boot mode and boot device.
    Boot<'a> {
        command_line: Text<'a>,
        current_boot_mode: Text<'a>,
        device_type: Text<'a>,
        pxe_interface: Text<'a>,
        secure_boot_state: Text<'a>,
    }

    /// The processors.
    Cpu<'a> {
        architecture: Text<'a>,
        count: i64,
        flags: List<Text<'a>>,
        frequency: f64,
        model_name: Text<'a>,
    }

    /// A disk.
    Disk<'a> {
        bootable: bool,
        by_id: Text<'a>,
        by_path: Text<'a>,
        drive_type: Text<'a>,
        has_uuid: bool,
        hctl: Text<'a>,
        holders: Text<'a>,
        id: Text<'a>,
        installation_eligibility: Eligibility<'a>,
        io_perf: Option<DiskSpeed>,
        is_installation_media: bool,
        iscsi: Option<Iscsi<'a>>,
        model: Text<'a>,
        name: Text<'a>,
        #[serde(rename = "partitionTypes")]
        partition_types: Text<'a>,
        path: Text<'a>,
        removable: bool,
        serial: Text<'a>,
        size_bytes: i64,
        smart: Text<'a>,
        vendor: Text<'a>,
        wwn: Text<'a>,
    }

    /// Whether a disk can be the installation disk.
    Eligibility<'a> {
        eligible: bool,
        not_eligible_reasons: List<Text<'a>>,
    }

    /// Measured speed of a disk.
    DiskSpeed {
        sync_duration: i64,
    }

    /// iSCSI connection of a disk.
    Iscsi<'a> {
        host_ip_address: Text<'a>,
    }

    /// A GPU.
    Gpu<'a> {
        address: Text<'a>,
        device_id: Text<'a>,
        name: Text<'a>,
        vendor: Text<'a>,
        vendor_id: Text<'a>,
    }

    /// A network interface.
    Interface<'a> {
        biosdevname: Text<'a>,
        client_id: Text<'a>,
        flags: List<Text<'a>>,
        has_carrier: bool,
        ipv4_addresses: List<Text<'a>>,
        ipv6_addresses: List<Text<'a>>,
        mac_address: Text<'a>,
        mtu: i64,
        name: Text<'a>,
        product: Text<'a>,
        speed_mbps: i64,
        #[serde(rename = "type")]
        interface_type: Text<'a>,
        vendor: Text<'a>,
    }

    /// The memory.
    Memory<'a> {
        physical_bytes: i64,
        physical_bytes_method: Text<'a>,
        usable_bytes: i64,
    }

    /// A route.
    Route<'a> {
        destination: Text<'a>,
        family: i64,
        gateway: Text<'a>,
        interface: Text<'a>,
        metric: i64,
    }

    /// The manufacturer and the product.
    SystemVendor<'a> {
        manufacturer: Text<'a>,
        product_name: Text<'a>,
        serial_number: Text<'a>,
        #[serde(rename = "virtual")]
        is_virtual: bool,
    }

    /// How much the agent omitted from its report, and why.
    Truncation<'a> {
        reasons: List<Text<'a>>,
        #[serde(rename = "type")]
        kind: Text<'a>,
    }
}

/// The minimum size of an installation disk, in GB.
pub(crate) const MIN_DISK_GB: i64 = 100;

/// Maximum number of MAC addresses of one host that are stored for searches.
const MAX_MACS: usize = 256;

/// Bytes of a GB: disk sizes are in decimal units.
const GB: i64 = 1_000_000_000;

impl<'a> Machine<'a> {
    /// Parses the inventory report that an agent sends.
    pub(crate) fn parse(report: &'a str) -> Result<Self, Error> {
        read("inventory", report)
    }

    /// Parses the inventory report that is stored with a host; empty if the host has sent none.
    ///
    /// # Errors
    ///
    /// Returns an internal error if the stored text is not a report.
    pub(crate) fn from_stored(host: HostId, report: &'a str) -> Result<Self, Error> {
        if report.is_empty() {
            return Ok(Self::default());
        }
        serde_json::from_str(report).map_err(|error| {
            Error::broken(format_args!("the stored inventory report of host {host} is damaged: {error}"))
        })
    }

    /// Returns the text that is stored with the host.
    pub(crate) fn to_text(&self) -> Result<String, Error> {
        write("inventory", self)
    }

    /// Returns the IP addresses of all interfaces, in CIDR notation.
    pub(crate) fn addresses(&self) -> impl Iterator<Item = &str> {
        let lists = self.interfaces.iter().flat_map(|it| [&it.ipv4_addresses, &it.ipv6_addresses]);
        lists.flat_map(List::iter).map(|address| &**address)
    }

    /// Returns the valid hardware addresses of all interfaces, in lower case. Those of InfiniBand have 20 bytes.
    pub(crate) fn macs(&self) -> BTreeSet<String> {
        let is_octet = |octet: &str| octet.len() == 2 && octet.bytes().all(|byte| byte.is_ascii_hexdigit());
        let is_mac =
            |text: &&str| (6..=20).contains(&text.split(':').count()) && text.split(':').all(is_octet);
        let macs = self.interfaces.iter().map(|it| &*it.mac_address).filter(is_mac);
        macs.take(MAX_MACS).map(str::to_ascii_lowercase).collect()
    }

    /// Removes the interfaces that a cluster cannot use, and evaluates which disks are eligible for the installation.
    pub(crate) fn evaluate(&mut self) {
        // Old agents report no type, and only physical interfaces.
        self.interfaces.retain(|it| matches!(&*it.interface_type, "" | "physical" | "vlan" | "bond"));
        let architecture = self.cpu.as_ref().map_or("", |cpu| &cpu.architecture);
        for disk in self.disks.iter_mut() {
            disk.evaluate_eligibility(architecture);
        }
    }

    /// Returns the disks that are eligible for the installation.
    pub(crate) fn eligible_disks(&self) -> impl Iterator<Item = &Disk<'a>> {
        self.disks.iter().filter(|disk| disk.installation_eligibility.eligible)
    }

    /// Returns the installation disk: the chosen one if it is eligible, or else the best eligible one.
    pub(crate) fn installation_disk(&self, chosen: Option<&InstallationDisk>) -> Option<InstallationDisk> {
        let is_chosen = |disk: &&Disk<'_>| chosen.is_some_and(|chosen| disk.is_named(&chosen.id));
        let chosen = self.eligible_disks().find(is_chosen);
        chosen
            .or_else(|| self.eligible_disks().min_by_key(|disk| disk.rank()))
            .map(Disk::as_installation_disk)
    }

    /// Returns the ids of the disks that an installation formats, because the machine might boot from them.
    pub(crate) fn disks_to_format(&self) -> Vec<String> {
        let formatted = self.disks.iter().filter(|disk| {
            let is_mmc = disk.by_path.contains("mmcblk") || disk.name.starts_with("mmcblk");
            let is_excluded_type = matches!(&*disk.drive_type, "FC" | "iSCSI" | "LVM" | "Multipath");
            disk.bootable && !disk.removable && !is_mmc && !is_excluded_type && !disk.is_installation_media
        });
        formatted.map(|disk| disk.identity().into_owned()).collect()
    }
}

impl Disk<'_> {
    /// Returns the id of the disk, or its device path if the agent reports no id.
    pub(crate) fn identity(&self) -> Cow<'_, str> {
        if self.id.is_empty() { self.device_path() } else { Cow::Borrowed(&self.id) }
    }

    /// Returns the device path of the disk, such as `/dev/sda`.
    fn device_path(&self) -> Cow<'_, str> {
        if self.path.is_empty() { Cow::Owned(self.path_by_name()) } else { Cow::Borrowed(&self.path) }
    }

    fn path_by_name(&self) -> String {
        format!("/dev/{}", self.name)
    }

    /// Returns `true` if `name` is the disk's id, its `by-path` link or its device path.
    pub(crate) fn is_named(&self, name: &str) -> bool {
        !name.is_empty()
            && (self.identity() == name
                || self.by_path == name
                || self.device_path() == name
                || self.path_by_name() == name)
    }

    pub(crate) fn as_installation_disk(&self) -> InstallationDisk {
        InstallationDisk { id: self.identity().into_owned(), path: self.device_path().into_owned() }
    }

    /// Adds the reasons that make the disk ineligible to those of the agent.
    fn evaluate_eligibility(&mut self, architecture: &str) {
        let mut reasons = self.installation_eligibility.not_eligible_reasons.0.take().unwrap_or_default();
        if self.size_bytes < MIN_DISK_GB * GB {
            let (found, minimum) = (format_size(self.size_bytes), format_size(MIN_DISK_GB * GB));
            let reason = if found == minimum {
                let short = format_size((MIN_DISK_GB * GB).saturating_sub(self.size_bytes));
                format!(
                    "Disk is too small (disk only has {found}, but {minimum} are required) (short by {short})"
                )
            } else {
                format!("Disk is too small (disk only has {found}, but {minimum} are required)")
            };
            reasons.push(reason.into());
        }
        if !allowed_drive_types(architecture).any(|allowed| self.drive_type == allowed) {
            let allowed: Vec<_> = allowed_drive_types(architecture).collect();
            let (found, allowed) = (&self.drive_type, allowed.join(", "));
            reasons.push(format!("Drive type is {found}, it must be one of {allowed}.").into());
        }
        self.installation_eligibility =
            Eligibility { eligible: reasons.is_empty(), not_eligible_reasons: List(Some(reasons)) };
    }

    /// Returns the order of preference as installation disk, lowest first: bootable disks, then disks other than NVMe,
    /// then by drive type (HDD before SSD), then smaller disks.
    fn rank(&self) -> (bool, bool, &str, i64, &str) {
        (!self.bootable, self.name.starts_with("nvme"), &self.drive_type, self.size_bytes, &self.hctl)
    }
}

/// Returns the drive types that an installation disk can have.
fn allowed_drive_types(architecture: &str) -> impl Iterator<Item = &'static str> {
    let on_all = ["HDD", "SSD", "Multipath", "RAID", "iSCSI"];
    let others: &[&str] = match architecture {
        "x86_64" => &["FC"],
        "s390x" => &["FC", "ECKD (ESE)", "ECKD", "FBA"],
        _ => &[],
    };
    on_all.into_iter().chain(others.iter().copied())
}

/// Formats a size in decimal units, with at most three decimals, rounded up: `53.688 GB`.
fn format_size(bytes: i64) -> String {
    const UNITS: [(&str, i64); 4] = [("TB", 1_000_000_000_000), ("GB", GB), ("MB", 1_000_000), ("KB", 1000)];
    match UNITS.into_iter().find(|(_, unit)| bytes >= *unit) {
        Some((name, unit)) => {
            let thousandths = (i128::from(bytes) * 1000 + i128::from(unit) - 1) / i128::from(unit);
            let text = format!("{}.{:03}", thousandths / 1000, thousandths % 1000);
            format!("{} {name}", text.trim_end_matches('0').trim_end_matches('.'))
        }
        None => format!("{bytes} B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    fn report(disks: &str) -> String {
        format!(r#"{{"cpu": {{"architecture": "x86_64"}}, "disks": {disks}}}"#)
    }

    fn evaluated(report: &str) -> Machine<'_> {
        let mut machine = Machine::parse(report).unwrap();
        machine.evaluate();
        machine
    }

    #[test]
    fn small_disks_and_optical_drives_are_ineligible() {
        let report = report(
            r#"[{"id": "small", "drive_type": "SSD", "size_bytes": 99999999999},
                {"id": "dvd", "drive_type": "ODD", "size_bytes": 100000000000},
                {"id": "used", "drive_type": "HDD", "size_bytes": 100000000000,
                 "installation_eligibility": {"eligible": true, "not_eligible_reasons": ["It is mounted"]}},
                {"id": "good", "drive_type": "FC", "size_bytes": 100000000000}]"#,
        );
        let machine = evaluated(&report);
        let good: Vec<_> = machine.eligible_disks().map(Disk::identity).collect();
        assert_eq!(good, ["good"]);
        let reasons: Vec<_> = machine
            .disks
            .iter()
            .map(|disk| disk.installation_eligibility.not_eligible_reasons.clone())
            .collect();
        assert_eq!(
            reasons[0].0.as_deref().unwrap(),
            ["Disk is too small (disk only has 100 GB, but 100 GB are required) (short by 1 B)"]
        );
        assert_eq!(reasons[2].0.as_deref().unwrap(), ["It is mounted"]);
        assert_eq!(reasons[3].0.as_deref().unwrap(), [""; 0]);
    }

    #[test]
    fn installation_disk_is_the_chosen_one_or_the_best() {
        let report = report(
            r#"[{"id": "n", "name": "nvme0n1", "drive_type": "HDD", "size_bytes": 100000000000},
                {"id": "s", "name": "sdb", "drive_type": "SSD", "size_bytes": 100000000000},
                {"id": "h", "name": "sda", "drive_type": "HDD", "size_bytes": 200000000000},
                {"id": "g", "name": "sdc", "by_path": "by-path-g", "drive_type": "HDD", "size_bytes": 300000000000}]"#,
        );
        let machine = evaluated(&report);
        let best = machine.installation_disk(None).unwrap();
        assert_eq!((best.id.as_str(), best.path.as_str()), ("h", "/dev/sda"));
        for (name, id) in [("g", "g"), ("/dev/sdc", "g"), ("by-path-g", "g"), ("sdc", "h"), ("", "h")] {
            let chosen = InstallationDisk { id: name.to_owned(), path: String::new() };
            let found = machine.installation_disk(Some(&chosen)).unwrap();
            assert_eq!(found.id, id, "{name}");
        }
        let chosen = InstallationDisk { id: "g".to_owned(), path: String::new() };
        assert_eq!(machine.installation_disk(Some(&chosen)).unwrap().id, "g");
        let missing = InstallationDisk { id: "x".to_owned(), path: String::new() };
        assert_eq!(machine.installation_disk(Some(&missing)).unwrap().id, "h");
    }

    #[test]
    fn damaged_stored_report_is_an_internal_error() {
        let host = HostId::fresh();
        assert_eq!(Machine::from_stored(host, "").unwrap(), Machine::default());
        for text in ["{", "[]", r#"{"interfaces": "eth0"}"#, r#"{"interfaces": [{"ipv4_addresses": [1]}]}"#] {
            let error = Machine::from_stored(host, text).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Internal, "{text}");
            assert_eq!(Machine::parse(text).unwrap_err().kind(), ErrorKind::Invalid, "{text}");
        }
    }

    #[test]
    fn addresses_include_all_interfaces() {
        let text = r#"{"interfaces": [{"ipv4_addresses": ["192.0.2.1/24"], "ipv6_addresses": null}, {},
            {"ipv6_addresses": ["2001:db8::1/64", "fe80::1/64"]}]}"#;
        let machine = Machine::parse(text).unwrap();
        let text = machine.to_text().unwrap();
        let stored = Machine::from_stored(HostId::fresh(), &text).unwrap();
        assert_eq!(stored.addresses().collect::<Vec<_>>(), ["192.0.2.1/24", "2001:db8::1/64", "fe80::1/64"]);
    }

    #[test]
    fn extreme_disk_sizes_do_not_overflow() {
        let report = report(
            r#"[{"drive_type": "SSD", "size_bytes": 9223372036854775807},
                {"drive_type": "SSD", "size_bytes": -9223372036854775808}]"#,
        );
        let machine = evaluated(&report);
        assert_eq!(machine.eligible_disks().count(), 1);
    }
}
