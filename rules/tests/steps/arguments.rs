//! Tests step arguments that do not occur in the recordings, and properties of whole responses.

use std::collections::BTreeSet;
use std::sync::Arc;

use assisted::Secret;
use assisted::cluster::{ClusterKind, DiskEncryption, DiskEncryptionMode, IgnitionEndpoint, NodeRoles};
use assisted::host::{Header, HostKind, HostRole, HostStatus};
use assisted::step::{PostStepAction, StepType};
use ignition::Cidr;
use rules::steps::{PlannedSteps, StepInput, StepSettings, must_upgrade, steps};
use rules::summary::{HostSummary, IgnitionEndpoint as EndpointSummary};
use rules::view::{ClusterSettings, HostView};

use crate::machines::{args, cluster, host, id, nic, plan, settings, simple_host, view};

const TANG: &str = r#"[{"url":"http://tang:7500","thumbprint":"abc"}]"#;

fn machine() -> HostView {
    simple_host(1, "192.168.1.11/24")
}

fn joining() -> HostView {
    HostView { kind: HostKind::Joining, role: HostRole::Worker, ..machine() }
}

fn plan_in(host: &HostView, cluster: ClusterSettings) -> PlannedSteps {
    plan(host, Some(&view(cluster, std::slice::from_ref(host))), &settings())
}

/// Returns the argument of a step that has exactly one argument.
fn only(planned: &PlannedSteps, step_type: StepType) -> Option<&str> {
    args(&planned.steps, step_type).map(|args| match args {
        [argument] => argument.as_str(),
        _ => panic!("{args:?}"),
    })
}

fn reason(planned: &PlannedSteps, step_type: StepType) -> Option<&str> {
    let mut skipped = planned.skipped.iter();
    skipped.find(|(skipped, _)| *skipped == step_type).map(|(_, reason)| reason.as_str())
}

#[test]
fn inventory_step_contains_the_report_limits() {
    let host = HostView { status: HostStatus::KnownUnbound, ..machine() };
    let with = |max, min| {
        let settings = StepSettings { inventory_max_size: max, disk_min_size: min, ..settings() };
        args(&plan(&host, None, &settings).steps, StepType::Inventory).unwrap().to_vec()
    };
    let id = host.id.to_string();
    assert_eq!(with(None, Some(0)), [id.as_str()]);
    assert_eq!(with(Some(65536), None), [id.as_str(), "--output-max-size=65536"]);
    assert_eq!(with(Some(1), Some(2)), [id.as_str(), "--output-max-size=1", "--disk-min-size=2"]);
}

#[test]
fn small_ipv4_networks_are_searched_in_order() {
    let nics = vec![
        nic("eth0", "52:54:00:00:00:01", &["192.168.130.11/22", "fd00::11/64"]),
        nic("eth1", "52:54:00:00:00:02", &["10.1.0.1/21", "172.16.0.9/29", "10.2.0.7/24"]),
        nic("eth2", "52:54:00:00:00:03", &["10.2.0.8/24"]),
    ];
    let searched = |nics, finds_free_addresses| {
        let host = host(1, nics);
        let settings = StepSettings { finds_free_addresses, ..settings() };
        let planned = plan(&host, Some(&view(cluster(), &[])), &settings);
        only(&planned, StepType::FreeNetworkAddresses).map(str::to_owned)
    };
    assert_eq!(
        searched(nics.clone(), true).unwrap(),
        r#"["10.2.0.0/24","172.16.0.8/29","192.168.128.0/22"]"#
    );
    assert_eq!(searched(nics, false), None);
    assert_eq!(searched(vec![nic("eth0", "52:54:00:00:00:01", &["10.0.0.1/8", "fd00::1/64"])], true), None);
}

