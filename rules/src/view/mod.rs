//! Views: the facts about a cluster and its hosts that rules read.
//!
//! The caller creates a [`HostView`] from its host record and the [summary](crate::summary) of the agent's reports. It
//! creates a [`ClusterView`] from its cluster record and the views of all hosts.

use std::sync::Arc;

use assisted::cluster::{
    ClusterKind, ClusterStatus, DiskEncryption, IgnitionEndpoint, LoadBalancerType, NetworkType, NodeRoles,
    PlatformType,
};
use assisted::host::{Header, HostKind, HostRole, HostStage, HostStatus};
use assisted::{ClusterId, Extensible, HostId, InfraEnvId, Secret};
use ignition::Cidr;
use ignition::version::Version;
use std::net::IpAddr;

use crate::summary::{HostSummary, NicSummary};

/// The facts about a host that rules read.
#[derive(Clone, Debug)]
pub struct HostView {
    /// Id of the host.
    pub id: HostId,
    /// Id of the infra-env whose discovery image the host booted.
    pub infra_env_id: InfraEnvId,
    /// Kind of the host. Shows whether it joins an existing cluster.
    pub kind: HostKind,
    /// Current status of the host.
    pub status: HostStatus,
    /// Stage of the installation. `None` before the installer has reported one.
    pub stage: Option<HostStage>,
    /// Role selected by the user, or [`HostRole::AutoAssign`].
    pub role: HostRole,
    /// Role suggested by the service, or [`HostRole::AutoAssign`].
    pub suggested_role: HostRole,
    /// Whether the host runs the temporary bootstrap control plane.
    pub bootstrap: bool,
    /// Name selected by the user. Empty if the name in the inventory report applies.
    pub requested_hostname: Box<str>,
    /// Id of the installation disk. Empty if none is selected.
    pub installation_disk_id: Box<str>,
    /// Device path of the installation disk. Empty if none is selected.
    pub installation_disk_path: Box<str>,
    /// Ids of the disks that the installation must not format, selected by the user.
    pub skip_formatting_disks: Vec<Box<str>>,
    /// Container image of the running agent, as the agent reports it.
    pub agent_version: Box<str>,
    /// Machine config pool selected by the user. Empty if the pool of the role applies.
    pub machine_config_pool: Box<str>,
    /// User-supplied arguments of coreos-installer, as a JSON list. Empty if the user has not set any.
    pub installer_args: Box<str>,
    /// Whether the host has BMC credentials for fencing.
    pub has_fencing_credentials: bool,
    /// Token for the Ignition endpoint of the cluster that the host joins.
    pub ignition_endpoint_token: Option<Secret>,
    /// User-supplied headers for requests to the Ignition endpoint.
    pub ignition_endpoint_headers: Vec<Header>,
    /// CA certificate in the host's Ignition override, as base64-encoded PEM.
    pub ignition_ca_certificate: Option<Box<str>>,
    /// Whether the logs of the host were uploaded since its last registration or reset.
    pub has_logs: bool,
    /// Whether the agent has checked in recently.
    pub is_connected: bool,
    /// Whether the boot media are readable, according to the latest report of the agent.
    pub has_media: bool,
    /// Seconds by which the host's clock is ahead of the service's clock. `None` if the agent does not send the time.
    pub clock_skew: Option<i64>,
    /// The facts that the agent has reported.
    pub summary: Arc<HostSummary>,
}

impl HostView {
    /// Returns the view of a newly discovered host in a cluster. The host is connected, its agent has reported nothing,
    /// and no user has configured it.
    #[must_use]
    pub fn new(id: HostId, infra_env_id: InfraEnvId) -> Self {
        Self {
            id,
            infra_env_id,
            kind: HostKind::Host,
            status: HostStatus::Discovering,
            stage: None,
            role: HostRole::AutoAssign,
            suggested_role: HostRole::AutoAssign,
            bootstrap: false,
            requested_hostname: "".into(),
            installation_disk_id: "".into(),
            installation_disk_path: "".into(),
            skip_formatting_disks: Vec::new(),
            agent_version: "".into(),
            machine_config_pool: "".into(),
            installer_args: "".into(),
            has_fencing_credentials: false,
            ignition_endpoint_token: None,
            ignition_endpoint_headers: Vec::new(),
            ignition_ca_certificate: None,
            has_logs: false,
            is_connected: true,
            has_media: true,
            clock_skew: None,
            summary: Arc::default(),
        }
    }

