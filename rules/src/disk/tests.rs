use std::collections::BTreeMap;

use assisted::inventory_report::InventoryReport;
use ignition::Cidr;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use serde::Deserialize;

use super::*;
use crate::requirements::HardwareRequirements;
use crate::summary::{
    DiskSummary, HostSummary, InventorySummary, NicSummary, RouteSummary, VirtualInterfaces,
};

/// Disks of every drive type, with the reasons that the Assisted Installer reported for them.
const RECORDED: &str = include_str!("../../tests/data/disks.json");

#[derive(Deserialize)]
struct Recorded<'a> {
    openshift_version: String,
    min_disk_gb: i64,
    #[serde(borrow)]
    inventory: InventoryReport<'a>,
    reasons: BTreeMap<String, Vec<String>>,
    installation_disk: BTreeMap<String, String>,
    disks_to_be_formatted: Vec<String>,
}

const LARGE: i64 = 120 * GB;

fn disk(name: &str, drive_type: &str) -> DiskSummary {
    DiskSummary {
        id: format!("/dev/disk/by-id/{name}").into(),
        name: name.into(),
        drive_type: drive_type.into(),
        size_bytes: LARGE,
        ..DiskSummary::default()
    }
}

fn path(name: &str, drive_type: &str, holders: &str) -> DiskSummary {
    DiskSummary { holders: holders.into(), ..disk(name, drive_type) }
}

fn iscsi(address: &str, holders: &str) -> DiskSummary {
    DiskSummary { iscsi_host_address: address.into(), ..path("sdi", ISCSI, holders) }
}

fn inventory(disks: Vec<DiskSummary>) -> InventorySummary {
    let nic = |name: &str, addresses: &[&str]| NicSummary {
        name: name.into(),
        addresses: addresses.iter().map(|address| Cidr::parse(address).unwrap()).collect(),
        ..NicSummary::default()
    };
    InventorySummary {
        architecture: "x86_64".into(),
        nics: vec![
            nic("eth0", &["192.168.1.11/24", "fd01::11/64"]),
            nic("eth1", &["10.0.0.1/8", "fd02::1/64"]),
        ],
        routes: vec![
            route("192.168.1.0", "eth1", 1),
            route("0.0.0.0", "eth1", 101),
            route("0.0.0.0", "eth0", 100),
        ],
        disks,
        ..InventorySummary::default()
    }
}

fn route(destination: &str, nic: &str, metric: i64) -> RouteSummary {
    RouteSummary { destination: Some(destination.parse().unwrap()), gateway: None, nic: nic.into(), metric }
}

fn rules() -> DiskRules {
    DiskRules { min_bytes: 100 * GB, drive_types: allowed_drive_types(None, "x86_64") }
}

fn reasons_with(inventory: &InventorySummary, rules: &DiskRules) -> Vec<Vec<String>> {
    let reasons = eligibility(inventory, rules);
    reasons.iter().map(|reasons| reasons.iter().map(str::to_owned).collect()).collect()
}

fn reasons(disks: Vec<DiskSummary>) -> Vec<Vec<String>> {
    reasons_with(&inventory(disks), &rules())
}

fn reasons_of_one(disk: DiskSummary) -> Vec<String> {
    reasons(vec![disk]).pop().unwrap()
}

#[test]
fn reasons_match_the_recording() {
    let recorded: Recorded<'_> = serde_json::from_str(RECORDED).unwrap();
    let version = Version::parse(&recorded.openshift_version);
    let requirements = HardwareRequirements::default().for_version("").worker;
    let requirements = HostRequirements { disk_size_gb: recorded.min_disk_gb, ..requirements };
    let mut summary = HostSummary::default();
    summary.set_inventory(&recorded.inventory, VirtualInterfaces::Drop);
    let inventory = summary.inventory.unwrap();
    let rules = DiskRules::new(&requirements, version.as_ref(), &inventory.architecture);
    let reasons = eligibility(&inventory, &rules);
    assert_eq!(reasons.len(), 31);
    for (disk, disk_reasons) in inventory.disks.iter().zip(&reasons) {
        let disk_reasons: Vec<_> = disk_reasons.iter().collect();
        assert_eq!(disk_reasons, recorded.reasons[&*disk.name], "{}", disk.name);
    }
    let disk = installation_disk(&inventory, &reasons, None).unwrap();
    assert_eq!(disk.id, recorded.installation_disk["id"]);
    assert_eq!(disk.path, recorded.installation_disk["path"]);
    assert_eq!(disks_to_be_formatted(&inventory), recorded.disks_to_be_formatted);
}

