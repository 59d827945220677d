//! The inventory report: the hardware of a host, as its agent reports it in the reply to the step `inventory`.
//!
//! Values such as drive types are texts, because a report must not be refused for hardware that its reader does not
//! know.

use crate::list::List;
use crate::text::Text;
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
    ///     hostname: "node-1".into(),
    ///     cpu: Some(Cpu { count: 8, architecture: "x86_64".into(), ..Cpu::default() }),
    ///     ..InventoryReport::default()
    /// };
    /// let text = serde_json::to_string(&report)?;
    /// assert_eq!(serde_json::from_str::<InventoryReport<'_>>(&text)?, report);
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    InventoryReport<'a> {
        /// IPv4 address of the BMC. `0.0.0.0`: none found.
        bmc_address: Text<'a>,
        /// IPv6 address of the BMC. `::/0`: none found.
        bmc_v6address: Text<'a>,
        /// The boot of the host.
        boot: Option<Boot<'a>>,
        /// The processors.
        cpu: Option<Cpu<'a>>,
        /// The disks.
        disks: List<Disk<'a>>,
        /// The graphics cards.
        gpus: List<Gpu<'a>>,
        /// The host name.
        hostname: Text<'a>,
        /// The network interfaces.
        interfaces: List<Interface<'a>>,
        /// The memory.
        memory: Option<Memory<'a>>,
        /// The routes of the main table.
        routes: List<Route<'a>>,
        /// The manufacturer of the machine.
        system_vendor: Option<SystemVendor<'a>>,
        /// Version of the TPM: `none`, `1.2` or `2.0`.
        tpm_version: Text<'a>,
        /// The parts that the agent left out.
        truncation: Option<Truncation<'a>>,
    }

    /// The boot of a host.
    Boot<'a> {
        /// The kernel command line.
        command_line: Text<'a>,
        /// Firmware mode: `uefi` or `bios`.
        current_boot_mode: Text<'a>,
        /// Type of the root device: `persistent` or `ephemeral`.
        device_type: Text<'a>,
        /// MAC address of the interface that the host booted from, if it booted over the network.
        pxe_interface: Text<'a>,
        /// State of Secure Boot: `Unknown`, `NotSupported`, `Enabled` or `Disabled`.
        secure_boot_state: Text<'a>,
    }

    /// The processors of a host.
    Cpu<'a> {
        /// CPU architecture, such as `x86_64` or `aarch64`.
        architecture: Text<'a>,
        /// Number of logical processors.
        count: i64,
        /// Features of the processors.
        flags: List<Text<'a>>,
        /// Highest frequency, in MHz.
        frequency: f64,
        /// Name of the model.
        model_name: Text<'a>,
    }

    /// A disk.
    Disk<'a> {
        /// Whether the disk has a boot sector.
        bootable: bool,
        /// Path below `/dev/disk/by-id`.
        by_id: Text<'a>,
        /// Path below `/dev/disk/by-path`.
        by_path: Text<'a>,
        /// Type of the drive, such as `HDD`, `SSD` or `Multipath`.
        drive_type: Text<'a>,
        /// Whether the disk reports a unique id.
        has_uuid: bool,
        /// SCSI address: host, channel, target and logical unit.
        hctl: Text<'a>,
        /// Block devices that use the disk, separated by commas.
        holders: Text<'a>,
        /// Id: the path by id, else the path by connection, else the device path.
        id: Text<'a>,
        /// Whether a system can be installed on the disk.
        installation_eligibility: Eligibility<'a>,
        /// Results of earlier speed checks.
        io_perf: Option<DiskSpeed>,
        /// Whether the disk is the boot media.
        is_installation_media: bool,
        /// The iSCSI connection.
        iscsi: Option<Iscsi<'a>>,
        /// Name of the model.
        model: Text<'a>,
        /// Name of the block device.
        name: Text<'a>,
        /// Types of the partitions.
        #[serde(rename = "partitionTypes")]
        partition_types: Text<'a>,
        /// Device path.
        path: Text<'a>,
        /// Whether the disk is removable.
        removable: bool,
        /// Serial number.
        serial: Text<'a>,
        /// Size.
        size_bytes: i64,
        /// S.M.A.R.T. data.
        smart: Text<'a>,
        /// Manufacturer of the disk.
        vendor: Text<'a>,
        /// World wide name.
        wwn: Text<'a>,
    }

    /// Whether a system can be installed on a disk.
    Eligibility<'a> {
        /// Whether a system can be installed.
        eligible: bool,
        /// Reasons against an installation.
        not_eligible_reasons: List<Text<'a>>,
    }

    /// Speed of a disk.
    DiskSpeed {
        /// Time to write and sync a block, in milliseconds.
        sync_duration: i64,
    }

    /// The iSCSI connection of a disk.
    Iscsi<'a> {
        /// IP address of the host.
        host_ip_address: Text<'a>,
    }

    /// A graphics card.
    Gpu<'a> {
        /// PCI address.
        address: Text<'a>,
        /// PCI device id.
        device_id: Text<'a>,
        /// Name of the device.
        name: Text<'a>,
        /// Name of the manufacturer.
        vendor: Text<'a>,
        /// PCI vendor id.
        vendor_id: Text<'a>,
    }

    /// A network interface.
    Interface<'a> {
        /// Name by the BIOS.
        biosdevname: Text<'a>,
        /// DHCP client id.
        client_id: Text<'a>,
        /// Flags of the kernel, such as `up` and `running`.
        flags: List<Text<'a>>,
        /// Whether the interface has a link.
        has_carrier: bool,
        /// IPv4 addresses, each with a prefix length.
        ipv4_addresses: List<Text<'a>>,
        /// IPv6 addresses, each with a prefix length.
        ipv6_addresses: List<Text<'a>>,
        /// MAC address, in lower case.
        mac_address: Text<'a>,
        /// Largest packet, in bytes.
        mtu: i64,
        /// Name of the interface.
        name: Text<'a>,
        /// PCI device id.
        product: Text<'a>,
        /// Speed of the link.
        speed_mbps: i64,
        /// Type: `physical`, `vlan`, `bond` and others. Old agents, which list only network cards, leave it empty.
        #[serde(rename = "type")]
        interface_type: Text<'a>,
        /// PCI vendor id.
        vendor: Text<'a>,
    }

    /// The memory of a host.
    Memory<'a> {
        /// Installed memory.
        physical_bytes: i64,
        /// Source of that number: `dmidecode`, `ghw` or `meminfo`.
        physical_bytes_method: Text<'a>,
        /// Memory that the kernel can use.
        usable_bytes: i64,
    }

    /// A route.
    Route<'a> {
        /// Destination address, without prefix length.
        destination: Text<'a>,
        /// Address family of the kernel: 2 for IPv4, 10 for IPv6.
        family: i64,
        /// Address of the gateway.
        gateway: Text<'a>,
        /// Name of the interface.
        interface: Text<'a>,
        /// Metric.
        metric: i64,
    }

    /// The manufacturer of a machine.
    SystemVendor<'a> {
        /// Name of the manufacturer.
        manufacturer: Text<'a>,
        /// Name of the product.
        product_name: Text<'a>,
        /// Serial number.
        serial_number: Text<'a>,
        /// Whether the host is a virtual machine.
        #[serde(rename = "virtual")]
        is_virtual: bool,
    }

    /// The parts that an agent left out, because the report was too large.
    Truncation<'a> {
        /// Reasons.
        reasons: List<Text<'a>>,
        /// Extent: `partial` or `full`.
        #[serde(rename = "type")]
        kind: Text<'a>,
    }
}

impl InventoryReport<'_> {
    /// Returns the IP addresses of all interfaces, each with a prefix length.
    pub fn addresses(&self) -> impl Iterator<Item = &str> {
        let lists = self.interfaces.iter().flat_map(|it| [&it.ipv4_addresses, &it.ipv6_addresses]);
        lists.flat_map(List::iter).map(Text::as_str)
    }
}
