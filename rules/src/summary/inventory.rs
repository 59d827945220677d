//! The hardware of a host, from the agent's reply to `inventory`.

use std::net::IpAddr;

use assisted::inventory_report::{Cpu, Disk, Gpu, Interface, InventoryReport, Memory, Route};
use assisted::{List, Text};
use ignition::Cidr;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::compact::{compact, exact};
use super::excess::{ExcessLog, ExcessPart, ListLimit};
use super::limits::{
    MAX_ADDRESSES, MAX_DISK_BYTES, MAX_DISKS, MAX_ERROR_TEXT, MAX_GPUS, MAX_MAC, MAX_NIC_NAME, MAX_NICS,
    MAX_REASONS, MAX_ROUTES, MAX_TEXT,
};
use super::memory::heap_len;

const DISKS: ListLimit = ListLimit::new(ExcessPart::Disks, MAX_DISKS).with_heap_bytes(MAX_DISK_BYTES);
const REASONS: ListLimit = ListLimit::new(ExcessPart::Reasons, MAX_REASONS);
const NICS: ListLimit = ListLimit::new(ExcessPart::Nics, MAX_NICS);
const ADDRESSES: ListLimit = ListLimit::new(ExcessPart::Addresses, MAX_ADDRESSES);
const ROUTES: ListLimit = ListLimit::new(ExcessPart::Routes, MAX_ROUTES);
const GPUS: ListLimit = ListLimit::new(ExcessPart::Gpus, MAX_GPUS);

/// The processor features that operators and confidential computing require.
const CPU_FLAGS: [&str; 7] = ["vmx", "svm", "sev", "sev_es", "sev_snp", "tdx_guest", "tdx_host_platform"];

/// The treatment of network interfaces that exist only in software, such as bridges, in a summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VirtualInterfaces {
    /// Include only physical interfaces, VLANs and bonds.
    Drop,
    /// Include all interfaces.
    Keep,
}