#[test]
fn drive_types_depend_on_version_and_architecture() {
    let types = |version: &str, architecture: &str| {
        allowed_drive_types(Version::parse(version).as_ref(), architecture).join(", ")
    };
    assert_eq!(types("4.13.50", "aarch64"), "HDD, SSD, Multipath");
    assert_eq!(types("4.14.0-rc.1", "aarch64"), "HDD, SSD, Multipath, RAID");
    assert_eq!(types("4.15.0-ec.0", "ppc64le"), "HDD, SSD, Multipath, RAID, iSCSI");
    assert_eq!(types("5.0", "x86_64"), "HDD, SSD, Multipath, RAID, iSCSI, FC");
    assert_eq!(types("4.13", "s390x"), "HDD, SSD, Multipath, FC, ECKD (ESE), ECKD, FBA");
    assert_eq!(types("unknown", "x86_64"), types("4.22", "x86_64"));
}

#[test]
fn rules_have_the_disk_size_in_bytes() {
    let requirements = HardwareRequirements::default().for_version("").arbiter;
    assert_eq!(DiskRules::new(&requirements, None, "x86_64").min_bytes, 50_000_000_000);
    let huge = HostRequirements { disk_size_gb: i64::MAX, ..requirements };
    assert_eq!(DiskRules::new(&huge, None, "x86_64").min_bytes, i64::MAX);
}

#[test]
fn too_small_disk_reports_the_difference_if_rounded_sizes_are_equal() {
    let sized = |size_bytes| reasons_of_one(DiskSummary { size_bytes, ..disk("sda", "SSD") });
    assert!(sized(100 * GB).is_empty());
    assert_eq!(
        sized(100 * GB - 1),
        ["Disk is too small (disk only has 100 GB (short by 1 B), but 100 GB are required)"]
    );
    assert_eq!(
        sized(100 * GB - 1_000_000),
        ["Disk is too small (disk only has 99.999 GB, but 100 GB are required)"]
    );
    assert_eq!(
        sized(i64::MIN),
        ["Disk is too small (disk only has -9223372036854775808 B, but 100 GB are required)"]
    );
    assert!(sized(i64::MAX).is_empty());
}

#[test]
fn outdated_reasons_of_the_service_are_replaced() {
    let agent_reasons = [
        "Disk is an LVM logical volume",
        "Disk is too small (disk only has 1 GB, but 100 GB are required)",
        "Disk is too small (disk only has 100 GB, but 100 GB are required) (short by 1 B)",
        "Drive type is LVM, it must be one of HDD, SSD.",
        "Disk is a member of multipath device dm-0 and is not eligible for installation. Use the multipath device instead.",
        "Multipath device has path of unsupported type. It must be FC, iSCSI",
        "Multipath device has paths of different types, but they must all be the same type",
        "Installation on multipath device is not possible due to errors on at least one iSCSI disk",
        "Host IP address is not available",
        "Cannot parse iSCSI host IP x: invalid",
        "Cannot find the network interface behind the default route",
        "iSCSI host IP 192.168.1.11 is the same as host IP, they must be different",
        "Disk has partition 'sda1' mounted on '/mnt'",
    ];
    let agent_reasons = agent_reasons.map(Into::into).to_vec();
    let reasons = reasons_of_one(DiskSummary { agent_reasons, ..disk("sda", "ODD") });
    assert_eq!(
        reasons,
        [
            "Disk is an LVM logical volume",
            "Disk has partition 'sda1' mounted on '/mnt'",
            "Drive type is ODD, it must be one of HDD, SSD, Multipath, RAID, iSCSI, FC.",
        ]
    );
}

