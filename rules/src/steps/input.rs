//! The input for choosing the steps of an agent.

use std::collections::BTreeSet;

use assisted::host::HostRole;
use assisted::step::StepType;

use super::connectivity::ConnectivityTargets;
use crate::view::{ClusterView, HostView};

/// The facts that decide the steps of one agent.
#[derive(Clone, Copy, Debug)]
pub struct StepInput<'a> {
    /// The host on which the agent runs.
    pub host: &'a HostView,
    /// The cluster of the host, or `None` if the host is not bound to a cluster.
    pub cluster: Option<&'a ClusterView>,
    /// Comma-separated time servers of the infra-env. Used only if the host has no cluster.
    pub pool_ntp_sources: &'a str,
    /// The hosts whose connectivity the agent checks. `None` without a cluster, or if the host must wait for its turn.
    pub targets: Option<&'a ConnectivityTargets>,
    /// Settings of the service that affect the steps.
    pub settings: &'a StepSettings,
}

/// Settings of the service that affect the steps of all agents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepSettings {
    /// Container image of the agent.
    pub agent_image: String,
    /// Whether agents with another container image are upgraded.
    pub upgrade_agents: bool,
    /// Types of steps that the operator has disabled.
    pub disabled_steps: BTreeSet<StepType>,
    /// Maximum size of an inventory report in bytes. `None` means no limit.
    pub inventory_max_size: Option<u64>,
    /// Minimum size in bytes of a disk listed in an inventory report. `None` means no limit.
    pub disk_min_size: Option<u64>,
    /// Whether agents search for unused addresses. `false` with the Kubernetes API.
    pub finds_free_addresses: bool,
}

/// The reason why a step has no arguments, although the status of the host requires the step.
#[derive(Debug, thiserror::Error)]
pub(super) enum StepError {
    #[error("not available yet")]
    NotAvailable,
    #[error("the host has no cluster")]
    NoCluster,
    #[error("the cluster has no name")]
    NoClusterName,
    #[error("the cluster has no base domain")]
    NoBaseDomain,
    #[error("the cluster has no API name")]
    NoApiName,
    #[error("cannot read the registry's host name from the release image {0:?}")]
    ReleaseImage(String),
    #[error("the cluster's Ignition endpoint {0:?} is not a URL")]
    IgnitionEndpoint(String),
    #[error("the cluster has no machine network")]
    NoMachineNetwork,
    #[error("no interface of the host is in the machine network {0}")]
    NotInMachineNetwork(String),
    #[error("the {role} {hostname:?} has no address in the machine network {network}")]
    PeerNotInMachineNetwork { role: HostRole, hostname: String, network: String },
    #[error("the cluster encrypts disks with Tang and has no Tang servers")]
    NoTangServers,
    #[error("cannot write the arguments as JSON: {0}")]
    Json(#[from] serde_json::Error),
}
