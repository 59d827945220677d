//! Projects the inventory report of a host to the status of its Agent.

use assisted::inventory_report::{Boot, Cpu, Disk, Gpu, Interface, InventoryReport, Memory, SystemVendor};
use assisted::{List, Text};

use crate::crds::{
    AgentInventory, InstallationEligibility, InventoryBoot, InventoryCpu, InventoryDisk, InventoryGpu,
    InventoryInterface, InventoryMemory, InventorySystemVendor, IoPerformance,
};

/// Converts an inventory report into the form of the custom resource.
pub(crate) fn inventory(report: &InventoryReport<'_>) -> AgentInventory {
    AgentInventory {
        report_time: None,
        hostname: text(&report.hostname),
        bmc_address: text(&report.bmc_address),
        bmc_v6_address: text(&report.bmc_v6address),
        memory: report.memory.as_ref().map(memory).unwrap_or_default(),
        cpu: report.cpu.as_ref().map(cpu).unwrap_or_default(),
        interfaces: report.interfaces.iter().map(interface).collect(),
        disks: report.disks.iter().map(disk).collect(),
        boot: report.boot.as_ref().map(boot).unwrap_or_default(),
        system_vendor: report.system_vendor.as_ref().map(system_vendor).unwrap_or_default(),
        gpus: report.gpus.iter().map(gpu).collect(),
    }
}

fn memory(memory: &Memory<'_>) -> InventoryMemory {
    InventoryMemory { physical_bytes: memory.physical_bytes, usable_bytes: memory.usable_bytes }
}

fn cpu(cpu: &Cpu<'_>) -> InventoryCpu {
    InventoryCpu {
        count: cpu.count,
        clock_megahertz: whole(cpu.frequency),
        flags: texts(&cpu.flags),
        model_name: text(&cpu.model_name),
        architecture: text(&cpu.architecture),
    }
}

/// Drops the fraction of a clock rate in megahertz. No CPU exceeds a million megahertz.
fn whole(number: f64) -> i64 {
    let text = format!("{:.0}", number.clamp(0.0, 1e6).floor());
    text.parse().unwrap_or(0)
}

fn interface(interface: &Interface<'_>) -> InventoryInterface {
    InventoryInterface {
        name: text(&interface.name),
        mac_address: text(&interface.mac_address),
        ip_v4_addresses: texts(&interface.ipv4_addresses),
        ip_v6_addresses: texts(&interface.ipv6_addresses),
        flags: texts(&interface.flags),
        has_carrier: interface.has_carrier,
        mtu: interface.mtu,
        speed_mbps: interface.speed_mbps,
        vendor: text(&interface.vendor),
        product: text(&interface.product),
        bios_dev_name: text(&interface.biosdevname),
        client_id: text(&interface.client_id),
    }
}

fn disk(disk: &Disk<'_>) -> InventoryDisk {
    let eligibility = &disk.installation_eligibility;
    InventoryDisk {
        id: text(&disk.id),
        name: text(&disk.name),
        path: text(&disk.path),
        by_path: text(&disk.by_path),
        by_id: text(&disk.by_id),
        drive_type: text(&disk.drive_type),
        vendor: text(&disk.vendor),
        model: text(&disk.model),
        serial: text(&disk.serial),
        wwn: text(&disk.wwn),
        hctl: text(&disk.hctl),
        size_bytes: disk.size_bytes,
        bootable: disk.bootable,
        smart: text(&disk.smart),
        installation_eligibility: InstallationEligibility {
            eligible: eligibility.eligible,
            not_eligible_reasons: texts(&eligibility.not_eligible_reasons),
        },
        io_perf: IoPerformance {
            sync_duration_milliseconds: disk.io_perf.as_ref().map_or(0, |speed| speed.sync_duration),
        },
    }
}

fn boot(boot: &Boot<'_>) -> InventoryBoot {
    InventoryBoot {
        current_boot_mode: text(&boot.current_boot_mode),
        pxe_interface: text(&boot.pxe_interface),
        device_type: text(&boot.device_type),
    }
}

fn system_vendor(vendor: &SystemVendor<'_>) -> InventorySystemVendor {
    InventorySystemVendor {
        serial_number: text(&vendor.serial_number),
        product_name: text(&vendor.product_name),
        manufacturer: text(&vendor.manufacturer),
        r#virtual: vendor.is_virtual,
    }
}

fn gpu(gpu: &Gpu<'_>) -> InventoryGpu {
    InventoryGpu {
        address: text(&gpu.address),
        device_id: text(&gpu.device_id),
        name: text(&gpu.name),
        vendor: text(&gpu.vendor),
        vendor_id: text(&gpu.vendor_id),
    }
}

fn text(text: &Text<'_>) -> String {
    text.as_str().to_owned()
}

fn texts(list: &List<Text<'_>>) -> Vec<String> {
    list.iter().map(text).collect()
}
