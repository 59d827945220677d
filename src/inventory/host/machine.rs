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
        let is_chosen = |disk: &&Disk| chosen.is_some_and(|chosen| disk.is_named(&chosen.id));
        let kept = self.eligible_disks().find(is_chosen);
        kept.or_else(|| self.eligible_disks().min_by_key(|disk| disk.rank())).map(Disk::as_installation_disk)
    }

    /// The disks that something may be booted from, which an installation formats.
    pub(super) fn disks_to_format(&self) -> Vec<String> {
        let formatted = self.disks.iter().filter(|disk| {
            let is_card = disk.by_path.contains("mmcblk") || disk.name.starts_with("mmcblk");
            let is_elsewhere = matches!(disk.drive_type.as_str(), "FC" | "iSCSI" | "LVM" | "Multipath");
            disk.bootable && !disk.removable && !is_card && !is_elsewhere && !disk.is_installation_media
        });
        formatted.map(Disk::identity).collect()
    }
}

impl Disk {
    /// The id of the disk, or its device if the agent reports no id.
    pub(super) fn identity(&self) -> String {
        if self.id.is_empty() { self.device() } else { self.id.clone() }
    }

    /// The device of the disk, `/dev/sda` for example.
    fn device(&self) -> String {
        if self.path.is_empty() { format!("/dev/{}", self.name) } else { self.path.clone() }
    }

    /// Whether a user may mean this disk by a name: its id, its path by connection, or its device.
    pub(super) fn is_named(&self, name: &str) -> bool {
        !name.is_empty()
            && (self.identity() == name
                || self.by_path == name
                || self.device() == name
                || format!("/dev/{}", self.name) == name)
    }

    pub(super) fn as_installation_disk(&self) -> InstallationDisk {
        InstallationDisk { id: self.identity(), path: self.device() }
    }

    fn judge(&mut self, architecture: &str) {
        let mut reasons = self.installation_eligibility.not_eligible_reasons.0.take().unwrap_or_default();
        if self.size_bytes < LEAST_DISK_GB * GB {
            let (found, least) = (shown_size(self.size_bytes), shown_size(LEAST_DISK_GB * GB));
            reasons.push(if found == least {
                let short = shown_size((LEAST_DISK_GB * GB).saturating_sub(self.size_bytes));
                format!(
                    "Disk is too small (disk only has {found}, but {least} are required) (short by {short})"
                )
            } else {
                format!("Disk is too small (disk only has {found}, but {least} are required)")
            });
        }
        let allowed = allowed_drive_types(architecture);
        if !allowed.contains(&self.drive_type.as_str()) {
            let (found, allowed) = (&self.drive_type, allowed.join(", "));
            reasons.push(format!("Drive type is {found}, it must be one of {allowed}."));
        }
        self.installation_eligibility =
            Eligibility { eligible: reasons.is_empty(), not_eligible_reasons: List(Some(reasons)) };
    }

    /// The lowest is the best: one that was booted from, then one that is not NVMe, then a turning one, then a small one.
    fn rank(&self) -> (bool, bool, &str, i64, &str) {
        (!self.bootable, self.name.starts_with("nvme"), &self.drive_type, self.size_bytes, &self.hctl)
    }
}

/// The types of drive that a system may be installed on.
fn allowed_drive_types(architecture: &str) -> Vec<&'static str> {
    let mut allowed = vec!["HDD", "SSD", "Multipath", "RAID", "iSCSI"];
    if matches!(architecture, "x86_64" | "s390x") {
        allowed.push("FC");
    }
    if architecture == "s390x" {
        allowed.extend(["ECKD (ESE)", "ECKD", "FBA"]);
    }
    allowed
}

/// A size in decimal units, with at most three decimals, rounded up: `53.688 GB`.
fn shown_size(bytes: i64) -> String {
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
        assert_eq!(
            reasons[0].0.as_deref().unwrap(),
            ["Disk is too small (disk only has 100 GB, but 100 GB are required) (short by 1 B)"]
        );
        assert_eq!(reasons[2].0.as_deref().unwrap(), ["It is mounted"]);
        assert_eq!(reasons[3].0.as_deref().unwrap(), [""; 0]);
    }

    #[test]
    fn the_best_disk_is_taken_and_a_choice_kept() {
        let machine = machine(
            r#"[{"id": "n", "name": "nvme0n1", "drive_type": "HDD", "size_bytes": 100000000000},
                {"id": "s", "name": "sdb", "drive_type": "SSD", "size_bytes": 100000000000},
                {"id": "h", "name": "sda", "drive_type": "HDD", "size_bytes": 200000000000},
                {"id": "g", "name": "sdc", "by_path": "by-path-g", "drive_type": "HDD", "size_bytes": 300000000000}]"#,
        );
        let best = machine.installation_disk(None).unwrap();
        assert_eq!((best.id.as_str(), best.path.as_str()), ("h", "/dev/sda"));
        for (name, id) in [("g", "g"), ("/dev/sdc", "g"), ("by-path-g", "g"), ("sdc", "h"), ("", "h")] {
            let chosen = InstallationDisk { id: name.to_owned(), path: String::new() };
            let found = machine.installation_disk(Some(&chosen)).unwrap();
            assert_eq!(found.id, id, "{name}");
        }
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
