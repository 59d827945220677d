//! Hosts, clusters and settings for the tests of steps.

use std::collections::BTreeSet;
use std::sync::Arc;

use assisted::cluster::{
    ClusterKind, ClusterStatus, DiskEncryption, IgnitionEndpoint, NetworkType, PlatformType,
};
use assisted::host::{HostKind, HostRole, HostStatus};
use assisted::step::{StepType, Steps};
use assisted::{ClusterId, HostId, InfraEnvId};
use ignition::Cidr;
use ignition::version::Version;
use rules::steps::{ConnectivityTargets, PlannedSteps, StepInput, StepSettings, steps};
use rules::summary::{HostSummary, InventorySummary, NicSummary};
use rules::view::{ClusterSettings, ClusterView, HostView};
use uuid::Uuid;

pub(crate) const AGENT: &str = "quay.io/edge-infrastructure/assisted-installer-agent:latest";

pub(crate) fn id(number: u128) -> Uuid {
    Uuid::from_u128(number)
}

pub(crate) fn nic(name: &str, mac: &str, addresses: &[&str]) -> NicSummary {
    NicSummary {
        name: name.into(),
        mac: mac.into(),
        addresses: addresses.iter().map(|address| Cidr::parse(address).unwrap()).collect(),
        ..NicSummary::default()
    }
}

/// Returns a host with status `known` and these interfaces.
pub(crate) fn host(number: u128, nics: Vec<NicSummary>) -> HostView {
    let inventory =
        InventorySummary { hostname: format!("node-{number}").into(), nics, ..InventorySummary::default() };
    HostView {
        id: HostId(id(number)),
        infra_env_id: InfraEnvId(id(0xe)),
        kind: HostKind::Host,
        status: HostStatus::Known,
        stage: None,
        role: HostRole::AutoAssign,
        suggested_role: HostRole::AutoAssign,
        bootstrap: false,
        requested_hostname: "".into(),
        installation_disk_id: "".into(),
        installation_disk_path: "".into(),
        skip_formatting_disks: Vec::new(),
        agent_version: AGENT.into(),
        machine_config_pool: "".into(),
        installer_args: "".into(),
        has_fencing_credentials: false,
        ignition_endpoint_token: None,
        ignition_endpoint_headers: Vec::new(),
        ignition_ca_certificate: None,
        has_logs: false,
        is_connected: true,
        has_media: true,
        clock_skew: Some(0),
        summary: Arc::new(HostSummary { inventory: Some(Box::new(inventory)), ..HostSummary::default() }),
    }
}

/// Returns a host with one interface and one address.
pub(crate) fn simple_host(number: u128, address: &str) -> HostView {
    host(number, vec![nic("eth0", &format!("52:54:00:00:00:{number:02x}"), &[address])])
}

pub(crate) fn cluster() -> ClusterSettings {
    ClusterSettings {
        id: ClusterId("4f630ba3-0297-4d99-a7c7-f62e7bca1332".parse().unwrap()),
        kind: ClusterKind::Cluster,
        status: ClusterStatus::Insufficient,
        imported: false,
        name: "site".into(),
        base_dns_domain: "example.com".into(),
        api_vip_dns_name: None,
        version: Version::parse("4.18.52"),
        release_image: "quay.io/openshift-release-dev/ocp-release:4.18.52-x86_64".into(),
        platform: Some(PlatformType::Baremetal),
        control_plane_count: 3,
        user_managed_networking: false,
        load_balancer: None,
        vip_dhcp_allocation: false,
        api_vip_lease: "".into(),
        ingress_vip_lease: "".into(),
        network_type: Some(NetworkType::OVNKubernetes),
        machine_networks: vec![Cidr::parse("192.168.1.0/24").unwrap()],
        cluster_networks: Vec::new(),
        service_networks: Vec::new(),
        api_vips: Vec::new(),
        ingress_vips: Vec::new(),
        ntp_sources: "".into(),
        additional_ntp_source: "".into(),
        infra_env_ntp_sources: Vec::new(),
        disk_encryption: DiskEncryption::default(),
        ignition_endpoint: IgnitionEndpoint::default(),
        has_pull_secret: true,
        ignored_host_validations: "".into(),
        ignored_cluster_validations: "".into(),
    }
}

pub(crate) fn settings() -> StepSettings {
    StepSettings {
        agent_image: AGENT.to_owned(),
        upgrade_agents: true,
        disabled_steps: BTreeSet::new(),
        inventory_max_size: None,
        disk_min_size: None,
        finds_free_addresses: true,
    }
}

pub(crate) fn view(cluster: ClusterSettings, hosts: &[HostView]) -> ClusterView {
    ClusterView { cluster: Arc::new(cluster), hosts: hosts.iter().cloned().map(Arc::new).collect() }
}

/// Returns the planned steps for a host. The id of each step is its type.
pub(crate) fn plan(host: &HostView, cluster: Option<&ClusterView>, settings: &StepSettings) -> PlannedSteps {
    let targets = cluster.map(|cluster| ConnectivityTargets::new(&cluster.hosts).unwrap());
    let input = StepInput { host, cluster, pool_ntp_sources: "", targets: targets.as_ref(), settings };
    steps(&input, &mut |step_type| step_type.to_string())
}

/// Returns the arguments of a step, or `None` if the step is absent.
pub(crate) fn args(steps: &Steps, step_type: StepType) -> Option<&[String]> {
    let step = steps.instructions.iter().find(|step| step.step_type == step_type)?;
    Some(&step.args)
}