#[test]
fn all_reasons_of_the_service_are_recognized() {
    let rules = DiskRules { min_bytes: 200 * GB, drive_types: vec!["HDD"] };
    let mut inventory = inventory(vec![
        disk("dm-0", MULTIPATH),
        disk("dm-1", MULTIPATH),
        path("sda", FC, "dm-0"),
        iscsi("", "dm-0"),
        iscsi("x", ""),
        iscsi("192.168.1.11", ""),
        iscsi("fd01::1", ""),
    ]);
    inventory.routes.push(route("::", "br0", 1));
    let first = reasons_with(&inventory, &rules);
    assert!(first.iter().all(|reasons| reasons.len() >= 2), "each disk is too small and of a wrong type");
    for (disk, reasons) in inventory.disks.iter_mut().zip(&first) {
        disk.agent_reasons = reasons.iter().map(|reason| reason.as_str().into()).collect();
    }
    assert_eq!(reasons_with(&inventory, &rules), first);
    for beginning in iscsi::REASONS.into_iter().chain(multipath::REASONS) {
        assert!(first.iter().flatten().any(|reason| reason.starts_with(beginning)), "{beginning}");
    }
}

#[test]
fn multipath_member_is_ineligible() {
    let member = |device: &str| {
        format!(
            "Disk is a member of multipath device {device} and is not eligible for installation. Use the multipath device instead."
        )
    };
    for (disk, expected) in [
        (path("sda", FC, "dm-1"), vec![member("dm-1")]),
        (path("sda", FC, "dm-7,dm-2 ,dm-1"), vec![member("dm-2")]),
        (iscsi("10.0.0.9", "dm-1"), vec![member("dm-1")]),
        (path("sda", FC, "dm-10"), vec![]),
        (path("sda", FC, "dm-3"), vec![]),
        (path("sda", FC, ""), vec![]),
        (path("sda", "HDD", "dm-1"), vec![]),
    ] {
        let holders = disk.holders.clone();
        let disks = vec![
            disk,
            self::disk("dm-1", MULTIPATH),
            self::disk("dm-2", MULTIPATH),
            self::disk("dm-3", "LVM"),
        ];
        assert_eq!(reasons(disks)[0], expected, "{holders}");
    }
    let unnamed = vec![path("sda", FC, ","), disk("", MULTIPATH)];
    assert!(reasons(unnamed)[0].is_empty());
}

#[test]
fn multipath_device_needs_paths_of_one_supported_type() {
    const UNSUPPORTED: &str = "Multipath device has path of unsupported type. It must be FC, iSCSI";
    const DIFFERENT: &str =
        "Multipath device has paths of different types, but they must all be the same type";
    let device = |mut paths: Vec<DiskSummary>| {
        paths.push(disk("dm-0", MULTIPATH));
        reasons(paths).pop().unwrap()
    };
    let fc = || path("sda", FC, "dm-0");
    assert!(device(vec![fc(), fc()]).is_empty());
    assert!(device(vec![iscsi("10.0.0.9", "dm-0"), iscsi("10.0.0.8", "dm-0")]).is_empty());
    assert_eq!(device(vec![]), [UNSUPPORTED]);
    assert_eq!(device(vec![path("sda", FC, "dm-01")]), [UNSUPPORTED]);
    assert_eq!(device(vec![path("sda", "HDD", "dm-0"), path("sdb", "SSD", "dm-0")]), [UNSUPPORTED]);
    assert_eq!(device(vec![fc(), iscsi("10.0.0.9", "dm-0")]), [DIFFERENT]);
    assert_eq!(device(vec![path("sdb", "HDD", "dm-0"), fc()]), [DIFFERENT]);
    assert_eq!(device(vec![fc(), path("sdb", "HDD", "dm-0"), fc()]), [DIFFERENT]);
}

