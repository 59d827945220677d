//! Networks and addresses of clusters: accepted and refused values.

use serde_json::{Value, json};

use crate::cluster_rules::{assert_accepted, assert_refused, assert_refused_on_create};
use crate::clusters::{cluster_path, create_cluster};
use crate::service::on_each_database;

#[test]
fn network_lists_are_checked() {
    on_each_database(async |service| {
        let pods =
            |cidr: &str, prefix: i64| json!({"cluster_networks": [{"cidr": cidr, "host_prefix": prefix}]});
        let services = |cidr: &str| json!({"service_networks": [{"cidr": cidr}]});
        let machines = |cidrs: &[&str]| json!({"machine_networks": cidrs.iter().map(|cidr| json!({"cidr": cidr})).collect::<Vec<_>>()});
        assert_accepted(
            service,
            vec![
                pods("10.0.0.0/16", 16),
                pods("fd10::/48", 64),
                services("fd12::/112"),
                machines(&["192.0.2.0/24", "2001:db8::/64"]),
                json!({"cluster_networks": [], "service_networks": []}),
                json!({"cluster_network_host_prefix": 25}),
            ],
        )
        .await;
        let many: Vec<_> = (0..=u8::MAX)
            .flat_map(|byte| [format!("192.0.{byte}.0/25"), format!("192.0.{byte}.128/25")])
            .collect();
        let many: Vec<_> = many.iter().map(String::as_str).collect();
        assert_refused(
            service,
            vec![
                (
                    pods("10.0.0.0/16", 15),
                    "Host prefix, now 15, must be between 16 and 31 for the cluster network 10.0.0.0/16",
                ),
                (pods("10.0.0.0/16", 32), "Host prefix, now 32"),
                (
                    pods("10.0.0.0/16", 0),
                    "cluster_networks.0.host_prefix in body should be greater than or equal to 1",
                ),
                (
                    pods("10.0.0.0/16", 129),
                    "cluster_networks.0.host_prefix in body should be less than or equal to 128",
                ),
                (pods("10.0.0.1/16", 24), "10.0.0.1/16 is not a valid network CIDR"),
                (pods("300.0.0.0/16", 24), "300.0.0.0/16 is not a valid network CIDR"),
                (pods("10.0.0.0/33", 24), "cluster_networks.0.cidr in body should match"),
                (
                    json!({"cluster_networks": [{"cidr": "10.0.0.0/16"}]}),
                    "cluster_networks.0.host_prefix in body is required",
                ),
                (services("172.30.0.0"), "service_networks.0.cidr in body should match"),
                (services("10.130.0.0/16"), "CIDRS 10.128.0.0/14 and 10.130.0.0/16 overlap"),
                (machines(&["172.30.5.0/24"]), "CIDRS 172.30.0.0/16 and 172.30.5.0/24 overlap"),
                (machines(&["192.0.2.0/24", "192.0.2.0/24"]), "CIDRS 192.0.2.0/24 and 192.0.2.0/24 overlap"),
                (machines(&many), "a cluster may have at most 256 networks"),
                (json!({"cluster_network_cidr": "x"}), "cluster_network_cidr in body should match"),
                (json!({"service_network_cidr": "10.128.0.0/16"}), "overlap"),
            ],
        )
        .await;
    });
}

#[test]
fn network_sizes_are_checked() {
    on_each_database(async |service| {
        let pods = |cidr: &str| json!({"cluster_networks": [{"cidr": cidr, "host_prefix": 30}]});
        let services = |cidr: &str| json!({"service_network_cidr": cidr});
        let machines = |cidr: &str| json!({"machine_networks": [{"cidr": cidr}]});
        let balanced = |cidr: &str| json!({"machine_networks": [{"cidr": cidr}], "load_balancer": {"type": "user-managed"}});
        assert_accepted(
            service,
            vec![
                pods("10.0.0.0/25"),
                services("fd12::/121"),
                machines("192.0.2.16/28"),
                balanced("192.0.2.16/30"),
            ],
        )
        .await;
        assert_refused(
            service,
            vec![
                (pods("10.0.0.0/26"), "10.0.0.0/26 has 64 addresses, at least 128 are required"),
                (services("fd12::/122"), "fd12::/122 has 64 addresses, at least 128 are required"),
                (machines("192.0.2.16/29"), "192.0.2.16/29 has 8 addresses, at least 16 are required"),
                (balanced("192.0.2.16/31"), "192.0.2.16/31 has 2 addresses, at least 4 are required"),
            ],
        )
        .await;
        let single = create_cluster(service, &json!({"control_plane_count": 1})).await;
        service.patch(&cluster_path(&single), &machines("192.0.2.16/31")).await.json_with_status(201);
        let reason =
            service.patch(&cluster_path(&single), &machines("192.0.2.16/32")).await.refusal_reason(400);
        assert_eq!(reason, "192.0.2.16/32 has 1 addresses, at least 2 are required");
    });
}

