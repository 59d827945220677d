//! The parts of a summary.

use std::net::IpAddr;

use assisted::HostId;
use assisted::cluster::VipVerification;
use assisted::step::VipType;
use ignition::Cidr;
use serde::{Deserialize, Serialize};

/// The hardware of a host.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct InventorySummary {
    /// Host name.
    pub hostname: Box<str>,
    /// CPU architecture, such as `x86_64`.
    pub architecture: Box<str>,
    /// Number of logical processors. `None`: the report has no processors.
    pub cpus: Option<i64>,
    /// Installed memory in bytes. `None`: the report has no memory.
    pub physical_bytes: Option<i64>,
    /// Memory that the kernel can use, in bytes.
    pub usable_bytes: i64,
    /// Whether the installed memory is that of `/proc/meminfo`, which excludes what the kernel reserves.
    pub memory_is_meminfo: bool,
    /// The manufacturer. `None`: the report has none.
    pub vendor: Option<VendorSummary>,
    /// Version of the TPM: `none`, `1.2` or `2.0`.
    pub tpm_version: Box<str>,
    /// Firmware mode: `uefi` or `bios`.
    pub boot_mode: Box<str>,
    /// State of Secure Boot: `Unknown`, `NotSupported`, `Enabled` or `Disabled`.
    pub secure_boot: Box<str>,
    /// Whether the root device of the running system is a disk.
    pub boots_from_disk: bool,
    /// Number of graphics cards, and their PCI ids as `vendor:device`.
    pub gpus: Vec<Box<str>>,
    /// Processor features that operators require: `vmx`, `svm` and the like.
    pub cpu_flags: Vec<Box<str>>,
    /// The usable network interfaces: physical ones, VLANs and bonds.
    pub nics: Vec<NicSummary>,
    /// The routes.
    pub routes: Vec<RouteSummary>,
    /// The disks, in the order of the report.
    pub disks: Vec<DiskSummary>,
    /// What the agent left out.
    pub truncation: Option<Truncation>,
}

/// The manufacturer of a machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct VendorSummary {
    /// Name of the manufacturer.
    pub manufacturer: Box<str>,
    /// Name of the product.
    pub product: Box<str>,
    /// Whether the host is a virtual machine.
    pub is_virtual: bool,
}

/// A network interface.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NicSummary {
    /// Name.
    pub name: Box<str>,
    /// MAC address, as reported.
    pub mac: Box<str>,
    /// Largest packet in bytes.
    pub mtu: i64,
    /// Speed of the link.
    pub speed_mbps: i64,
    /// Whether it has a link.
    pub has_carrier: bool,
    /// Addresses, each with the prefix length of its network: IPv4 before IPv6. Invalid ones are left out.
    pub addresses: Vec<Cidr>,
}

/// A route.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RouteSummary {
    /// Destination address; unspecified for a default route. `None`: invalid.
    pub destination: Option<IpAddr>,
    /// Address of the gateway. `None`: there is none, or it is invalid.
    pub gateway: Option<IpAddr>,
    /// Name of the interface.
    pub nic: Box<str>,
    /// Metric. The lowest is used first.
    pub metric: i64,
}

/// A disk.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DiskSummary {
    /// Id: that of the report, or else the device path.
    pub id: Box<str>,
    /// Path below `/dev/disk/by-path`.
    pub by_path: Box<str>,
    /// Name of the block device, such as `sda`.
    pub name: Box<str>,
    /// Type of the drive, such as `HDD`, `SSD` or `Multipath`.
    pub drive_type: Box<str>,
    /// Size in bytes.
    pub size_bytes: i64,
    /// SCSI address.
    pub hctl: Box<str>,
    /// Block devices that use the disk, separated by commas.
    pub holders: Box<str>,
    /// Address of the host for an iSCSI disk, as reported. Empty: none.
    pub iscsi_host_address: Box<str>,
    /// Whether it has a boot sector.
    pub bootable: bool,
    /// Whether it is removable.
    pub removable: bool,
    /// Whether it is the boot media.
    pub is_installation_media: bool,
    /// Whether it reports a unique id.
    pub has_uuid: bool,
    /// Model and serial number, for texts.
    pub model: Box<str>,
    /// Serial number, for texts.
    pub serial: Box<str>,
    /// The agent's reasons against an installation.
    pub agent_reasons: Vec<Box<str>>,
}

/// What an agent left out of its inventory, because it was too large.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Truncation {
    /// Extent: `partial` or `full`.
    pub extent: Box<str>,
    /// Reasons, joined by `; `.
    pub reasons: Box<str>,
}