#[test]
fn multipath_device_is_ineligible_if_one_of_its_iscsi_disks_has_an_error() {
    const ERROR: &str =
        "Installation on multipath device is not possible due to errors on at least one iSCSI disk";
    let paths = |address| vec![disk("dm-0", MULTIPATH), iscsi("10.0.0.9", "dm-0"), iscsi(address, "dm-0")];
    assert!(reasons(paths("10.0.0.8"))[0].is_empty());
    for address in ["", "x", "192.168.1.11"] {
        assert_eq!(reasons(paths(address))[0], [ERROR], "{address}");
    }
    let version = Version::parse("4.14.9");
    let rules = DiskRules { drive_types: allowed_drive_types(version.as_ref(), "x86_64"), ..rules() };
    assert_eq!(reasons_with(&inventory(paths("10.0.0.8")), &rules)[0], [ERROR]);
    let unrelated = vec![disk("dm-0", MULTIPATH), iscsi("10.0.0.9", "dm-0"), iscsi("", "dm-1")];
    assert!(reasons(unrelated)[0].is_empty());
}

#[test]
fn iscsi_disk_must_not_use_the_network_of_the_default_route() {
    let same =
        |address: &str| format!("iSCSI host IP {address} is the same as host IP, they must be different");
    for (address, expected) in [
        ("", Some("Host IP address is not available".to_owned())),
        ("x", Some("Cannot parse iSCSI host IP x: invalid IP address syntax".to_owned())),
        ("192.168.1.11", Some(same("192.168.1.11"))),
        ("192.168.1.12", None),
        ("10.0.0.1", None),
        ("fd01::11", None),
    ] {
        let reasons = reasons_of_one(iscsi(address, ""));
        assert_eq!(reasons, expected.into_iter().collect::<Vec<_>>(), "{address}");
    }
    let mut with_ipv6 = inventory(vec![iscsi("fd01:0::11", "")]);
    with_ipv6.routes.push(route("::", "eth0", 1));
    assert_eq!(reasons_with(&with_ipv6, &rules()), [[same("fd01::11")]]);
    let mut without_nic = inventory(vec![iscsi("10.0.0.1", "")]);
    without_nic.nics.remove(0);
    assert_eq!(
        reasons_with(&without_nic, &rules()),
        [["Cannot find the network interface behind the default route"]]
    );
    without_nic.routes.clear();
    assert_eq!(reasons_with(&without_nic, &rules()), [[""; 0]]);
}

#[test]
fn non_iscsi_disk_needs_no_iscsi_address() {
    assert!(reasons_of_one(disk("sda", "HDD")).is_empty());
}

#[test]
fn bootable_slow_and_small_disks_are_preferred() {
    let nvme = disk("nvme0n1", "HDD");
    let ssd = disk("sda", "SSD");
    let large = DiskSummary { size_bytes: LARGE + 1, ..disk("sdb", "HDD") };
    let hctl = |name: &str, hctl: &str| DiskSummary { hctl: hctl.into(), ..disk(name, "HDD") };
    let bootable = DiskSummary { bootable: true, ..disk("nvme1n1", "SSD") };
    let mut disks = vec![
        nvme,
        ssd,
        large,
        hctl("sdc", "2:0:0:0"),
        hctl("sdd", "1:0:0:0"),
        hctl("sde", "1:0:0:0"),
        bootable,
    ];
    let mut order = Vec::new();
    while !disks.is_empty() {
        let inventory = inventory(disks.clone());
        let reasons = vec![DiskReasons::default(); disks.len()];
        let best = installation_disk(&inventory, &reasons, None).unwrap();
        disks.retain(|disk| *disk.id != best.id);
        order.push(best.path);
    }
    let expected = ["nvme1n1", "sdd", "sde", "sdc", "sdb", "sda", "nvme0n1"];
    assert_eq!(order, expected.map(|name| format!("/dev/{name}")));
}

#[test]
fn preferred_disk_is_used_while_it_is_eligible() {
    let linked = DiskSummary { by_path: "/dev/disk/by-path/c".into(), ..disk("sdc", "SSD") };
    let inventory = inventory(vec![disk("sda", "HDD"), disk("sdb", "SSD"), linked]);
    let none = DiskReasons::default();
    let all = vec![none.clone(); 3];
    let path_of =
        |reasons: &[DiskReasons], name| installation_disk(&inventory, reasons, name).map(|it| it.path);
    for (name, path) in [
        (None, "/dev/sda"),
        (Some("/dev/disk/by-id/sdb"), "/dev/sdb"),
        (Some("/dev/sdb"), "/dev/sdb"),
        (Some("/dev/disk/by-path/c"), "/dev/sdc"),
        (Some("sdb"), "/dev/sda"),
        (Some(""), "/dev/sda"),
        (Some("/dev/sdx"), "/dev/sda"),
    ] {
        assert_eq!(path_of(&all, name).as_deref(), Some(path), "{name:?}");
    }
    let bad: DiskReasons = ["reason"].into_iter().collect();
    assert_eq!(path_of(&[none.clone(), bad.clone(), none], Some("/dev/sdb")).as_deref(), Some("/dev/sda"));
    assert_eq!(path_of(&[bad.clone(), bad.clone(), bad], Some("/dev/sdb")), None);
}

