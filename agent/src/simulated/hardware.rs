//! The inventory report of a simulated machine, computed from its description.

use assisted::Text;
use assisted::inventory_report::{
    Boot, Cpu, Disk, Eligibility, Interface, InventoryReport, Memory, Route, SystemVendor, Truncation,
};
use assisted::request::InventoryRequest;

use super::fault::Fault;
use super::machine::SimulatedMachine;
use super::profile::{BootMode, DescribedDisk, DescribedInterface, DriveType};

/// Size of a report that the service refuses as too large.
const TOO_MANY_BYTES: usize = (1 << 20) + (1 << 16);
/// Linux constant for the IPv4 address family.
const AF_INET: i64 = 2;

impl SimulatedMachine {
    /// Returns the complete inventory report, with the effects of the host's faults.
    #[must_use]
    pub fn inventory_report(&self) -> InventoryReport<'static> {
        let group = &self.slot.group;
        let cpu = Cpu {
            architecture: group.architecture.clone().into(),
            count: group.cores.into(),
            flags: group.cpu_flags.iter().map(|flag| flag.clone().into()).collect(),
            frequency: 2400.0,
            model_name: group.cpu_model.clone().into(),
        };
        let disks = group.disks.iter().zip(0..);
        let interfaces = group.interfaces.iter().enumerate();
        InventoryReport {
            bmc_address: "0.0.0.0".into(),
            bmc_v6address: "::/0".into(),
            boot: Some(self.boot()),
            cpu: Some(cpu),
            disks: disks.map(|(disk, number)| self.disk(disk, number)).collect(),
            gpus: Vec::new().into(),
            hostname: self.host_name().into(),
            interfaces: interfaces.map(|(number, interface)| self.interface(interface, number)).collect(),
            memory: Some(self.memory()),
            routes: self.routes().into(),
            system_vendor: Some(self.vendor()),
            tpm_version: group.tpm.clone().into(),
            truncation: None,
        }
    }

    /// Returns the inventory report within the limits of a request, which may set a minimum size of the listed disks
    /// and a maximum size of the report.
    pub(super) fn limited_report(&self, request: &InventoryRequest) -> InventoryReport<'static> {
        let mut report = self.inventory_report();
        if let Some(min_size) = request.disk_min_size {
            report.disks.retain(|disk| u64::try_from(disk.size_bytes).is_ok_and(|size| size >= min_size));
        }
        let Some(max_len) = request.output_max_size else { return report };
        let is_too_long = |report: &InventoryReport<'_>| {
            let length = serde_json::to_string(report).map_or(usize::MAX, |text| text.len());
            u64::try_from(length).is_ok_and(|length| length > max_len)
        };
        if is_too_long(&report) {
            let reasons = vec![format!("the report has more than {max_len} bytes").into()];
            if let Some(boot) = &mut report.boot {
                boot.command_line = Text::default();
            }
            if let Some(cpu) = &mut report.cpu {
                cpu.flags = Vec::new().into();
            }
            report.truncation = Some(Truncation { kind: "partial".into(), reasons: reasons.into() });
        }
        if is_too_long(&report) {
            let truncation = report.truncation.take();
            let truncation = truncation.map(|partial| Truncation { kind: "full".into(), ..partial });
            let InventoryReport { hostname, cpu, memory, .. } = report;
            report = InventoryReport { hostname, cpu, memory, truncation, ..InventoryReport::default() };
        }
        report
    }

    fn host_name(&self) -> String {
        if self.has_fault(Fault::InvalidHostname) {
            return "localhost".to_owned();
        }
        let duplicate = if self.has_fault(Fault::DuplicateHostname) { self.site.first_name() } else { None };
        duplicate.unwrap_or_else(|| self.slot.usual_name())
    }

    fn boot(&self) -> Boot<'static> {
        let (mode, secure_boot) = match self.slot.group.boot_mode {
            BootMode::Bios => ("bios", "NotSupported"),
            BootMode::Uefi => ("uefi", "Disabled"),
        };
        let mut command_line = "ignition.firstboot ignition.platform.id=metal".to_owned();
        if self.has_fault(Fault::ReportTooLarge) {
            command_line.push_str(&" padding".repeat(TOO_MANY_BYTES / " padding".len()));
        }
        Boot {
            command_line: command_line.into(),
            current_boot_mode: mode.into(),
            device_type: "ephemeral".into(),
            pxe_interface: Text::default(),
            secure_boot_state: secure_boot.into(),
        }
    }

    fn memory(&self) -> Memory<'static> {
        let gib = if self.has_fault(Fault::LittleMemory) { 4 } else { self.slot.group.memory_gib };
        let physical = i64::from(gib) << 30;
        Memory {
            physical_bytes: physical,
            physical_bytes_method: "dmidecode".into(),
            // The kernel reserves a part of the memory.
            usable_bytes: physical - physical / 64,
        }
    }

    fn vendor(&self) -> SystemVendor<'static> {
        SystemVendor {
            manufacturer: self.slot.group.manufacturer.clone().into(),
            product_name: self.slot.group.product.clone().into(),
            serial_number: format!("simulated-{:08}", self.number).into(),
            is_virtual: self.slot.group.is_virtual,
        }
    }

    fn disk(&self, disk: &DescribedDisk, number: u32) -> Disk<'static> {
        let wwn = format!("0x5000c500{:06x}{:02x}", self.number, number);
        let gb = if self.has_fault(Fault::SmallDisk) { 10 } else { disk.size_gb };
        let by_id = Text::from(format!("/dev/disk/by-id/wwn-{wwn}"));
        Disk {
            bootable: disk.bootable,
            by_path: format!("/dev/disk/by-path/pci-0000:00:1f.2-ata-{}", number + 1).into(),
            drive_type: match disk.drive_type {
                DriveType::Hdd => "HDD".into(),
                DriveType::Ssd => "SSD".into(),
            },
            has_uuid: true,
            hctl: format!("{number}:0:0:0").into(),
            id: by_id.clone(),
            by_id,
            installation_eligibility: Eligibility { eligible: true, ..Eligibility::default() },
            model: "Simulated Disk".into(),
            name: disk.name.clone().into(),
            path: disk.path().into(),
            serial: format!("S{:06}{number:02}", self.number).into(),
            size_bytes: i64::from(gb) * 1_000_000_000,
            vendor: "Kindling".into(),
            wwn: wwn.into(),
            ..Disk::default()
        }
    }

    fn interface(&self, interface: &DescribedInterface, number: usize) -> Interface<'static> {
        let has_address = self.slot.connected_interface() == Some(number);
        // The fault unplugs the interface that would have the address.
        let has_carrier = interface.connected && (has_address || !self.has_fault(Fault::UnpluggedLink));
        let address = self.address().filter(|_| has_address);
        let prefix = self.site.profile().network.prefix();
        let running = if has_carrier {
            &["up", "broadcast", "multicast", "running"] as &[&str]
        } else {
            &["up", "broadcast", "multicast"]
        };
        Interface {
            flags: running.iter().map(|flag| (*flag).into()).collect(),
            has_carrier,
            ipv4_addresses: address.map(|address| format!("{address}/{prefix}").into()).into_iter().collect(),
            ipv6_addresses: Vec::new().into(),
            mac_address: self.site.mac_address(self.number, number).into(),
            mtu: interface.mtu.into(),
            name: interface.name.clone().into(),
            product: "0x0001".into(),
            speed_mbps: if has_carrier { interface.speed_mbps.into() } else { -1 },
            interface_type: "physical".into(),
            vendor: "0x1af4".into(),
            ..Interface::default()
        }
    }

    fn routes(&self) -> Vec<Route<'static>> {
        if self.has_fault(Fault::NoDefaultRoute) {
            return Vec::new();
        }
        let (Some(segment), Some(interface)) = (self.site.segment(self.number), self.connected_interface())
        else {
            return Vec::new();
        };
        vec![Route {
            destination: "0.0.0.0".into(),
            family: AF_INET,
            gateway: segment.gateway().to_string().into(),
            interface: interface.name.clone().into(),
            metric: 100,
        }]
    }
}

impl DescribedDisk {
    pub(super) fn path(&self) -> String {
        format!("/dev/{}", self.name)
    }
}
