//! The facts about a cluster and its hosts that rules read.
//!
//! A caller makes a [`HostView`] from its record of a host and the [summary](crate::summary) of the host's reports, and
//! a [`ClusterView`] from its record of a cluster and the views of all hosts.

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

/// A host as rules see it.
#[derive(Clone, Debug)]
pub struct HostView {
    /// Id.
    pub id: HostId,
    /// Infra-env.
    pub infra_env_id: InfraEnvId,
    /// Kind.
    pub kind: HostKind,
    /// Status.
    pub status: HostStatus,
    /// Stage of the installation.
    pub stage: Option<HostStage>,
    /// Role that the user chose.
    pub role: HostRole,
    /// Role that the service suggests.
    pub suggested_role: HostRole,
    /// Whether it runs the temporary bootstrap control plane.
    pub bootstrap: bool,
    /// Name that the user chose. Empty: the name in the inventory report.
    pub requested_hostname: Box<str>,
    /// Id of the installation disk. Empty: none.
    pub installation_disk_id: Box<str>,
    /// Device path of the installation disk. Empty: none.
    pub installation_disk_path: Box<str>,
    /// Ids of the disks that the user excludes from formatting.
    pub skip_formatting_disks: Vec<Box<str>>,
    /// Container image of the agent.
    pub agent_version: Box<str>,
    /// Machine config pool. Empty: the pool of its role.
    pub machine_config_pool: Box<str>,
    /// Arguments of coreos-installer that the user chose: a list as JSON. Empty: none.
    pub installer_args: Box<str>,
    /// Whether it has credentials of its BMC, for fencing.
    pub has_fencing_credentials: bool,
    /// Token for the Ignition endpoint of the cluster that it joins.
    pub ignition_endpoint_token: Option<Secret>,
    /// Headers that the user chose for requests to the Ignition endpoint.
    pub ignition_endpoint_headers: Vec<Header>,
    /// CA certificate in the user's override of its Ignition config: PEM, in base64.
    pub ignition_ca_certificate: Option<Box<str>>,
    /// Whether its logs were uploaded since it last registered or was reset.
    pub has_logs: bool,
    /// Whether its agent has checked in recently.
    pub is_connected: bool,
    /// Whether it can read its boot media, as far as its agent has reported.
    pub has_media: bool,
    /// Seconds by which its clock is ahead of the service's. `None`: its agent sends no time.
    pub clock_skew: Option<i64>,
    /// What its agent has reported.
    pub summary: Arc<HostSummary>,
}

impl HostView {
    /// Returns a connected host of a cluster that was just discovered: it has reported nothing, and no user chose
    /// anything.
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

    /// Returns the role that counts: the chosen one, or else the suggested one.
    #[must_use]
    pub fn effective_role(&self) -> HostRole {
        if self.role == HostRole::AutoAssign { self.suggested_role } else { self.role }
    }

    /// Returns its name: the chosen one, or else the one in the inventory report. Empty if it has neither.
    #[must_use]
    pub fn hostname(&self) -> &str {
        if !self.requested_hostname.is_empty() {
            return &self.requested_hostname;
        }
        self.summary.inventory.as_ref().map_or("", |inventory| &inventory.hostname)
    }

    /// Returns its usable network interfaces. Empty if no inventory report is stored.
    #[must_use]
    pub fn nics(&self) -> &[NicSummary] {
        self.summary.inventory.as_ref().map_or(&[], |inventory| &inventory.nics)
    }

    /// Returns its first interface in a network, with its first address there.
    #[must_use]
    pub fn nic_in(&self, network: Cidr) -> Option<(&NicSummary, IpAddr)> {
        self.nics().iter().find_map(|nic| {
            let mut addresses = nic.addresses.iter().map(|address| address.address());
            addresses.find(|address| network.contains(*address)).map(|address| (nic, address))
        })
    }