compact! {
    /// The hardware of a host.
    InventorySummary {
        /// Host name that the operating system reports.
        hostname: Box<str>,
        /// CPU architecture, such as `x86_64`.
        architecture: Box<str>,
        /// Number of logical processors. `None` if the report has no processors.
        cpus: Option<i64>,
        /// Installed memory in bytes. `None` if the report has no memory.
        physical_bytes: Option<i64>,
        /// Memory that the kernel can use, in bytes.
        usable_bytes: i64,
        /// Whether `physical_bytes` comes from `/proc/meminfo`, which excludes memory reserved by the kernel.
        memory_is_meminfo: bool,
        /// Manufacturer and product. `None` if the report does not contain them.
        vendor: Option<VendorSummary>,
        /// Version of the TPM: `none`, `1.2` or `2.0`.
        tpm_version: Box<str>,
        /// Firmware mode: `uefi` or `bios`.
        boot_mode: Box<str>,
        /// State of Secure Boot: `Unknown`, `NotSupported`, `Enabled` or `Disabled`.
        secure_boot: Box<str>,
        /// Whether the root device of the running system is a disk.
        boots_from_disk: bool,
        /// PCI ids of the graphics cards, as `vendor:device`.
        #[serde(deserialize_with = "exact")]
        gpus: Vec<Box<str>>,
        /// Processor features that operators require, such as `vmx` and `svm`.
        #[serde(deserialize_with = "exact")]
        cpu_flags: Vec<Box<str>>,
        /// The network interfaces of the host, without the interfaces that [`VirtualInterfaces`] excludes.
        #[serde(deserialize_with = "exact")]
        nics: Vec<NicSummary>,
        /// The routes of all address families.
        #[serde(deserialize_with = "exact")]
        routes: Vec<RouteSummary>,
        /// The disks, in the order of the report.
        #[serde(deserialize_with = "exact")]
        disks: Vec<DiskSummary>,
        /// The parts that the agent omitted because its report was too large. `None` if the report is complete.
        truncation: Option<Truncation>,
    }

    /// The manufacturer and the product name of a machine.
    #[derive(Eq)]
    VendorSummary {
        /// Name of the manufacturer.
        manufacturer: Box<str>,
        /// Name of the product.
        product: Box<str>,
        /// Whether the host is a virtual machine.
        #[serde(rename = "virtual")]
        is_virtual: bool,
    }

    /// A network interface.
    #[derive(Eq)]
    NicSummary {
        /// Name of the interface, such as `eth0`.
        name: Box<str>,
        /// MAC address, as reported.
        mac: Box<str>,
        /// Maximum transmission unit in bytes.
        mtu: i64,
        /// Speed of the link in megabits per second.
        #[serde(rename = "speed")]
        speed_mbps: i64,
        /// Whether the interface has a carrier signal.
        #[serde(rename = "carrier")]
        has_carrier: bool,
        /// Addresses with the prefix length of their network, IPv4 before IPv6. Invalid addresses are omitted.
        #[serde(rename = "ips", deserialize_with = "exact")]
        addresses: Vec<Cidr>,
    }

    /// A disk of a host.
    #[derive(Eq)]
    DiskSummary {
        /// The id in the report, or the device path if the report has no id.
        id: Box<str>,
        /// Path of its link below `/dev/disk/by-path`.
        by_path: Box<str>,
        /// Name of the block device, such as `sda`.
        name: Box<str>,
        /// Drive type, such as `HDD`, `SSD` or `Multipath`.
        #[serde(rename = "type")]
        drive_type: Box<str>,
        /// Size in bytes.
        #[serde(rename = "size")]
        size_bytes: i64,
        /// SCSI address (host, channel, target and LUN).
        hctl: Box<str>,
        /// Names of the block devices that use the disk, separated by commas.
        holders: Box<str>,
        /// IP address that the host uses to reach an iSCSI disk, as reported. Empty for other disks.
        #[serde(rename = "iscsi")]
        iscsi_host_address: Box<str>,
        /// Whether the disk has a boot sector.
        bootable: bool,
        /// Whether the disk is removable.
        removable: bool,
        /// Whether the host booted the discovery image from this disk.
        #[serde(rename = "installation_media")]
        is_installation_media: bool,
        /// Whether the disk reports a unique id.
        #[serde(rename = "uuid")]
        has_uuid: bool,
        /// Model name, used only in messages.
        model: Box<str>,
        /// Serial number, used only in messages.
        serial: Box<str>,
        /// The reasons in the report why the disk is not eligible. Usually the agent's own; a stored report may also
        /// contain reasons of the service.
        #[serde(rename = "reasons", deserialize_with = "exact")]
        agent_reasons: Vec<Box<str>>,
    }

    /// The parts that an agent omitted from its inventory report because the report was too large.
    #[derive(Eq)]
    Truncation {
        /// Extent of the omission: `partial` or `full`.
        extent: Box<str>,
        /// Reasons of the agent, joined by `; `.
        reasons: Box<str>,
    }
}

/// A route of a host. In JSON, a list of its values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RouteSummary {
    /// Destination address. `0.0.0.0` or `::` for a default route, `None` if invalid.
    pub destination: Option<IpAddr>,
    /// Address of the gateway. `None` if absent or invalid.
    pub gateway: Option<IpAddr>,
    /// Name of the network interface.
    pub nic: Box<str>,
    /// Metric of the route. The route with the lowest metric has precedence.
    pub metric: i64,
}
heap_len!(RouteSummary { destination, gateway, nic, metric });

impl Serialize for RouteSummary {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (self.destination, self.gateway, &self.nic, self.metric).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for RouteSummary {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (destination, gateway, nic, metric) = Deserialize::deserialize(deserializer)?;
        Ok(Self { destination, gateway, nic, metric })
    }
}

