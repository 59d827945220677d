use std::sync::Arc;

use super::*;
use crate::summary::{HostSummary, VendorSummary};

/// The table that the deployment files of the Assisted Installer contain.
const SHIPPED: &str = r#"[
    {"version": "default",
     "master": {"cpu_cores": 4, "ram_mib": 16384, "disk_size_gb": 100, "installation_disk_speed_threshold_ms": 10,
                "network_latency_threshold_ms": 100, "packet_loss_percentage": 0},
     "arbiter": {"cpu_cores": 2, "ram_mib": 8192, "disk_size_gb": 50, "installation_disk_speed_threshold_ms": 10,
                 "network_latency_threshold_ms": 1000, "packet_loss_percentage": 0},
     "worker": {"cpu_cores": 2, "ram_mib": 8192, "disk_size_gb": 100, "installation_disk_speed_threshold_ms": 10,
                "network_latency_threshold_ms": 1000, "packet_loss_percentage": 10},
     "sno": {"cpu_cores": 8, "ram_mib": 16384, "disk_size_gb": 100, "installation_disk_speed_threshold_ms": 10},
     "edge-worker": {"cpu_cores": 2, "ram_mib": 8192, "disk_size_gb": 15, "installation_disk_speed_threshold_ms": 10}},
    {"version": "4.22", "match_type": "min_version", "sno": {"cpu_cores": 4}}
]"#;

fn cluster(control_plane_count: i64) -> ClusterSettings {
    ClusterSettings {
        version: Version::parse("4.18.52"),
        control_plane_count,
        ..ClusterSettings::new("00000000-0000-0000-0000-000000000001".parse().unwrap())
    }
}

fn host(role: HostRole, suggested_role: HostRole, inventory: Option<InventorySummary>) -> HostView {
    let summary = HostSummary { inventory: inventory.map(Box::new), ..HostSummary::default() };
    let (id, infra_env_id) = ("00000000-0000-0000-0000-000000000002", "00000000-0000-0000-0000-000000000003");
    HostView {
        role,
        suggested_role,
        summary: Arc::new(summary),
        ..HostView::new(id.parse().unwrap(), infra_env_id.parse().unwrap())
    }
}

fn machine(architecture: &str, product: &str) -> InventorySummary {
    let vendor = VendorSummary { product: product.into(), ..VendorSummary::default() };
    InventorySummary {
        architecture: architecture.into(),
        vendor: Some(vendor),
        ..InventorySummary::default()
    }
}

#[test]
fn built_in_table_equals_the_shipped_table() {
    assert_eq!(HardwareRequirements::parse(SHIPPED).unwrap(), HardwareRequirements::default());
}

#[test]
fn exact_version_takes_precedence_over_min_version_and_default() {
    let json = SHIPPED.trim_end().trim_end_matches(']').to_owned()
        + r#", {"version": "4.9", "match_type": "min_version", "sno": {"cpu_cores": 9}},
              {"version": "4.20.0-rc.1", "match_type": "min_version", "sno": {"cpu_cores": 20}},
              {"version": "4.20.3", "sno": {"cpu_cores": 203}},
              {"version": "4.21", "match_type": "exact", "sno": {"cpu_cores": 21}}]"#;
    let table = HardwareRequirements::parse(&json).unwrap();
    for (version, cores) in [
        ("", 8),
        ("latest", 8),
        ("default", 8),
        ("4.8.57", 8),
        ("4.9", 9),
        ("4.19.20", 9),
        ("4.20.0-ec.0", 20),
        ("4.20.3", 203),
        ("4.20.3-multi", 20),
        ("4.20.4", 20),
        ("4.21", 21),
        ("4.21.0", 20),
        ("4.22.0-ec.1", 4),
        ("5.0.0", 4),
    ] {
        assert_eq!(table.for_version(version).sno.cpu_cores, cores, "{version}");
    }
}

#[test]
fn requirements_depend_on_the_effective_role() {
    use HostRole::{Arbiter, AutoAssign, Master, Worker};
    let table = HardwareRequirements::default();
    let roles = table.for_version("4.18.52");
    for (role, suggested_role, nodes, expected) in [
        (Master, AutoAssign, 3, roles.master),
        (Master, AutoAssign, 1, roles.sno),
        (AutoAssign, Master, 1, roles.sno),
        (AutoAssign, AutoAssign, 1, roles.worker),
        (Worker, Master, 1, roles.worker),
        (Worker, Master, 3, roles.worker),
        (Arbiter, Worker, 2, roles.arbiter),
        (AutoAssign, Arbiter, 2, roles.arbiter),
        (AutoAssign, AutoAssign, 0, roles.worker),
    ] {
        let host = host(role, suggested_role, None);
        assert_eq!(table.for_host(&cluster(nodes), &host), expected, "{role:?} {suggested_role:?}");
        assert_eq!(table.total_for_host(&cluster(nodes), &host), expected);
    }
}

