//! What a machine is made of, as its agent reports it in the reply of `inventory`.

use super::record::InstallationDisk;
use super::reported::{List, reported};

reported! {
    /// A machine.
    Machine {
        bmc_address: String,
        bmc_v6address: String,
        boot: Option<Boot>,
        cpu: Option<Cpu>,
        disks: List<Disk>,
        gpus: List<Gpu>,
        hostname: String,
        interfaces: List<Interface>,
        memory: Option<Memory>,
        routes: List<Route>,
        system_vendor: Option<SystemVendor>,
        tpm_version: String,
        truncation: Option<Truncation>,
    }

    /// How it booted.
    Boot {
        command_line: String,
        current_boot_mode: String,
        device_type: String,
        pxe_interface: String,
        secure_boot_state: String,
    }

    /// Its processors.
    Cpu {
        architecture: String,
        count: i64,
        flags: List<String>,
        frequency: f64,
        model_name: String,
    }

    /// A disk.
    Disk {
        bootable: bool,
        by_id: String,
        by_path: String,
        drive_type: String,
        has_uuid: bool,
        hctl: String,
        holders: String,
        id: String,
        installation_eligibility: Eligibility,
        io_perf: Option<DiskSpeed>,
        is_installation_media: bool,
        iscsi: Option<Iscsi>,
        model: String,
        name: String,
        #[serde(rename = "partitionTypes")]
        partition_types: String,
        path: String,
        removable: bool,
        serial: String,
        size_bytes: i64,
        smart: String,
        vendor: String,
        wwn: String,
    }

    /// Whether a system may go to a disk.
    Eligibility {
        eligible: bool,
        not_eligible_reasons: List<String>,
    }

    /// How fast a disk is.
    DiskSpeed {
        sync_duration: i64,
    }

    /// How a disk is reached over the network.
    Iscsi {
        host_ip_address: String,
    }

    /// A graphics card.
    Gpu {
        address: String,
        device_id: String,
        name: String,
        vendor: String,
        vendor_id: String,
    }

    /// A network card.
    Interface {
        biosdevname: String,
        client_id: String,
        flags: List<String>,
        has_carrier: bool,
        ipv4_addresses: List<String>,
        ipv6_addresses: List<String>,
        mac_address: String,
        mtu: i64,
        name: String,
        product: String,
        speed_mbps: i64,
        #[serde(rename = "type")]
        interface_type: String,
        vendor: String,
    }

    /// Its memory.
    Memory {
        physical_bytes: i64,
        physical_bytes_method: String,
        usable_bytes: i64,
    }

    /// A route.
    Route {
        destination: String,
        family: i64,
        gateway: String,
        interface: String,
        metric: i64,
    }

    /// Who made it.
    SystemVendor {
        manufacturer: String,
        product_name: String,
        serial_number: String,
        #[serde(rename = "virtual")]
        is_virtual: bool,
    }

    /// What the agent left out.
    Truncation {
        reasons: List<String>,
        #[serde(rename = "type")]
        kind: String,
    }
}

/// The least size of a disk that a system goes to, in GB.
pub(super) const LEAST_DISK_GB: i64 = 100;

/// Bytes of a GB, as makers of disks count them.
const GB: i64 = 1_000_000_000;

impl Machine {
    /// Takes out what no network of a cluster goes over, and says of each disk whether a system may go there.
    pub(super) fn judge(&mut self) {
        // An agent that names no type is an old one, which reports only cards.
        self.interfaces.retain(|it| matches!(it.interface_type.as_str(), "" | "physical" | "vlan" | "bond"));
        let architecture = self.cpu.as_ref().map(|cpu| cpu.architecture.clone()).unwrap_or_default();
        for disk in self.disks.iter_mut() {
            disk.judge(&architecture);
        }
    }

    /// The disks that a system may go to.
    pub(super) fn eligible_disks(&self) -> impl Iterator<Item = &Disk> {
        self.disks.iter().filter(|disk| disk.installation_eligibility.eligible)
    }

    /// The disk that a system goes to: the chosen one as long as it may, or else the best one.
    pub(super) fn installation_disk(&self, chosen: Option<&InstallationDisk>) -> Option<InstallationDisk> {
        let is_chosen = |disk: &&Disk| chosen.is_some_and(|chosen| chosen.id == disk.identity());
        let kept = self.eligible_disks().find(is_chosen);
        let disk = kept.or_else(|| self.eligible_disks().min_by_key(|disk| disk.rank()))?;
        Some(InstallationDisk { id: disk.identity().to_owned(), path: disk.path.clone() })
    }