#[test]
fn dual_stack_networks_are_checked() {
    on_each_database(async |service| {
        let list = |key: &str, cidrs: &[&str]| json!({key: cidrs.iter().map(|cidr| json!({"cidr": cidr})).collect::<Vec<_>>()});
        let (machines, services) = ("machine_networks", "service_networks");
        let with = |mut one: Value, other: Value| {
            one.as_object_mut().unwrap().extend(other.as_object().unwrap().clone());
            one
        };
        let (v4, v6) = ("192.0.2.0/24", "2001:db8::/64");
        assert_accepted(
            service,
            vec![
                list(machines, &[v6, v4]),
                list(machines, &[v4, "198.51.100.0/24", "203.0.113.0/24"]),
                with(list(machines, &[v6, v4]), list(services, &["fd02::/112", "172.30.0.0/16"])),
            ],
        )
        .await;
        assert_refused(
            service,
            vec![
                (
                    list(machines, &[v4, v6, "198.51.100.0/24"]),
                    "dual-stack machine_networks needs exactly two entries, got 3",
                ),
                (
                    with(list(machines, &[v4, v6]), list(services, &["fd02::/112", "172.30.0.0/16"])),
                    "dual-stack service_networks and machine_networks must list IP families in the same order",
                ),
                (
                    with(list(machines, &[v6]), json!({"vip_dhcp_allocation": true})),
                    "VIP DHCP Allocation requires IPv4, 2001:db8::/64 is IPv6",
                ),
                (
                    json!({"vip_dhcp_allocation": true, "load_balancer": {"type": "user-managed"}}),
                    "VIP DHCP Allocation cannot be enabled with a user-managed load balancer",
                ),
                (
                    json!({"network_type": "OpenShiftSDN"}),
                    "network_type OpenShiftSDN is not supported in OpenShift 4.15 and later",
                ),
            ],
        )
        .await;
        create_cluster(service, &json!({"network_type": "OpenShiftSDN", "openshift_version": "4.14"})).await;
        let vips = json!({"api_vips": [{"ip": "192.0.2.2"}], "ingress_vips": [{"ip": "192.0.2.3"}]});
        let single = json!({"control_plane_count": 1, "platform": {"type": "vsphere"}});
        let reason = "API VIP and Ingress VIP cannot be set with single node OpenShift";
        assert_refused_on_create(service, vec![(with(single.clone(), vips.clone()), reason)]).await;
        let cluster = create_cluster(service, &single).await;
        assert_eq!(service.patch(&cluster_path(&cluster), &vips).await.refusal_reason(400), reason);
    });
}

#[test]
fn vip_addresses_are_checked() {
    on_each_database(async |service| {
        let vips = |api: &[&str], ingress: &[&str]| {
            let list = |ips: &[&str]| ips.iter().map(|ip| json!({"ip": ip})).collect::<Vec<_>>();
            json!({"api_vips": list(api), "ingress_vips": list(ingress)})
        };
        let mut shared = vips(&["192.0.2.2"], &["192.0.2.2"]);
        shared["load_balancer"] = json!({"type": "user-managed"});
        assert_accepted(
            service,
            vec![
                vips(&["192.0.2.2"], &["192.0.2.3"]),
                vips(&["192.0.2.2", "2001:db8::2"], &["192.0.2.3", "2001:db8::3"]),
                vips(&[""], &[]),
                shared,
            ],
        )
        .await;
        let with = |mut vips: Value, key: &str, value: Value| {
            vips[key] = value;
            vips
        };
        let both = || vips(&["192.0.2.2"], &["192.0.2.3"]);
        assert_refused(
            service,
            vec![
                (vips(&["192.0.2.2"], &[]), "the same number of apiVIPs (got 1) and ingressVIPs (got 0)"),
                (
                    vips(&["192.0.2.2"], &["192.0.2.2"]),
                    "The IP address 192.0.2.2 is both an API VIP and an Ingress VIP",
                ),
                (
                    vips(&["192.0.2.2", "192.0.2.4"], &["192.0.2.3", "192.0.2.5"]),
                    "API VIPs: at most one IPv4 and one IPv6 address",
                ),
                (vips(&["192.0.2.300"], &["192.0.2.3"]), "API VIP \"192.0.2.300\" is not a valid IP address"),
                (vips(&["name"], &["192.0.2.3"]), "api_vips.0.ip in body should match"),
                (
                    json!({"api_vips": [{"ip": "192.0.2.2", "verification": "maybe"}]}),
                    "should be one of [unverified failed succeeded]",
                ),
                (
                    with(both(), "vip_dhcp_allocation", json!(true)),
                    "Setting API VIP is forbidden when cluster is in vip-dhcp-allocation mode",
                ),
                (
                    with(both(), "user_managed_networking", json!(true)),
                    "API VIP cannot be set with User Managed Networking",
                ),
                (
                    json!({"vip_dhcp_allocation": true, "user_managed_networking": true}),
                    "VIP DHCP Allocation cannot be enabled with User Managed Networking",
                ),
            ],
        )
        .await;
    });
}