#[test]
fn unnamed_disk_does_not_match_a_device_prefix() {
    let unnamed = disk("", "HDD");
    assert!(!is_named(&unnamed, "/dev/"));
    assert!(!is_named(&unnamed, ""));
}

#[test]
fn only_fixed_bootable_local_disks_are_formatted() {
    let bootable = |disk: DiskSummary| DiskSummary { bootable: true, ..disk };
    let disks = vec![
        disk("sda", "HDD"),
        bootable(disk("sdb", "HDD")),
        DiskSummary { removable: true, ..bootable(disk("sdc", "HDD")) },
        bootable(disk("mmcblk0", "SSD")),
        DiskSummary { by_path: "/dev/disk/by-path/x-mmcblk1".into(), ..bootable(disk("sdd", "SSD")) },
        bootable(disk("sde", FC)),
        bootable(disk("sdf", ISCSI)),
        bootable(disk("dm-0", "LVM")),
        bootable(disk("dm-1", MULTIPATH)),
        DiskSummary { is_installation_media: true, ..bootable(disk("sr0", "ODD")) },
        DiskSummary { id: "/dev/md0".into(), ..bootable(disk("md0", "RAID")) },
    ];
    assert_eq!(disks_to_be_formatted(&inventory(disks)), ["/dev/disk/by-id/sdb", "/dev/md0"]);
}

#[test]
fn long_holder_lists_take_linear_time() {
    let holders = (0..256).map(|device| format!("dm-{device}")).collect::<Vec<_>>().join(",");
    let mut disks: Vec<_> = (0..128).map(|number| path(&format!("sd{number}"), FC, &holders)).collect();
    disks.extend((0..128).map(|number| disk(&format!("dm-{number}"), MULTIPATH)));
    let reasons_by_disk = reasons(disks);
    assert!(reasons_by_disk[..128].iter().all(|reasons| reasons.len() == 1));
    assert!(reasons_by_disk[128..].iter().all(Vec::is_empty));
}

fn any_disk() -> impl Strategy<Value = DiskSummary> {
    let drive_type = select(vec!["HDD", "SSD", FC, ISCSI, MULTIPATH, "LVM", "RAID", "ODD", ""]);
    let address = select(vec!["", "192.168.1.11", "10.0.0.9", "fd01::11", "x, y"]);
    let agent_reason =
        select(vec!["", "Agent says no", "Drive type is x", "Disk is too small (disk only has"]);
    (drive_type, "dm-[01]|sda", "(dm-[01]|,| ){0,4}", address, any::<i64>(), vec(agent_reason, 0..3))
        .prop_map(|(drive_type, name, holders, address, size_bytes, agent_reasons)| DiskSummary {
            iscsi_host_address: address.into(),
            size_bytes,
            agent_reasons: agent_reasons.into_iter().map(Into::into).collect(),
            ..path(&name, drive_type, &holders)
        })
}

proptest! {
    #[test]
    fn reasons_stay_the_same_if_the_report_contains_them(disks in vec(any_disk(), 0..8), has_route in any::<bool>()) {
        let mut inventory = inventory(disks);
        if has_route {
            inventory.routes.push(route("::", "eth7", 1));
        }
        let first = eligibility(&inventory, &rules());
        prop_assert_eq!(first.len(), inventory.disks.len());
        for (disk, reasons) in inventory.disks.iter_mut().zip(&first) {
            disk.agent_reasons = reasons.iter().map(Into::into).collect();
        }
        prop_assert_eq!(eligibility(&inventory, &rules()), first);
    }
}