    /// Returns the role selected by the user, or else the role suggested by the service.
    #[must_use]
    pub fn effective_role(&self) -> HostRole {
        if self.role == HostRole::AutoAssign { self.suggested_role } else { self.role }
    }

    /// Returns the name selected by the user, or else the name in the inventory report. Empty if both are missing.
    #[must_use]
    pub fn hostname(&self) -> &str {
        if !self.requested_hostname.is_empty() {
            return &self.requested_hostname;
        }
        self.summary.inventory.as_ref().map_or("", |inventory| &inventory.hostname)
    }

    /// Returns the network interfaces of the host. Empty if no inventory report is stored.
    #[must_use]
    pub fn nics(&self) -> &[NicSummary] {
        self.summary.inventory.as_ref().map_or(&[], |inventory| &inventory.nics)
    }

    /// Returns the host's first interface in a network, with the first address that is in the network.
    #[must_use]
    pub fn nic_in(&self, network: Cidr) -> Option<(&NicSummary, IpAddr)> {
        self.nics().iter().find_map(|nic| {
            let mut addresses = nic.addresses.iter().map(|address| address.address());
            addresses.find(|address| network.contains(*address)).map(|address| (nic, address))
        })
    }

    /// Returns `true` if the host joins an existing cluster.
    #[must_use]
    pub fn joins(&self) -> bool {
        self.kind == HostKind::Joining
    }
}

/// A network from which pods get their addresses. Each node gets a subnet of this network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PodNetwork {
    /// The whole network.
    pub cidr: Cidr,
    /// Prefix length of a node's subnet.
    pub host_prefix: i64,
}

/// The settings of a cluster that rules read.
#[derive(Clone, Debug)]
pub struct ClusterSettings {
    /// Id of the cluster.
    pub id: ClusterId,
    /// Kind of the cluster. Shows whether this service installs it.
    pub kind: ClusterKind,
    /// Current status of the cluster.
    pub status: ClusterStatus,
    /// Whether the cluster was installed without this service.
    pub imported: bool,
    /// Name of the cluster, which is part of its DNS names.
    pub name: Box<str>,
    /// Base DNS domain of the cluster.
    pub base_dns_domain: Box<str>,
    /// DNS name of the API. `None` if the name follows from the base domain.
    pub api_vip_dns_name: Option<Box<str>>,
    /// OpenShift version of the release. `None` if unknown.
    pub version: Option<Version>,
    /// Pull spec of the release image.
    pub release_image: Box<str>,
    /// Infrastructure platform of the cluster.
    pub platform: Option<PlatformType>,
    /// Number of control plane nodes. 0 if unknown.
    pub control_plane_count: i64,
    /// Whether the user manages the networking of the cluster.
    pub user_managed_networking: bool,
    /// Type of the load balancer. `None` if the user has not selected one.
    pub load_balancer: Option<LoadBalancerType>,
    /// Whether a DHCP server assigns the virtual IP addresses.
    pub vip_dhcp_allocation: bool,
    /// DHCP lease of the API virtual IP address, in the format of dhclient. Empty without a lease.
    pub api_vip_lease: Box<str>,
    /// DHCP lease of the ingress virtual IP address, in the format of dhclient. Empty without a lease.
    pub ingress_vip_lease: Box<str>,
    /// Network plugin for pods. `None` if the user has not selected one.
    pub network_type: Option<NetworkType>,
    /// Networks that contain the hosts.
    pub machine_networks: Vec<Cidr>,
    /// Networks from which pods get their addresses.
    pub cluster_networks: Vec<PodNetwork>,
    /// Networks from which services get their addresses.
    pub service_networks: Vec<Cidr>,
    /// Virtual IP addresses of the API.
    pub api_vips: Vec<IpAddr>,
    /// Virtual IP addresses of the ingress.
    pub ingress_vips: Vec<IpAddr>,
    /// Time servers that replace all others, separated by commas.
    pub ntp_sources: Box<str>,
    /// Additional time servers, separated by commas.
    pub additional_ntp_source: Box<str>,
    /// Additional time servers of the cluster's infra-envs, without duplicates, in the order of the infra-envs.
    pub infra_env_ntp_sources: Vec<Box<str>>,
    /// Settings of the disk encryption.
    pub disk_encryption: DiskEncryption,
    /// Endpoint from which joining hosts download their Ignition config.
    pub ignition_endpoint: IgnitionEndpoint,
    /// Whether a pull secret is set.
    pub has_pull_secret: bool,
    /// Ids of host validations that the user ignores, as a JSON list. May be empty.
    pub ignored_host_validations: Box<str>,
    /// Ids of cluster validations that the user ignores, as a JSON list. May be empty.
    pub ignored_cluster_validations: Box<str>,
}

