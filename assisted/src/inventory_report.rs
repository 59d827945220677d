//! The inventory report: a host's hardware, as the agent reports it in reply to the step `inventory`.
//!
//! Values with a fixed set, such as drive types, are texts. A service therefore accepts reports about hardware that it
//! does not know yet.

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
        /// IPv4 address of the BMC. `0.0.0.0` if the agent found none.
        bmc_address: Text<'a>,
        /// IPv6 address of the BMC. `::/0` if the agent found none.
        bmc_v6address: Text<'a>,
        /// How the host booted.
        boot: Option<Boot<'a>>,
        /// CPUs of the host. Absent if the agent does not report them.
        cpu: Option<Cpu<'a>>,
        /// Disks of the host.
        disks: List<Disk<'a>>,
        /// The graphics cards.
        gpus: List<Gpu<'a>>,
        /// The host name.
        hostname: Text<'a>,
        /// The network interfaces.
        interfaces: List<Interface<'a>>,
        /// Memory of the host. Absent if the agent does not report it.
        memory: Option<Memory<'a>>,
        /// Routes of the main routing table.
        routes: List<Route<'a>>,
        /// Manufacturer and model of the machine.
        system_vendor: Option<SystemVendor<'a>>,
        /// Version of the TPM: `none`, `1.2` or `2.0`.
        tpm_version: Text<'a>,
        /// Data that the agent left out, if any.
        truncation: Option<Truncation<'a>>,
    }

    /// Facts about a host's boot.
    Boot<'a> {
        /// Kernel command line.
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

    /// A disk of a host.
    Disk<'a> {
        /// Whether the disk has a boot sector.
        bootable: bool,
        /// Path in `/dev/disk/by-id`.
        by_id: Text<'a>,
        /// Path in `/dev/disk/by-path`.
        by_path: Text<'a>,
        /// Type of the drive, such as `HDD`, `SSD` or `Multipath`.
        drive_type: Text<'a>,
        /// Whether the disk has a unique id.
        has_uuid: bool,
        /// SCSI address: host, channel, target and logical unit.
        hctl: Text<'a>,
        /// Names of the block devices that use the disk, separated by commas.
        holders: Text<'a>,
        /// Id: the path in `by-id`, or else the path in `by-path`, or else the device path.
        id: Text<'a>,
        /// Whether a system can be installed on the disk.
        installation_eligibility: Eligibility<'a>,
        /// Results of earlier speed checks.
        io_perf: Option<DiskSpeed>,
        /// Whether the disk is the host's boot media.
        is_installation_media: bool,
        /// iSCSI connection. Absent for disks of other types.
        iscsi: Option<Iscsi<'a>>,
        /// Name of the model.
        model: Text<'a>,
        /// Name of the block device.
        name: Text<'a>,
        /// Types of the partitions, as text.
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
        /// S.M.A.R.T. data, as text.
        smart: Text<'a>,
        /// Manufacturer of the disk.
        vendor: Text<'a>,
        /// World Wide Name.
        wwn: Text<'a>,
    }

    /// Eligibility of a disk for an installation, with the reasons against it.
    Eligibility<'a> {
        /// Whether a system can be installed on the disk.
        eligible: bool,
        /// Reasons why no system can be installed on the disk.
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
        /// PCI address of the card.
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
        /// Name that the BIOS assigns.
        biosdevname: Text<'a>,
        /// DHCP client id.
        client_id: Text<'a>,
        /// Kernel flags, such as `up` and `running`.
        flags: List<Text<'a>>,
        /// Whether the interface has a link.
        has_carrier: bool,
        /// IPv4 addresses, each with a prefix length.
        ipv4_addresses: List<Text<'a>>,
        /// IPv6 addresses, each with a prefix length.
        ipv6_addresses: List<Text<'a>>,
        /// MAC address, in lower case.
        mac_address: Text<'a>,
        /// MTU: maximum packet size, in bytes.
        mtu: i64,
        /// Name of the interface.
        name: Text<'a>,
        /// PCI device id.
        product: Text<'a>,
        /// Link speed, in Mbit/s.
        speed_mbps: i64,
        /// Type: `physical`, `vlan`, `bond` and others. Empty from old agents, which report only physical interfaces.
        #[serde(rename = "type")]
        interface_type: Text<'a>,
        /// PCI vendor id.
        vendor: Text<'a>,
    }

    /// The memory of a host.
    Memory<'a> {
        /// Installed memory, in bytes.
        physical_bytes: i64,
        /// Source of `physical_bytes`: `dmidecode`, `ghw` or `meminfo`.
        physical_bytes_method: Text<'a>,
        /// Memory that the kernel can use, in bytes.
        usable_bytes: i64,
    }

    /// A route of the main routing table.
    Route<'a> {
        /// Destination address, without prefix length.
        destination: Text<'a>,
        /// Address family, as the kernel's number: 2 for IPv4, 10 for IPv6.
        family: i64,
        /// Address of the gateway.
        gateway: Text<'a>,
        /// Name of the outgoing interface.
        interface: Text<'a>,
        /// Metric.
        metric: i64,
    }

    /// Manufacturer and model of a machine.
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

    /// The data that an agent left out of a report that was too large.
    Truncation<'a> {
        /// Reasons why data was left out.
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