#[test]
fn edge_worker_needs_architecture_product_and_role() {
    use HostRole::{Arbiter, AutoAssign, Master, Worker};
    let table = HardwareRequirements::default();
    let others = table.clone().with_edge_worker_products("Foo Bar, baz,");
    for (table, architecture, product, role, disk_size_gb) in [
        (&table, "aarch64", "BlueField SoC", Worker, 15),
        (&table, "aarch64", " bluefield  SOC", AutoAssign, 15),
        (&table, "aarch64", "BlueField SoC", Master, 100),
        (&table, "aarch64", "BlueField SoC", Arbiter, 50),
        (&table, "x86_64", "BlueField SoC", Worker, 100),
        (&table, "aarch64", "BlueField SoC 2", Worker, 100),
        (&others, "aarch64", "FooBar", Worker, 15),
        (&others, "aarch64", "BAZ", Worker, 15),
        (&others, "aarch64", "", Worker, 100),
        (&others, "aarch64", "BlueField SoC", Worker, 100),
    ] {
        let host = host(role, AutoAssign, Some(machine(architecture, product)));
        let requirements = table.for_host(&cluster(3), &host);
        assert_eq!(requirements.disk_size_gb, disk_size_gb, "{architecture} {product} {role:?}");
    }
    let no_vendor = InventorySummary { architecture: "aarch64".into(), ..InventorySummary::default() };
    let host = host(Worker, Worker, Some(no_vendor));
    assert_eq!(others.for_host(&cluster(3), &host).disk_size_gb, 100);
}

#[test]
fn unbound_host_needs_the_smallest_disk() {
    let sized = |worker: i64, master: i64, arbiter: i64| {
        let role = |size: i64| format!(r#"{{"cpu_cores": {size}, "ram_mib": 8192, "disk_size_gb": {size}}}"#);
        let (worker, master, arbiter) = (role(worker), role(master), role(arbiter));
        let json = format!(
            r#"[{{"version": "default", "worker": {worker}, "master": {master}, "arbiter": {arbiter}, "sno": {master}}}]"#
        );
        HardwareRequirements::parse(&json).unwrap().for_unbound_host("").disk_size_gb
    };
    assert_eq!(HardwareRequirements::default().for_unbound_host("4.18").disk_size_gb, 50);
    assert_eq!(sized(1, 2, 3), 1);
    assert_eq!(sized(3, 2, 1), 1);
    assert_eq!(sized(3, 1, 2), 1);
}

#[test]
fn unbound_host_has_worker_requirements_if_disks_are_equal() {
    let json = SHIPPED.replace("\"disk_size_gb\": 50", "\"disk_size_gb\": 100");
    let table = HardwareRequirements::parse(&json).unwrap();
    let worker = table.for_version("4.18").worker;
    assert_eq!(table.for_unbound_host("4.18"), worker);
}

#[test]
fn minimum_of_any_role_is_the_lower_of_master_and_worker() {
    let minimum = |json: &str, cluster: Option<&ClusterSettings>| {
        let table = HardwareRequirements::parse(json).unwrap();
        let minimum = table.for_version("4.18.1").minimum_of_any_role(cluster);
        (minimum.cpu_cores, minimum.ram_mib)
    };
    assert_eq!(minimum(SHIPPED, None), (2, 8192));
    assert_eq!(minimum(SHIPPED, Some(&cluster(1))), (2, 8192));
    let demanding_worker =
        SHIPPED.replace("\"cpu_cores\": 2, \"ram_mib\": 8192", "\"cpu_cores\": 6, \"ram_mib\": 20000");
    assert_eq!(minimum(&demanding_worker, None), (4, 16384));
    assert_eq!(minimum(&demanding_worker, Some(&cluster(3))), (4, 16384));
    assert_eq!(minimum(&demanding_worker, Some(&cluster(1))), (6, 16384));
}

#[test]
fn cluster_of_unknown_version_uses_the_default_entry() {
    let table = HardwareRequirements::default();
    let unknown = ClusterSettings { version: None, ..cluster(3) };
    assert_eq!(table.for_cluster(&unknown), table.for_version("4.18.1"));
    let newest = ClusterSettings { version: Version::parse("4.22.1"), ..cluster(3) };
    assert_eq!(table.for_cluster(&newest).sno.cpu_cores, 4);
}