/// Converts an inventory report into a summary.
pub(super) fn read_inventory(
    log: &mut ExcessLog,
    report: &InventoryReport<'_>,
    virtual_interfaces: VirtualInterfaces,
) -> InventorySummary {
    let cpu = report.cpu.as_ref();
    let memory = report.memory.as_ref();
    let boot = report.boot.as_ref();
    let nics = report.interfaces.iter().filter(|nic| is_kept(nic, virtual_interfaces));
    let vendor = report.system_vendor.as_ref().map(|vendor| VendorSummary {
        manufacturer: log.text(&vendor.manufacturer, MAX_TEXT),
        product: log.text(&vendor.product_name, MAX_TEXT),
        is_virtual: vendor.is_virtual,
    });
    InventorySummary {
        hostname: log.text(&report.hostname, MAX_TEXT),
        architecture: log.text(cpu.map_or("", |cpu| &cpu.architecture), MAX_TEXT),
        cpus: cpu.map(|cpu| cpu.count),
        physical_bytes: memory.map(|memory| memory.physical_bytes),
        usable_bytes: memory.map_or(0, |memory| memory.usable_bytes),
        memory_is_meminfo: memory.is_some_and(is_meminfo),
        vendor,
        tpm_version: log.text(&report.tpm_version, MAX_TEXT),
        boot_mode: log.text(boot.map_or("", |boot| &boot.current_boot_mode), MAX_TEXT),
        secure_boot: log.text(boot.map_or("", |boot| &boot.secure_boot_state), MAX_TEXT),
        boots_from_disk: boot.is_some_and(|boot| boot.device_type == "persistent"),
        gpus: log.list(GPUS, report.gpus.iter(), gpu),
        cpu_flags: cpu.map_or_else(Vec::new, cpu_flags),
        nics: log.list(NICS, nics, nic),
        routes: log.list(ROUTES, report.routes.iter(), route),
        disks: log.list(DISKS, report.disks.iter(), disk),
        truncation: report.truncation.as_ref().map(|truncation| Truncation {
            extent: log.text(&truncation.kind, MAX_TEXT),
            reasons: joined(log, &truncation.reasons),
        }),
    }
}

fn is_meminfo(memory: &Memory<'_>) -> bool {
    memory.physical_bytes_method == "meminfo"
}

/// Returns `true` if the summary includes the interface. Old agents report only physical interfaces, without a type.
fn is_kept(nic: &Interface<'_>, virtual_interfaces: VirtualInterfaces) -> bool {
    virtual_interfaces == VirtualInterfaces::Keep
        || matches!(&*nic.interface_type, "" | "physical" | "vlan" | "bond")
}

fn cpu_flags(cpu: &Cpu<'_>) -> Vec<Box<str>> {
    let mut flags: Vec<&str> =
        cpu.flags.iter().map(Text::as_str).filter(|flag| CPU_FLAGS.contains(flag)).collect();
    flags.sort_unstable();
    flags.dedup();
    let mut flags: Vec<Box<str>> = flags.into_iter().map(Box::from).collect();
    flags.shrink_to_fit();
    flags
}

/// Joins the reasons and truncates the result to [`MAX_ERROR_TEXT`] bytes.
fn joined(log: &mut ExcessLog, reasons: &List<Text<'_>>) -> Box<str> {
    let mut text = String::new();
    for reason in reasons.iter() {
        if !text.is_empty() {
            text.push_str("; ");
        }
        text.push_str(reason);
    }
    log.text(&text, MAX_ERROR_TEXT)
}

fn gpu(log: &mut ExcessLog, gpu: &Gpu<'_>) -> Box<str> {
    log.text(&format!("{}:{}", gpu.vendor_id, gpu.device_id), MAX_TEXT)
}

fn nic(log: &mut ExcessLog, nic: &Interface<'_>) -> NicSummary {
    let addresses = |texts: &List<Text<'_>>, is_family: fn(&IpAddr) -> bool| -> Vec<Cidr> {
        let addresses = texts.iter().filter_map(|text| Cidr::parse(text));
        addresses.filter(|address| is_family(&address.address())).collect()
    };
    let ipv4 = addresses(&nic.ipv4_addresses, IpAddr::is_ipv4);
    let ipv6 = addresses(&nic.ipv6_addresses, IpAddr::is_ipv6);
    NicSummary {
        name: log.text(&nic.name, MAX_NIC_NAME),
        mac: log.text(&nic.mac_address, MAX_MAC),
        mtu: nic.mtu,
        speed_mbps: nic.speed_mbps,
        has_carrier: nic.has_carrier,
        addresses: log.list(ADDRESSES, ipv4.into_iter().chain(ipv6), |_, address| address),
    }
}

