//! Recordings of clusters with simulated hosts, assessed by version 063b2579 of the Assisted Installer.
//!
//! `data/assessments.json` contains a list of reports, a list of validations (id, status and message) and a list of
//! clusters. Each cluster has its settings, its hosts with their latest stored reports, and the outcome before an
//! installation.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use assisted::cluster::{
    ClusterStatus, DiskEncryption, LoadBalancerType, NetworkType, PlatformType, VipVerification,
};
use assisted::host::{HostRole, HostStatus};
use assisted::reply::ReplyPayload;
use assisted::step::{StepType, VipType};
use assisted::{ClusterId, HostId, InfraEnvId};
use ignition::Cidr;
use ignition::version::Version;
use rules::summary::{HostSummary, VerifiedVip, VirtualInterfaces};
use rules::view::{ClusterSettings, ClusterView, HostView, PodNetwork};
use serde::Deserialize;
use serde_json::Value;
use uuid::Uuid;

use crate::assess::{Row, view};

#[derive(Deserialize)]
pub(crate) struct Recordings {
    reports: Vec<Value>,
    validations: Vec<Row>,
    pub(crate) cases: Vec<Case>,
}

#[derive(Deserialize)]
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) cluster: RecordedCluster,
    pub(crate) hosts: Vec<RecordedHost>,
}

#[derive(Deserialize)]
pub(crate) struct RecordedCluster {
    pub(crate) status: ClusterStatus,
    pub(crate) status_info: String,
    base_dns_domain: String,
    version: String,
    platform: PlatformType,
    control_plane_count: i64,
    user_managed_networking: bool,
    load_balancer: Option<LoadBalancerType>,
    pub(crate) vip_dhcp_allocation: bool,
    network_type: Option<NetworkType>,
    pub(crate) machine_networks: Vec<String>,
    cluster_networks: Vec<(String, i64)>,
    service_networks: Vec<String>,
    api_vips: Vec<(IpAddr, VipVerification)>,
    ingress_vips: Vec<(IpAddr, VipVerification)>,
    disk_encryption: DiskEncryption,
    #[serde(default)]
    additional_ntp_source: String,
    has_pull_secret: bool,
    pub(crate) groups: Option<Value>,
    pub(crate) forces_schedulable_masters: Option<bool>,
    pub(crate) validations: Vec<usize>,
}

#[derive(Deserialize)]
pub(crate) struct RecordedHost {
    pub(crate) number: u128,
    pub(crate) status: HostStatus,
    pub(crate) status_info: String,
    role: HostRole,
    pub(crate) suggested_role: HostRole,
    #[serde(default)]
    name: String,
    #[serde(default)]
    disk_id: String,
    #[serde(default)]
    disk_path: String,
    media: Option<String>,
    reports: BTreeMap<String, usize>,
    pub(crate) validations: Vec<usize>,
}

/// The stored decisions of the service with which an assessment starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Start {
    /// The recorded statuses, suggested roles and machine networks.
    Recorded,
    /// Initial statuses, no suggested roles, and only the machine networks that the user has set.
    Scratch,
}

impl Recordings {
    pub(crate) fn read() -> Self {
        serde_json::from_str(include_str!("../data/assessments.json")).unwrap()
    }

    /// Returns the validations at these indexes, sorted by id.
    pub(crate) fn rows(&self, indexes: &[usize]) -> Vec<Row> {
        let mut rows: Vec<_> = indexes.iter().map(|index| self.validations[*index].clone()).collect();
        rows.sort();
        rows
    }

    pub(crate) fn view(&self, case: &Case, start: Start, sets_machine_networks: bool) -> ClusterView {
        let mut cluster = case.cluster.settings();
        if start == Start::Scratch {
            cluster.status = ClusterStatus::Insufficient;
            if !sets_machine_networks {
                cluster.machine_networks = Vec::new();
            }
        }
        let hosts = case.hosts.iter().enumerate().map(|(index, host)| {
            let mut summary = self.summary(host);
            if index == 0 {
                summary.vips = case.cluster.verified_vips();
            }
            let (status, suggested_role) = match start {
                Start::Recorded => (host.status, host.suggested_role),
                // A role chosen by the user also replaces the suggestion.
                Start::Scratch => (HostStatus::Discovering, host.role),
            };
            HostView { status, suggested_role, summary: Arc::new(summary), ..host.view() }
        });
        view(cluster, hosts)
    }

