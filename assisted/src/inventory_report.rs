//! The inventory report: the hardware of a host, as its agent reports it in the reply to the step `inventory`.
//!
//! Values such as drive types are texts, because a report must not be refused for hardware that its reader does not
//! know.

use crate::list::List;
use crate::wire::reported;

reported! {
    /// The inventory report of a host.
    ///
    /// # Examples
    ///
    /// ```
    /// use assisted::inventory_report::{Cpu, InventoryReport};
    ///
    /// let report = InventoryReport {
    ///     hostname: "node-1".to_owned(),
    ///     cpu: Some(Cpu { count: 8, architecture: "x86_64".to_owned(), ..Cpu::default() }),
    ///     ..InventoryReport::default()
    /// };
    /// let text = serde_json::to_string(&report)?;
    /// assert_eq!(serde_json::from_str::<InventoryReport>(&text)?, report);
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    InventoryReport {
        /// IPv4 address of the BMC. `0.0.0.0`: none found.
        bmc_address: String,
        /// IPv6 address of the BMC. `::/0`: none found.
        bmc_v6address: String,
        /// The boot of the host.
        boot: Option<Boot>,
        /// The processors.
        cpu: Option<Cpu>,
        /// The disks.
        disks: List<Disk>,
        /// The graphics cards.
        gpus: List<Gpu>,
        /// The host name.
        hostname: String,
        /// The network interfaces.
        interfaces: List<Interface>,
        /// The memory.
        memory: Option<Memory>,
        /// The routes of the main table.
        routes: List<Route>,
        /// The manufacturer of the machine.
        system_vendor: Option<SystemVendor>,
        /// Version of the TPM: `none`, `1.2` or `2.0`.
        tpm_version: String,
        /// The parts that the agent left out.
        truncation: Option<Truncation>,
    }

    /// The boot of a host.
    Boot {
        /// The kernel command line.
        command_line: String,
        /// Firmware mode: `uefi` or `bios`.
        current_boot_mode: String,
        /// Type of the root device: `persistent` or `ephemeral`.
        device_type: String,
        /// MAC address of the interface that the host booted from, if it booted over the network.
        pxe_interface: String,
        /// State of Secure Boot: `Unknown`, `NotSupported`, `Enabled` or `Disabled`.
        secure_boot_state: String,
    }

    /// The processors of a host.
    Cpu {
        /// CPU architecture, such as `x86_64` or `aarch64`.
        architecture: String,
        /// Number of logical processors.
        count: i64,
        /// Features of the processors.
        flags: List<String>,
        /// Highest frequency, in MHz.
        frequency: f64,
        /// Name of the model.
        model_name: String,
    }

    /// A disk.
    Disk {
        /// Whether the disk has a boot sector.
        bootable: bool,
        /// Path below `/dev/disk/by-id`.
        by_id: String,
        /// Path below `/dev/disk/by-path`.
        by_path: String,
        /// Type of the drive, such as `HDD`, `SSD` or `Multipath`.
        drive_type: String,
        /// Whether the disk reports a unique id.
        has_uuid: bool,
        /// SCSI address: host, channel, target and logical unit.
        hctl: String,
        /// Block devices that use the disk, separated by commas.
        holders: String,
        /// Id: the path by id, else the path by connection, else the device path.
        id: String,
        /// Whether a system can be installed on the disk.
        installation_eligibility: Eligibility,
        /// Results of earlier speed checks.
        io_perf: Option<DiskSpeed>,
        /// Whether the disk is the boot media.
        is_installation_media: bool,
        /// The iSCSI connection.
        iscsi: Option<Iscsi>,
        /// Name of the model.
        model: String,
        /// Name of the block device.
        name: String,
        /// Types of the partitions.
        #[serde(rename = "partitionTypes")]
        partition_types: String,
        /// Device path.
        path: String,
        /// Whether the disk is removable.
        removable: bool,
        /// Serial number.
        serial: String,
        /// Size.
        size_bytes: i64,
        /// S.M.A.R.T. data.
        smart: String,
        /// Manufacturer of the disk.
        vendor: String,
        /// World wide name.
        wwn: String,
    }

    /// Whether a system can be installed on a disk.
    Eligibility {
        /// Whether a system can be installed.
        eligible: bool,
        /// Reasons against an installation.
        not_eligible_reasons: List<String>,
    }

    /// Speed of a disk.
    DiskSpeed {
        /// Time to write and sync a block, in milliseconds.
        sync_duration: i64,
    }

    /// The iSCSI connection of a disk.
    Iscsi {
        /// IP address of the host.
        host_ip_address: String,
    }

    /// A graphics card.
    Gpu {
        /// PCI address.
        address: String,
        /// PCI device id.
        device_id: String,
        /// Name of the device.
        name: String,
        /// Name of the manufacturer.
        vendor: String,
        /// PCI vendor id.
        vendor_id: String,
    }

    /// A network interface.
    Interface {
        /// Name by the BIOS.
        biosdevname: String,
        /// DHCP client id.
        client_id: String,
        /// Flags of the kernel, such as `up` and `running`.
        flags: List<String>,
        /// Whether the interface has a link.
        has_carrier: bool,
        /// IPv4 addresses, each with a prefix length.
        ipv4_addresses: List<String>,
        /// IPv6 addresses, each with a prefix length.
        ipv6_addresses: List<String>,
        /// MAC address, in lower case.
        mac_address: String,
        /// Largest packet, in bytes.
        mtu: i64,
        /// Name of the interface.
        name: String,
        /// PCI device id.
        product: String,
        /// Speed of the link.
        speed_mbps: i64,
        /// Type: `physical`, `vlan`, `bond` and others. Old agents, which list only network cards, leave it empty.
        #[serde(rename = "type")]
        interface_type: String,
        /// PCI vendor id.
        vendor: String,
    }

    /// The memory of a host.
    Memory {
        /// Installed memory.
        physical_bytes: i64,
        /// Source of that number: `dmidecode`, `ghw` or `meminfo`.
        physical_bytes_method: String,
        /// Memory that the kernel can use.
        usable_bytes: i64,
    }

    /// A route.
    Route {
        /// Destination address, without prefix length.
        destination: String,
        /// Address family of the kernel: 2 for IPv4, 10 for IPv6.
        family: i64,
        /// Address of the gateway.
        gateway: String,
        /// Name of the interface.
        interface: String,
        /// Metric.
        metric: i64,
    }

    /// The manufacturer of a machine.
    SystemVendor {
        /// Name of the manufacturer.
        manufacturer: String,
        /// Name of the product.
        product_name: String,
        /// Serial number.
        serial_number: String,
        /// Whether the host is a virtual machine.
        #[serde(rename = "virtual")]
        is_virtual: bool,
    }

    /// The parts that an agent left out, because the report was too large.
    Truncation {
        /// Reasons.
        reasons: List<String>,
        /// Extent: `partial` or `full`.
        #[serde(rename = "type")]
        kind: String,
    }
}

impl InventoryReport {
    /// Returns the IP addresses of all interfaces, each with a prefix length.
    pub fn addresses(&self) -> impl Iterator<Item = &str> {
        let lists = self.interfaces.iter().flat_map(|it| [&it.ipv4_addresses, &it.ipv6_addresses]);
        lists.flat_map(List::iter).map(String::as_str)
    }
}