/// Connectivity to the other hosts of the cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Peers {
    /// The hosts, by id.
    pub hosts: Vec<PeerSummary>,
    /// Addresses that several MAC addresses answer for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub collisions: Vec<AddressCollision>,
}

/// Connectivity to one host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PeerSummary {
    /// The host.
    pub host: HostId,
    /// Its addresses that were checked.
    #[serde(default)]
    pub addresses: Vec<PeerAddress>,
    /// Longest average round-trip time, in milliseconds. `None`: not measured.
    #[serde(default)]
    pub rtt_ms: Option<f64>,
    /// Highest share of lost packets, in percent. `None`: not measured.
    #[serde(default)]
    pub loss_percent: Option<f64>,
    /// Addresses that large packets do not reach.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub broken_mtu: Vec<BrokenMtu>,
    /// Whether large packets were checked.
    #[serde(default)]
    pub has_mtu: bool,
}

/// Whether an address of another host is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeerAddress {
    /// The address.
    pub address: IpAddr,
    /// It is reached in the same network segment, and the MAC address is that of the host.
    pub on_link: bool,
    /// It is reached over IP.
    pub routed: bool,
}

/// An address that large packets do not reach.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BrokenMtu {
    /// Interface that sent the packets.
    pub nic: Box<str>,
    /// The address.
    pub address: IpAddr,
}

/// An address that several MAC addresses answer for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AddressCollision {
    /// The address.
    pub address: IpAddr,
    /// The MAC addresses, sorted.
    pub macs: Vec<Box<str>>,
}

/// Unused addresses of a network. At most those of a /22 are kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FreeAddresses {
    /// The network.
    pub network: Cidr,
    /// One bit for each address of the network, in order, from the highest bit of each byte.
    #[serde(with = "super::bits")]
    pub bits: Vec<u8>,
}

/// A time server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TimeSource {
    /// Name or address.
    pub name: Box<str>,
    /// State, such as `synced`.
    pub state: Box<str>,
}

/// Result of a DNS lookup.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ResolvedName {
    /// The name.
    pub name: Box<str>,
    /// Addresses, as reported: IPv4 before IPv6.
    pub addresses: Vec<Box<str>>,
    /// Canonical names.
    pub cnames: Vec<Box<str>>,
}

/// Result of the check of a virtual IP address.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerifiedVip {
    /// The address.
    pub address: IpAddr,
    /// Its use.
    pub vip_type: VipType,
    /// The result.
    pub verification: VipVerification,
}

/// Leases of virtual IP addresses from a DHCP server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VipLeases {
    /// Address of the API.
    pub api: IpAddr,
    /// Address of the ingress.
    pub ingress: IpAddr,
}

/// Download of the Ignition config of the cluster that the host joins.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct IgnitionEndpoint {
    /// Whether the config was downloaded.
    pub is_success: bool,
    /// URL of the config, without user name and password.
    pub url: Box<str>,
    /// Reason for a failure.
    pub error: Box<str>,
    /// Tang servers of the config's disk encryption, as the argument of the step names them: JSON. Empty: none.
    pub tang_servers: Box<str>,
    /// Whether the config encrypts disks: `tpm2`, `tang`, `unknown`; empty if it does not.
    pub disk_encryption: Box<str>,
    /// Whether the config contains manifests of managed networking.
    pub has_managed_networking: bool,
}

/// Connectivity to the Tang servers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TangServers {
    /// Whether all servers answered.
    pub is_success: bool,
    /// Text of a failure.
    pub error: Box<str>,
}

/// Result of the speed check of a disk.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DiskSpeed {
    /// Path or id of the disk, as the step named it.
    pub path: Box<str>,
    /// Exit code of the check.
    pub exit_code: i64,
    /// Time to write and sync a block, in milliseconds.
    pub speed_ms: i64,
}

/// Availability of a container image.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ImageAvailability {
    /// Reference of the image.
    pub name: Box<str>,
    /// Whether it can be used: downloaded, and not too slowly.
    pub is_available: bool,
}

/// A part of a report that exceeds its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Excess {
    /// The part.
    pub part: ExcessPart,
    /// Number of items in the report.
    pub found: usize,
    /// Number of items in the summary.
    pub kept: usize,
}

/// A part of a report whose number of items is limited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ExcessPart {
    /// Disks.
    Disks,
    /// Network interfaces.
    Nics,
    /// Addresses of a network interface.
    Addresses,
    /// Routes.
    Routes,
    /// Graphics cards.
    Gpus,
    /// Hosts in a connectivity report.
    Peers,
    /// Networks with unused addresses.
    Networks,
    /// Time servers.
    TimeSources,
    /// Names in a report of DNS lookups.
    Names,
    /// Characters of a text.
    Text,
}