    fn summary(&self, host: &RecordedHost) -> HostSummary {
        let mut summary = HostSummary::default();
        for (kind, index) in &host.reports {
            let text = self.reports[*index].to_string();
            let parse = |step| ReplyPayload::parse(step, &text).unwrap();
            match kind.as_str() {
                "inventory" => {
                    summary.set_inventory(&serde_json::from_str(&text).unwrap(), VirtualInterfaces::Keep);
                }
                "connectivity" => summary.set_connectivity(&serde_json::from_str(&text).unwrap()),
                "ntp_sources" => summary.set_time_sources(&serde_json::from_str(&text).unwrap()),
                "domain_name_resolutions" => summary.set_names(&serde_json::from_str(&text).unwrap()),
                "disks_info" => summary.set_disk_speeds(&text).unwrap(),
                "images_status" => summary.set_images(&text).unwrap(),
                "free_addresses" => {
                    let ReplyPayload::FreeAddresses(report) = parse(StepType::FreeNetworkAddresses) else {
                        panic!("{text}")
                    };
                    summary.set_free_addresses(&report).unwrap();
                }
                "tang_connectivity" => {
                    let ReplyPayload::Tang(report) = parse(StepType::TangConnectivityCheck) else {
                        panic!("{text}")
                    };
                    summary.set_tang(Ok(&report));
                }
                kind => panic!("unknown report {kind}"),
            }
        }
        summary
    }
}

impl RecordedHost {
    fn view(&self) -> HostView {
        HostView {
            role: self.role,
            requested_hostname: self.name.as_str().into(),
            installation_disk_id: self.disk_id.as_str().into(),
            installation_disk_path: self.disk_path.as_str().into(),
            agent_version: "quay.io/edge-infrastructure/assisted-installer-agent:latest".into(),
            has_media: self.media.as_deref() != Some("disconnected"),
            clock_skew: Some(0),
            ..HostView::new(HostId(Uuid::from_u128(self.number)), InfraEnvId(Uuid::from_u128(0xe)))
        }
    }
}

impl RecordedCluster {
    fn settings(&self) -> ClusterSettings {
        let network = |text: &String| Cidr::parse(text).unwrap();
        let addresses = |vips: &[(IpAddr, VipVerification)]| vips.iter().map(|vip| vip.0).collect();
        let pod_network =
            |(cidr, host_prefix): &_| PodNetwork { cidr: network(cidr), host_prefix: *host_prefix };
        ClusterSettings {
            status: self.status,
            name: "site".into(),
            base_dns_domain: self.base_dns_domain.as_str().into(),
            version: Version::parse(&self.version),
            platform: Some(self.platform),
            control_plane_count: self.control_plane_count,
            user_managed_networking: self.user_managed_networking,
            load_balancer: self.load_balancer,
            vip_dhcp_allocation: self.vip_dhcp_allocation,
            network_type: self.network_type,
            machine_networks: self.machine_networks.iter().map(network).collect(),
            cluster_networks: self.cluster_networks.iter().map(pod_network).collect(),
            service_networks: self.service_networks.iter().map(network).collect(),
            api_vips: addresses(&self.api_vips),
            ingress_vips: addresses(&self.ingress_vips),
            disk_encryption: self.disk_encryption.clone(),
            additional_ntp_source: self.additional_ntp_source.as_str().into(),
            has_pull_secret: self.has_pull_secret,
            ..ClusterSettings::new(ClusterId(Uuid::from_u128(0xc)))
        }
    }

    /// Returns the verification of the virtual IP addresses. The recording contains only the combined result of all
    /// hosts.
    fn verified_vips(&self) -> Vec<VerifiedVip> {
        let vips = |vip_type, vips: &[(IpAddr, VipVerification)]| -> Vec<VerifiedVip> {
            vips.iter()
                .map(|(address, verification)| VerifiedVip {
                    address: *address,
                    vip_type,
                    verification: *verification,
                })
                .collect()
        };
        [vips(VipType::Api, &self.api_vips), vips(VipType::Ingress, &self.ingress_vips)].concat()
    }
}