impl ClusterSettings {
    /// Returns a cluster without any settings.
    #[must_use]
    pub fn new(id: ClusterId) -> Self {
        Self {
            id,
            kind: ClusterKind::Cluster,
            status: ClusterStatus::Insufficient,
            imported: false,
            name: "".into(),
            base_dns_domain: "".into(),
            api_vip_dns_name: None,
            version: None,
            release_image: "".into(),
            platform: None,
            control_plane_count: 0,
            user_managed_networking: false,
            load_balancer: None,
            vip_dhcp_allocation: false,
            network_type: None,
            machine_networks: Vec::new(),
            cluster_networks: Vec::new(),
            service_networks: Vec::new(),
            api_vips: Vec::new(),
            ingress_vips: Vec::new(),
            api_vip_lease: "".into(),
            ingress_vip_lease: "".into(),
            ntp_sources: "".into(),
            additional_ntp_source: "".into(),
            infra_env_ntp_sources: Vec::new(),
            disk_encryption: DiskEncryption::default(),
            ignition_endpoint: IgnitionEndpoint::default(),
            has_pull_secret: false,
            ignored_host_validations: "".into(),
            ignored_cluster_validations: "".into(),
        }
    }

    /// Returns `true` if the cluster has one control plane node.
    #[must_use]
    pub fn is_single_node(&self) -> bool {
        self.control_plane_count == 1
    }

    /// Returns `true` if the user provides the load balancer.
    #[must_use]
    pub fn has_user_managed_load_balancer(&self) -> bool {
        self.load_balancer == Some(LoadBalancerType::UserManaged)
    }

    /// Returns the DNS name or address at which joining hosts reach the API. `None` if no name is set and none follows
    /// from the base domain.
    #[must_use]
    pub fn api_name(&self) -> Option<String> {
        match self.api_vip_dns_name.as_deref() {
            Some(name) if !name.is_empty() => Some(name.to_owned()),
            _ if self.name.is_empty() || self.base_dns_domain.is_empty() => None,
            _ => Some(format!("api.{}.{}", self.name, self.base_dns_domain)),
        }
    }

    /// Returns `true` if the cluster encrypts the disks of hosts with this role.
    #[must_use]
    pub fn encrypts_disks_of(&self, role: HostRole) -> bool {
        use NodeRoles::{
            All, Arbiters, ArbitersAndWorkers, Masters, MastersAndArbiters, MastersAndWorkers,
            MastersArbitersAndWorkers, Workers,
        };
        let Some(roles) = self.disk_encryption.enable_on.as_ref().and_then(Extensible::known) else {
            return false;
        };
        match role {
            _ if roles == All => true,
            HostRole::Master | HostRole::Bootstrap => {
                matches!(roles, Masters | MastersAndArbiters | MastersAndWorkers | MastersArbitersAndWorkers)
            }
            HostRole::Arbiter => {
                matches!(
                    roles,
                    Arbiters | MastersAndArbiters | ArbitersAndWorkers | MastersArbitersAndWorkers
                )
            }
            HostRole::Worker => {
                matches!(roles, Workers | MastersAndWorkers | ArbitersAndWorkers | MastersArbitersAndWorkers)
            }
            HostRole::AutoAssign => false,
        }
    }
}

/// A cluster with its hosts.
#[derive(Clone, Debug)]
pub struct ClusterView {
    /// Settings of the cluster.
    pub cluster: Arc<ClusterSettings>,
    /// All hosts of the cluster, sorted by id.
    pub hosts: Vec<Arc<HostView>>,
}