#[test]
fn dhcp_step_names_the_interface_in_the_machine_network() {
    let nics = vec![
        nic("eth0", "52:54:00:00:00:01", &["10.0.0.1/24"]),
        nic("eth1", "52:54:00:00:00:02", &["fd00::1/64", "192.168.1.11/24"]),
    ];
    let host = host(1, nics);
    let with_dhcp = ClusterSettings { vip_dhcp_allocation: true, ..cluster() };
    assert_eq!(
        only(&plan_in(&host, with_dhcp.clone()), StepType::DhcpLeaseAllocate).unwrap(),
        concat!(
            r#"{"api_vip_mac":"00:1a:4a:d5:1d:74","ingress_vip_mac":"00:1a:4a:22:72:01","#,
            r#""interface":"eth1"}"#
        )
    );
    let leased = ClusterSettings {
        api_vip_lease: "lease {a}".into(),
        ingress_vip_lease: "lease {i}".into(),
        ..with_dhcp.clone()
    };
    let planned = plan_in(&host, leased);
    let argument = only(&planned, StepType::DhcpLeaseAllocate).unwrap();
    assert!(argument.starts_with(r#"{"api_vip_lease":"lease {a}","#), "{argument}");
    assert!(argument.contains(r#""ingress_vip_lease":"lease {i}","#), "{argument}");

    let elsewhere = ClusterSettings {
        machine_networks: vec![Cidr::parse("192.168.2.0/24").unwrap()],
        ..with_dhcp.clone()
    };
    assert_eq!(
        reason(&plan_in(&host, elsewhere), StepType::DhcpLeaseAllocate),
        Some("no interface of the host is in the machine network 192.168.2.0/24")
    );
    let unknown = ClusterSettings { machine_networks: Vec::new(), ..with_dhcp.clone() };
    let silent = HostView { summary: Arc::default(), ..host.clone() };
    for planned in [plan_in(&host, unknown), plan_in(&host, cluster()), plan_in(&silent, with_dhcp)] {
        assert_eq!(only(&planned, StepType::DhcpLeaseAllocate), None);
        assert_eq!(reason(&planned, StepType::DhcpLeaseAllocate), None);
    }
}

#[test]
fn time_servers_of_the_cluster_override_its_infra_envs() {
    let sources = |cluster| {
        let planned = plan_in(&machine(), cluster);
        only(&planned, StepType::NtpSynchronizer).unwrap().to_owned()
    };
    let of_infra_envs =
        ClusterSettings { infra_env_ntp_sources: vec!["a.example".into(), "b.example".into()], ..cluster() };
    let additional =
        ClusterSettings { additional_ntp_source: "c.example,d.example".into(), ..of_infra_envs.clone() };
    let full = ClusterSettings { ntp_sources: "e.example".into(), ..additional.clone() };
    assert_eq!(sources(of_infra_envs), r#"{"ntp_source":"a.example,b.example"}"#);
    assert_eq!(sources(additional), r#"{"ntp_source":"c.example,d.example"}"#);
    assert_eq!(sources(full), r#"{"ntp_source":"e.example"}"#);
}

#[test]
fn host_without_a_cluster_uses_the_time_servers_of_its_infra_env() {
    let host = HostView { status: HostStatus::KnownUnbound, ..machine() };
    let settings = settings();
    let input = StepInput {
        host: &host,
        cluster: None,
        pool_ntp_sources: "p.example",
        targets: None,
        settings: &settings,
    };
    let planned = steps(&input, &mut |step_type| format!("{step_type}-1"));
    assert_eq!(only(&planned, StepType::NtpSynchronizer), Some(r#"{"ntp_source":"p.example"}"#));
    let ids: Vec<_> = planned.steps.instructions.iter().map(|step| step.step_id.as_str()).collect();
    assert_eq!(ids, ["inventory-1", "ntp-synchronizer-1"]);
}

#[test]
fn registry_is_resolved_unless_it_is_an_address() {
    let last_name = |release_image: &str| {
        let planned =
            plan_in(&machine(), ClusterSettings { release_image: release_image.into(), ..cluster() });
        let request: serde_json::Value =
            serde_json::from_str(only(&planned, StepType::DomainResolution).unwrap()).unwrap();
        request["domains"].as_array().unwrap().last().unwrap()["domain_name"].as_str().unwrap().to_owned()
    };
    assert_eq!(last_name("registry.example.com:5000/ocp/release@sha256:00"), "registry.example.com");
    assert_eq!(last_name("registry:5000/ocp/release:4.18"), "registry");
    for address in
        ["192.168.1.2:5000/release:4.18", "192.168.1.2/release:4.18", "[fd00::1]:5000/release:4.18"]
    {
        assert_eq!(last_name(address), "validateNoWildcardDNS.site.example.com", "{address}");
    }
}

#[test]
fn unknown_names_are_not_resolved() {
    for (cluster, expected) in [
        (ClusterSettings { name: "".into(), ..cluster() }, "the cluster has no name"),
        (ClusterSettings { base_dns_domain: "".into(), ..cluster() }, "the cluster has no base domain"),
        (
            ClusterSettings { release_image: "release".into(), ..cluster() },
            "cannot read the registry's host name from the release image \"release\"",
        ),
    ] {
        let planned = plan_in(&machine(), cluster);
        assert_eq!(reason(&planned, StepType::DomainResolution), Some(expected));
        assert_eq!(only(&planned, StepType::DomainResolution), None);
        assert!(only(&planned, StepType::NtpSynchronizer).is_some(), "other steps are not affected");
    }
}

fn endpoint(host: &HostView, cluster: ClusterSettings) -> String {
    let planned = plan_in(host, ClusterSettings { kind: ClusterKind::AddHostsCluster, ..cluster });
    only(&planned, StepType::ApiVipConnectivityCheck).unwrap().to_owned()
}

#[test]
fn ignition_endpoint_of_a_pool_depends_on_name_role_and_certificate() {
    let with_certificate = ClusterSettings {
        ignition_endpoint: IgnitionEndpoint { url: None, ca_certificate: Some("Y2E=".to_owned()) },
        ..cluster()
    };
    let by_name = |name: &str, cluster: &ClusterSettings| {
        endpoint(&joining(), ClusterSettings { api_vip_dns_name: Some(name.into()), ..cluster.clone() })
    };
    assert_eq!(
        endpoint(&joining(), cluster()),
        r#"{"url":"http://api.site.example.com:22624/config/worker"}"#
    );
    assert_eq!(by_name("api.a.b", &cluster()), r#"{"url":"http://api.a.b:22624/config/worker"}"#);
    assert_eq!(by_name("fd00::5", &cluster()), r#"{"url":"http://[fd00::5]:22624/config/worker"}"#);
    assert_eq!(
        by_name("api.a.b", &with_certificate),
        r#"{"ca_certificate":"Y2E=","url":"https://api-int.a.b:22623/config/worker"}"#
    );
    assert_eq!(
        by_name("192.168.1.5", &with_certificate),
        r#"{"ca_certificate":"Y2E=","url":"https://192.168.1.5:22623/config/worker"}"#
    );
    let of_host = HostView { ignition_ca_certificate: Some("aG9zdA==".into()), ..joining() };
    assert!(endpoint(&of_host, cluster()).starts_with(r#"{"ca_certificate":"aG9zdA==","url":"https://"#));
    assert!(endpoint(&of_host, with_certificate).starts_with(r#"{"ca_certificate":"Y2E=","#));
    let pool = HostView { machine_config_pool: "infra".into(), ..joining() };
    assert!(endpoint(&pool, cluster()).ends_with("/config/infra\"}"));
    let master = HostView { role: HostRole::AutoAssign, suggested_role: HostRole::Master, ..joining() };
    assert!(endpoint(&master, cluster()).ends_with("/config/master\"}"));
    let undecided = HostView { role: HostRole::AutoAssign, ..joining() };
    assert!(endpoint(&undecided, cluster()).ends_with("/config/worker\"}"));
}

#[test]
fn pool_is_appended_to_a_custom_ignition_endpoint() {
    let custom = |url: &str| {
        let ignition_endpoint = IgnitionEndpoint { url: Some(url.to_owned()), ca_certificate: None };
        plan_in(&joining(), ClusterSettings { ignition_endpoint, ..cluster() })
    };
    for (url, expected) in [
        ("https://ign.example:8443/config", "https://ign.example:8443/config/worker"),
        ("https://ign.example/config//", "https://ign.example/config/worker"),
        ("http://ign.example", "http://ign.example/worker"),
        ("http://ign.example?a=b/c", "http://ign.example/worker?a=b/c"),
    ] {
        let planned = custom(url);
        let expected = format!(r#"{{"url":"{expected}"}}"#);
        assert_eq!(only(&planned, StepType::ApiVipConnectivityCheck), Some(&*expected), "{url}");
    }
    assert_eq!(
        reason(&custom("ign.example/config"), StepType::ApiVipConnectivityCheck),
        Some("the cluster's Ignition endpoint \"ign.example/config\" is not a URL")
    );
}

#[test]
fn token_comes_before_the_headers_of_the_user() {
    let header = Header { key: "X-Any".to_owned(), value: Secret::new("v") };
    let host = HostView {
        ignition_endpoint_token: Some(Secret::new("secret")),
        ignition_endpoint_headers: vec![header],
        ..joining()
    };
    assert_eq!(
        endpoint(&host, cluster()),
        concat!(
            r#"{"ignition_endpoint_token":"secret","request_headers":[{"key":"Authorization","value":"Bearer secret"},"#,
            r#"{"key":"X-Any","value":"v"}],"url":"http://api.site.example.com:22624/config/worker"}"#
        )
    );
    assert!(!format!("{host:?}").contains("secret"));
}

#[test]
fn tang_servers_are_checked_by_hosts_with_an_encrypted_role() {
    use NodeRoles as Nodes;
    let check = |enable_on: Nodes, mode: DiskEncryptionMode, role: HostRole| {
        let disk_encryption = DiskEncryption {
            enable_on: Some(enable_on.into()),
            mode: Some(mode.into()),
            tang_servers: Some(TANG.to_owned()),
        };
        let host = HostView { role, ..machine() };
        let planned = plan_in(&host, ClusterSettings { disk_encryption, ..cluster() });
        assert_eq!(planned.skipped, []);
        only(&planned, StepType::TangConnectivityCheck).map(str::to_owned)
    };
    let roles =
        [HostRole::AutoAssign, HostRole::Master, HostRole::Arbiter, HostRole::Worker, HostRole::Bootstrap];
    for (nodes, expected) in [
        (Nodes::None, [false; 5]),
        (Nodes::Masters, [false, true, false, false, true]),
        (Nodes::Arbiters, [false, false, true, false, false]),
        (Nodes::Workers, [false, false, false, true, false]),
        (Nodes::MastersAndArbiters, [false, true, true, false, true]),
        (Nodes::MastersAndWorkers, [false, true, false, true, true]),
        (Nodes::ArbitersAndWorkers, [false, false, true, true, false]),
        (Nodes::MastersArbitersAndWorkers, [false, true, true, true, true]),
        (Nodes::All, [true; 5]),
    ] {
        let checked = roles.map(|role| check(nodes, DiskEncryptionMode::Tang, role).is_some());
        assert_eq!(checked, expected, "{nodes:?}");
    }
    assert_eq!(check(Nodes::All, DiskEncryptionMode::Tpmv2, HostRole::Master), None);
    assert_eq!(
        check(Nodes::All, DiskEncryptionMode::Tang, HostRole::Master).unwrap(),
        r#"{"tang_servers":"[{\"url\":\"http://tang:7500\",\"thumbprint\":\"abc\"}]"}"#
    );
}

#[test]
fn joining_host_checks_the_tang_servers_of_its_ignition_config() {
    let with_servers = |servers: &str| {
        let endpoint =
            EndpointSummary { is_success: true, tang_servers: servers.into(), ..EndpointSummary::default() };
        let summary = HostSummary { ignition_endpoint: Some(endpoint), ..(*joining().summary).clone() };
        HostView { summary: Arc::new(summary), ..joining() }
    };
    let planned = plan_in(&with_servers(TANG), cluster());
    assert!(only(&planned, StepType::TangConnectivityCheck).unwrap().contains("http://tang:7500"));
    assert_eq!(only(&plan_in(&with_servers(""), cluster()), StepType::TangConnectivityCheck), None);
    assert_eq!(only(&plan_in(&joining(), cluster()), StepType::TangConnectivityCheck), None);
}

#[test]
fn virtual_addresses_of_both_families_are_verified() {
    let vips = |texts: [&str; 2]| texts.map(|text| text.parse().unwrap()).to_vec();
    let dual = ClusterSettings {
        api_vips: vips(["192.168.1.5", "fd00::5"]),
        ingress_vips: vips(["192.168.1.6", "fd00::6"]),
        ..cluster()
    };
    assert_eq!(
        only(&plan_in(&machine(), dual), StepType::VerifyVips).unwrap(),
        concat!(
            r#"[{"vip":"192.168.1.5","vip_type":"api"},{"vip":"fd00::5","vip_type":"api"},"#,
            r#"{"vip":"192.168.1.6","vip_type":"ingress"},{"vip":"fd00::6","vip_type":"ingress"}]"#
        )
    );
}

#[test]
fn bootstrap_host_collects_logs_of_the_control_plane() {
    let bootstrap =
        HostView { bootstrap: true, role: HostRole::Master, status: HostStatus::Error, ..machine() };
    let nics = vec![
        nic("eth0", "52:54:00:00:00:02", &["10.0.0.2/24"]),
        nic("eth1", "52:54:00:00:00:12", &["192.168.1.12/24", "fd00::12/64"]),
    ];
    let master = HostView { role: HostRole::Master, ..host(2, nics) };
    let worker = HostView { role: HostRole::Worker, ..simple_host(3, "192.168.1.13/24") };
    let logs = |cluster, hosts: &[HostView]| {
        let planned = plan(&bootstrap, Some(&view(cluster, hosts)), &settings());
        let master_ips = only(&planned, StepType::LogsGather).map(|argument| {
            let (start, list) = argument.split_once(r#","master_ips":"#).unwrap();
            assert!(
                start.starts_with(r#"{"bootstrap":true,"#) && start.ends_with(r#""installer_gather":true"#)
            );
            list.trim_end_matches('}').to_owned()
        });
        assert!(planned.steps.instructions.iter().any(|step| step.step_type == StepType::StopInstallation));
        (master_ips, planned.skipped)
    };
    let all = [bootstrap.clone(), master, worker];
    let unmanaged = ClusterSettings { user_managed_networking: true, ..cluster() };
    assert_eq!(logs(cluster(), &all), (Some(r#"["192.168.1.12"]"#.to_owned()), vec![]));
    let every = r#"["10.0.0.2","192.168.1.12","fd00::12"]"#.to_owned();
    assert_eq!(logs(unmanaged, &all), (Some(every), vec![]));
    assert_eq!(logs(cluster(), &all[..1]), (Some("null".to_owned()), vec![]));
    let elsewhere =
        ClusterSettings { machine_networks: vec![Cidr::parse("10.9.0.0/16").unwrap()], ..cluster() };
    let text = "the master \"node-2\" has no address in the machine network 10.9.0.0/16".to_owned();
    assert_eq!(logs(elsewhere, &all), (None, vec![(StepType::LogsGather, text)]));
    let done = HostView { has_logs: true, ..bootstrap.clone() };
    let planned = plan_in(&done, cluster());
    assert_eq!((only(&planned, StepType::LogsGather), planned.skipped.len()), (None, 0));
}

#[test]
fn reclaimed_host_reboots_and_its_agent_exits() {
    let host = HostView { status: HostStatus::ReclaimingRebooting, ..machine() };
    let planned = plan(&host, None, &settings());
    assert_eq!(only(&planned, StepType::RebootForReclaim), Some(r#"{"host_fs_mount_dir":"/host"}"#));
    assert_eq!(planned.steps.post_step_action, PostStepAction::Exit);
    let host = HostView { status: HostStatus::Reclaiming, ..machine() };
    let planned = plan(&host, None, &settings());
    assert_eq!(reason(&planned, StepType::DownloadBootArtifacts), Some("not available yet"));
}

#[test]
fn outdated_agent_receives_only_its_upgrade() {
    let upgradable = [
        HostStatus::Binding,
        HostStatus::Discovering,
        HostStatus::DiscoveringUnbound,
        HostStatus::Insufficient,
        HostStatus::InsufficientUnbound,
        HostStatus::Known,
        HostStatus::KnownUnbound,
        HostStatus::PendingForInput,
    ];
    let off = StepSettings { upgrade_agents: false, ..settings() };
    let disabled = StepSettings { disabled_steps: BTreeSet::from([StepType::UpgradeAgent]), ..settings() };
    for status in HostStatus::ALL {
        let host = HostView { agent_version: "old".into(), status: *status, ..machine() };
        assert_eq!(must_upgrade(&host, &settings()), upgradable.contains(status), "{status}");
        assert!(!must_upgrade(&host, &off) && !must_upgrade(&host, &disabled));
        assert!(!must_upgrade(&HostView { status: *status, ..machine() }, &settings()));
        if upgradable.contains(status) {
            let planned = plan_in(&host, cluster());
            let text = r#"{"agent_image":"quay.io/edge-infrastructure/assisted-installer-agent:latest"}"#;
            assert_eq!(only(&planned, StepType::UpgradeAgent), Some(text));
            assert_eq!(planned.steps.instructions.len(), 1);
            assert_eq!(planned.steps.next_instruction_seconds, 60);
            assert_eq!(planned.steps.post_step_action, PostStepAction::Continue);
        }
    }
}

#[test]
fn disabled_steps_are_omitted() {
    let disabled_steps = BTreeSet::from([StepType::NtpSynchronizer, StepType::DomainResolution]);
    let settings = StepSettings { disabled_steps, ..settings() };
    let nameless = ClusterSettings { name: "".into(), ..cluster() };
    let planned = plan(&machine(), Some(&view(nameless, &[])), &settings);
    let types: Vec<_> = planned.steps.instructions.iter().filter_map(|step| step.step_type.known()).collect();
    assert_eq!(types, [StepType::FreeNetworkAddresses, StepType::Inventory]);
    assert_eq!(planned.skipped, []);
}

#[test]
fn throttled_host_does_not_check_its_connectivity() {
    let hosts = [machine(), simple_host(2, "192.168.1.12/24")];
    let (cluster, settings) = (view(cluster(), &hosts), settings());
    let planned = plan(&hosts[0], Some(&cluster), &settings);
    assert!(only(&planned, StepType::ConnectivityCheck).unwrap().contains(&id(2).to_string()));
    let input = StepInput {
        host: &hosts[0],
        cluster: Some(&cluster),
        pool_ntp_sources: "",
        targets: None,
        settings: &settings,
    };
    let planned = steps(&input, &mut |step_type| step_type.to_string());
    assert_eq!((only(&planned, StepType::ConnectivityCheck), planned.skipped.len()), (None, 0));
}