    /// The disks that something may be booted from, which an installation formats.
    pub(super) fn disks_to_format(&self) -> Vec<String> {
        let formatted = self.disks.iter().filter(|disk| {
            let is_card = disk.by_path.contains("mmcblk") || disk.name.starts_with("mmcblk");
            let is_elsewhere = matches!(disk.drive_type.as_str(), "FC" | "iSCSI" | "LVM" | "Multipath");
            disk.bootable && !disk.removable && !is_card && !is_elsewhere && !disk.is_installation_media
        });
        formatted.map(|disk| disk.identity().to_owned()).collect()
    }
}

impl Disk {
    /// Its id; its device with an agent that knows no ids.
    pub(super) fn identity(&self) -> &str {
        if self.id.is_empty() { &self.path } else { &self.id }
    }

    fn judge(&mut self, architecture: &str) {
        let mut reasons = self.installation_eligibility.not_eligible_reasons.0.take().unwrap_or_default();
        if self.size_bytes < LEAST_DISK_GB * GB {
            let found = self.size_bytes / GB;
            reasons.push(format!("The disk has {found} GB, and at least {LEAST_DISK_GB} GB are needed"));
        }
        if !may_hold_a_system(&self.drive_type, architecture) {
            reasons.push(format!("No system is installed on a drive of type {:?}", self.drive_type));
        }
        self.installation_eligibility =
            Eligibility { eligible: reasons.is_empty(), not_eligible_reasons: List(Some(reasons)) };
    }

    /// The lowest is the best: one that was booted from, then one that is not NVMe, then a turning one, then a small one.
    fn rank(&self) -> (bool, bool, &str, i64, &str) {
        (!self.bootable, self.name.starts_with("nvme"), &self.drive_type, self.size_bytes, &self.hctl)
    }
}

fn may_hold_a_system(drive_type: &str, architecture: &str) -> bool {
    match drive_type {
        "HDD" | "SSD" | "Multipath" | "RAID" | "iSCSI" => true,
        "FC" => matches!(architecture, "x86_64" | "s390x"),
        "ECKD" | "ECKD (ESE)" | "FBA" => architecture == "s390x",
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(disks: &str) -> Machine {
        let text = format!(r#"{{"cpu": {{"architecture": "x86_64"}}, "disks": {disks}}}"#);
        let mut machine: Machine = super::super::reported::read("inventory", &text).unwrap();
        machine.judge();
        machine
    }

    #[test]
    fn small_disks_and_odd_drives_hold_no_system() {
        let machine = machine(
            r#"[{"id": "small", "drive_type": "SSD", "size_bytes": 99999999999},
                {"id": "dvd", "drive_type": "ODD", "size_bytes": 100000000000},
                {"id": "used", "drive_type": "HDD", "size_bytes": 100000000000,
                 "installation_eligibility": {"eligible": true, "not_eligible_reasons": ["It is mounted"]}},
                {"id": "good", "drive_type": "FC", "size_bytes": 100000000000}]"#,
        );
        let good: Vec<_> = machine.eligible_disks().map(Disk::identity).collect();
        assert_eq!(good, ["good"]);
        let reasons: Vec<_> = machine
            .disks
            .iter()
            .map(|disk| disk.installation_eligibility.not_eligible_reasons.clone())
            .collect();
        assert_eq!(reasons[0].0.as_deref().unwrap(), ["The disk has 99 GB, and at least 100 GB are needed"]);
        assert_eq!(reasons[2].0.as_deref().unwrap(), ["It is mounted"]);
        assert_eq!(reasons[3].0.as_deref().unwrap(), [""; 0]);
    }

    #[test]
    fn the_best_disk_is_taken_and_a_choice_kept() {
        let machine = machine(
            r#"[{"id": "n", "name": "nvme0n1", "drive_type": "HDD", "size_bytes": 100000000000},
                {"id": "s", "name": "sdb", "drive_type": "SSD", "size_bytes": 100000000000},
                {"id": "h", "name": "sda", "path": "/dev/sda", "drive_type": "HDD", "size_bytes": 200000000000},
                {"id": "g", "name": "sdc", "drive_type": "HDD", "size_bytes": 300000000000}]"#,
        );
        let best = machine.installation_disk(None).unwrap();
        assert_eq!((best.id.as_str(), best.path.as_str()), ("h", "/dev/sda"));
        let chosen = InstallationDisk { id: "g".to_owned(), path: String::new() };
        assert_eq!(machine.installation_disk(Some(&chosen)).unwrap().id, "g");
        let gone = InstallationDisk { id: "x".to_owned(), path: String::new() };
        assert_eq!(machine.installation_disk(Some(&gone)).unwrap().id, "h");
    }

    #[test]
    fn numbers_at_their_limits_do_no_harm() {
        let machine = machine(
            r#"[{"drive_type": "SSD", "size_bytes": 9223372036854775807},
                {"drive_type": "SSD", "size_bytes": -9223372036854775808}]"#,
        );
        assert_eq!(machine.eligible_disks().count(), 1);
    }
}