    /// Returns `true` if it joins an existing cluster.
    #[must_use]
    pub fn joins(&self) -> bool {
        self.kind == HostKind::Joining
    }
}

/// A network from which pods get their addresses. Each node gets a part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PodNetwork {
    /// The network.
    pub cidr: Cidr,
    /// Length of the prefix of a node's part.
    pub host_prefix: i64,
}

/// The settings of a cluster that rules read.
#[derive(Clone, Debug)]
pub struct ClusterSettings {
    /// Id.
    pub id: ClusterId,
    /// Kind.
    pub kind: ClusterKind,
    /// Status.
    pub status: ClusterStatus,
    /// Whether it was installed without this service.
    pub imported: bool,
    /// Name.
    pub name: Box<str>,
    /// Base domain.
    pub base_dns_domain: Box<str>,
    /// DNS name of the API, if it does not follow from the base domain.
    pub api_vip_dns_name: Option<Box<str>>,
    /// Version of the release. `None`: unknown.
    pub version: Option<Version>,
    /// Pull spec of the release image.
    pub release_image: Box<str>,
    /// Platform.
    pub platform: Option<PlatformType>,
    /// Number of control plane nodes. 0: unknown.
    pub control_plane_count: i64,
    /// Whether the user manages the networking.
    pub user_managed_networking: bool,
    /// Type of the load balancer.
    pub load_balancer: Option<LoadBalancerType>,
    /// Whether a DHCP server assigns the virtual IP addresses.
    pub vip_dhcp_allocation: bool,
    /// Lease of the virtual IP address of the API, in the format of dhclient. Empty: none.
    pub api_vip_lease: Box<str>,
    /// Lease of the virtual IP address of the ingress, in the format of dhclient. Empty: none.
    pub ingress_vip_lease: Box<str>,
    /// Network plugin for pods.
    pub network_type: Option<NetworkType>,
    /// Machine networks.
    pub machine_networks: Vec<Cidr>,
    /// Cluster networks, from which pods get their addresses.
    pub cluster_networks: Vec<PodNetwork>,
    /// Service networks.
    pub service_networks: Vec<Cidr>,
    /// Virtual IP addresses of the API.
    pub api_vips: Vec<IpAddr>,
    /// Virtual IP addresses of the ingress.
    pub ingress_vips: Vec<IpAddr>,
    /// Time servers that replace all others.
    pub ntp_sources: Box<str>,
    /// Additional time servers.
    pub additional_ntp_source: Box<str>,
    /// Additional time servers of the cluster's infra-envs, each once, in the order of the infra-envs.
    pub infra_env_ntp_sources: Vec<Box<str>>,
    /// Disk encryption.
    pub disk_encryption: DiskEncryption,
    /// Endpoint from which hosts that join fetch their Ignition config.
    pub ignition_endpoint: IgnitionEndpoint,
    /// Whether a pull secret is set.
    pub has_pull_secret: bool,
    /// Ids of host validations that the user ignores: a list as JSON. Empty: none.
    pub ignored_host_validations: Box<str>,
    /// Ids of cluster validations that the user ignores: a list as JSON. Empty: none.
    pub ignored_cluster_validations: Box<str>,
}

impl ClusterSettings {
    /// Returns a cluster without settings.
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

    /// Returns `true` if the cluster has one node.
    #[must_use]
    pub fn is_single_node(&self) -> bool {
        self.control_plane_count == 1
    }

    /// Returns `true` if the user provides the load balancer of a cluster with several nodes.
    #[must_use]
    pub fn has_user_managed_load_balancer(&self) -> bool {
        self.load_balancer == Some(LoadBalancerType::UserManaged)
    }

    /// Returns the name under which hosts that join reach the API: a DNS name or an address. `None` if the cluster has
    /// none.
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
    /// The cluster.
    pub cluster: Arc<ClusterSettings>,
    /// Its hosts, by id.
    pub hosts: Vec<Arc<HostView>>,
}