fn route(log: &mut ExcessLog, route: &Route<'_>) -> RouteSummary {
    RouteSummary {
        destination: route.destination.parse().ok(),
        gateway: route.gateway.parse().ok(),
        nic: log.text(&route.interface, MAX_NIC_NAME),
        metric: route.metric,
    }
}

fn disk(log: &mut ExcessLog, disk: &Disk<'_>) -> DiskSummary {
    let reasons = &disk.installation_eligibility.not_eligible_reasons;
    DiskSummary {
        id: disk_id(log, disk),
        by_path: log.text(&disk.by_path, MAX_TEXT),
        name: log.text(&disk.name, MAX_TEXT),
        drive_type: log.text(&disk.drive_type, MAX_TEXT),
        size_bytes: disk.size_bytes,
        hctl: log.text(&disk.hctl, MAX_TEXT),
        holders: log.comma_separated(&disk.holders, MAX_TEXT),
        iscsi_host_address: log
            .text(disk.iscsi.as_ref().map_or("", |iscsi| &iscsi.host_ip_address), MAX_TEXT),
        bootable: disk.bootable,
        removable: disk.removable,
        is_installation_media: disk.is_installation_media,
        has_uuid: disk.has_uuid,
        model: log.text(&disk.model, MAX_TEXT),
        serial: log.text(&disk.serial, MAX_TEXT),
        agent_reasons: log.list(REASONS, reasons.iter(), |log, reason| log.text(reason, MAX_TEXT)),
    }
}

fn disk_id(log: &mut ExcessLog, disk: &Disk<'_>) -> Box<str> {
    match (&*disk.id, &*disk.path) {
        ("", "") => log.text(&format!("/dev/{}", disk.name), MAX_TEXT),
        ("", path) => log.text(path, MAX_TEXT),
        (id, _) => log.text(id, MAX_TEXT),
    }
}

#[cfg(test)]
mod tests {
    use assisted::step::StepType;

    use super::*;

    fn summarized(report: &str, virtual_interfaces: VirtualInterfaces) -> InventorySummary {
        let mut log = ExcessLog::new(StepType::Inventory);
        read_inventory(&mut log, &serde_json::from_str(report).unwrap(), virtual_interfaces)
    }

    #[test]
    fn virtual_interfaces_are_kept_only_on_request() {
        let report = r#"{"interfaces": [{"name": "a"}, {"name": "b", "type": "bridge"}, {"name": "c", "type": "bond"},
            {"name": "d", "type": "vlan"}, {"name": "e", "type": "physical"}, {"name": "f", "type": "device"}]}"#;
        let names = |virtual_interfaces| -> String {
            summarized(report, virtual_interfaces).nics.iter().map(|nic| &*nic.name).collect()
        };
        assert_eq!(names(VirtualInterfaces::Drop), "acde");
        assert_eq!(names(VirtualInterfaces::Keep), "abcdef");
    }

    #[test]
    fn cpu_flags_that_no_operator_requires_are_dropped() {
        let report = r#"{"cpu": {"flags": ["vmx", "fpu", "svm", "VMX", "vmx", "sev_snp"]}}"#;
        let flags = summarized(report, VirtualInterfaces::Drop).cpu_flags;
        assert_eq!(flags.iter().map(|flag| &**flag).collect::<Vec<_>>(), ["sev_snp", "svm", "vmx"]);
    }

    #[test]
    fn absent_processors_and_memory_stay_absent() {
        let absent = summarized("{}", VirtualInterfaces::Drop);
        assert_eq!((absent.cpus, absent.physical_bytes, absent.vendor), (None, None, None));
        let empty = summarized(r#"{"cpu": {}, "memory": {}, "system_vendor": {}}"#, VirtualInterfaces::Drop);
        assert_eq!((empty.cpus, empty.physical_bytes), (Some(0), Some(0)));
        assert_eq!(empty.vendor, Some(VendorSummary::default()));
    }
}
