//! The inventory in the status of an Agent.
//!
//! Names differ from the inventory report of the REST API, which uses snake case. Zero values are omitted, as upstream
//! does: queries of AgentClassifications see `null`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::timestamp::Timestamp;
use super::wire::{nullable, zero};

/// The hardware of a host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct AgentInventory {
    /// Time of the inventory report. Not written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub report_time: Option<Timestamp>,
    /// Discovered hostname.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "zero")]
    pub hostname: String,
    /// IPv4 address of the BMC.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "zero")]
    pub bmc_address: String,
    /// IPv6 address of the BMC.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "zero")]
    pub bmc_v6_address: String,
    /// Memory.
    #[serde(deserialize_with = "nullable")]
    pub memory: InventoryMemory,
    /// CPU.
    #[serde(deserialize_with = "nullable")]
    pub cpu: InventoryCpu,
    /// NICs.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "zero")]
    pub interfaces: Vec<InventoryInterface>,
    /// Disks.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "zero")]
    pub disks: Vec<InventoryDisk>,
    /// Boot of the discovery image.
    #[serde(deserialize_with = "nullable")]
    pub boot: InventoryBoot,
    /// Manufacturer and product.
    #[serde(deserialize_with = "nullable")]
    pub system_vendor: InventorySystemVendor,
    /// GPUs.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "zero")]
    pub gpus: Vec<InventoryGpu>,
}

/// The memory of a host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct InventoryMemory {
    /// Installed memory.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "zero")]
    pub physical_bytes: i64,
    /// Memory that the kernel can use.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "zero")]
    pub usable_bytes: i64,
}

/// The CPU of a host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct InventoryCpu {
    /// Number of logical CPUs.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "zero")]
    pub count: i64,
    /// Clock rate, without the fraction.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "zero")]
    pub clock_megahertz: i64,
    /// Features of the CPU.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "zero")]
    pub flags: Vec<String>,
    /// Name of the model.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "zero")]
    pub model_name: String,
    /// Architecture.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "zero")]
    pub architecture: String,
}

/// A NIC of a host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["flags", "ipV4Addresses", "ipV6Addresses"]))]
pub struct InventoryInterface {
    /// Name of the interface.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "zero")]
    pub name: String,
    /// MAC address.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "zero")]
    pub mac_address: String,
    /// IPv4 addresses with prefix length. Serialised even if empty.
    #[serde(rename = "ipV4Addresses", deserialize_with = "nullable")]
    pub ip_v4_addresses: Vec<String>,
    /// IPv6 addresses with prefix length. Serialised even if empty.
    #[serde(rename = "ipV6Addresses", deserialize_with = "nullable")]
    pub ip_v6_addresses: Vec<String>,
    /// Flags of the interface. Serialised even if empty.
    #[serde(deserialize_with = "nullable")]
    pub flags: Vec<String>,
    /// The link is up.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "zero")]
    pub has_carrier: bool,
    /// Maximum transmission unit.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "zero")]
    pub mtu: i64,
    /// Speed of the link.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "zero")]
    pub speed_mbps: i64,
    /// Vendor of the NIC.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "zero")]
    pub vendor: String,
    /// Product of the NIC.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "zero")]
    pub product: String,
    /// Name of the NIC in the firmware.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "zero")]
    pub bios_dev_name: String,
    /// DHCP client id.
    #[serde(rename = "clientID", deserialize_with = "nullable", skip_serializing_if = "zero")]
    pub client_id: String,
}

/// A disk of a host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["id"]))]
pub struct InventoryDisk {
    /// Id for `installation_disk_id`.
    #[serde(deserialize_with = "nullable")]
    pub id: String,
    /// Name of the device.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "zero")]
    pub name: String,
    /// Path of the device.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "zero")]
    pub path: String,
    /// Link in `/dev/disk/by-path`.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "zero")]
    pub by_path: String,
    /// Link in `/dev/disk/by-id`.
    #[serde(rename = "byID", deserialize_with = "nullable", skip_serializing_if = "zero")]
    pub by_id: String,
    /// Type, such as `SSD` or `HDD`.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "zero")]
    pub drive_type: String,
    /// Vendor.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "zero")]
    pub vendor: String,
    /// Model.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "zero")]
    pub model: String,
    /// Serial number.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "zero")]
    pub serial: String,
    /// World wide name.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "zero")]
    pub wwn: String,
    /// SCSI address.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "zero")]
    pub hctl: String,
    /// Capacity.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "zero")]
    pub size_bytes: i64,
    /// The disk has a boot loader.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "zero")]
    pub bootable: bool,
    /// Output of `smartctl` as JSON.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "zero")]
    pub smart: String,
    /// Eligibility as installation disk.
    #[serde(deserialize_with = "nullable")]
    pub installation_eligibility: InstallationEligibility,
    /// Measured speed.
    #[serde(deserialize_with = "nullable")]
    pub io_perf: IoPerformance,
}

/// The eligibility of a disk as installation disk.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["notEligibleReasons"]))]
pub struct InstallationEligibility {
    /// The disk is eligible.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "zero")]
    pub eligible: bool,
    /// Reasons why the disk is not eligible. Serialised even if empty.
    #[serde(deserialize_with = "nullable")]
    pub not_eligible_reasons: Vec<String>,
}

/// The measured speed of a disk.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct IoPerformance {
    /// 99th percentile of the duration of `fsync`.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "zero")]
    pub sync_duration_milliseconds: i64,
}

/// The boot of the discovery image on a host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct InventoryBoot {
    /// `uefi` or `bios`.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "zero")]
    pub current_boot_mode: String,
    /// Interface of a network boot.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "zero")]
    pub pxe_interface: String,
    /// Type of the boot device.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "zero")]
    pub device_type: String,
}

/// The manufacturer and product of a host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct InventorySystemVendor {
    /// Serial number.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "zero")]
    pub serial_number: String,
    /// Name of the product.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "zero")]
    pub product_name: String,
    /// Name of the manufacturer.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "zero")]
    pub manufacturer: String,
    /// The host is a virtual machine.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "zero")]
    pub r#virtual: bool,
}

/// A GPU of a host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct InventoryGpu {
    /// PCI address.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "zero")]
    pub address: String,
    /// PCI device id.
    #[serde(rename = "deviceID", deserialize_with = "nullable", skip_serializing_if = "zero")]
    pub device_id: String,
    /// Name of the device.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "zero")]
    pub name: String,
    /// Name of the vendor.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "zero")]
    pub vendor: String,
    /// PCI vendor id.
    #[serde(rename = "vendorID", deserialize_with = "nullable", skip_serializing_if = "zero")]
    pub vendor_id: String,
}
