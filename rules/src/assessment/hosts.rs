//! The assessment of all hosts of a cluster: their networks, suggested roles, validations and statuses.

use std::collections::BTreeMap;
use std::sync::Arc;

use assisted::HostId;
use assisted::host::HostRole;
use chrono::{DateTime, Utc};
use ignition::Cidr;
use ignition::version::Version;

use super::evaluation::{EvaluationSettings, HostEvaluation};
use crate::cluster::machine_networks::new_machine_networks;
use crate::cluster::peer_facts::PeerFacts;
use crate::cluster::roles::new_suggestions;
use crate::host::state::{HostConclusions, HostEvent, Transition, decide};
use crate::host::status::is_before_installation;
use crate::validation::host::HostCluster;
use crate::validation::{HostValidationId, IgnoredListError, IgnoredValidations};
use crate::view::{ClusterSettings, ClusterView, HostView};

/// The decisions of an assessment about one host.
#[derive(Debug)]
pub struct AssessedHost {
    /// The role to suggest; may equal the current one.
    pub suggested_role: HostRole,
    /// The reasons why the host's disks are not eligible, and the results of the host's validations.
    pub evaluation: HostEvaluation,
    /// The status transition of the host. The new status may equal the current status. `None` during an installation,
    /// or if the agent must register again first.
    pub transition: Option<Transition>,
}

/// The decisions of an assessment about all hosts of a cluster.
#[derive(Debug)]
pub struct HostsAssessment {
    /// The machine networks to store. `None` if the stored networks do not change.
    pub machine_networks: Option<Vec<Cidr>>,
    /// The assessed hosts, in the order of the view.
    pub hosts: Vec<AssessedHost>,
    /// Facts about all hosts together.
    pub peers: PeerFacts,
}

/// Assesses the hosts of a cluster. `image_version` returns the version of the base image of a host's infra-env.
///
/// # Errors
///
/// Returns an error if the cluster's list of ignored validations is malformed.
pub fn assess_hosts<'a>(
    view: &ClusterView,
    image_version: impl Fn(&HostView) -> Option<&'a Version>,
    settings: EvaluationSettings<'_>,
    role_assignment: RoleAssignment,
    now: DateTime<Utc>,
) -> Result<HostsAssessment, IgnoredListError> {
    let ignored = IgnoredValidations::<HostValidationId>::parse(&view.cluster.ignored_host_validations)?;
    let machine_networks = new_machine_networks(view);
    let suggestions = match role_assignment {
        RoleAssignment::Automatic => new_suggestions(view, settings.hardware),
        RoleAssignment::Manual => Vec::new(),
    };
    let view = with_networks_and_roles(view, machine_networks.as_deref(), &suggestions);
    let peers = PeerFacts::new(&view);
    let hosts = view.hosts.iter().map(|host| {
        let cluster = HostCluster { view: &view, peers: &peers };
        let evaluation = HostEvaluation::new(host, Some(cluster), image_version(host), settings);
        let transition = is_before_installation(host.status).then(|| {
            let conclusions = HostConclusions::new(host, &evaluation.results, &ignored);
            // If no rule matches, the host keeps its status.
            decide(host.status, &HostEvent::Refresh(conclusions), now).ok()
        });
        AssessedHost { suggested_role: host.suggested_role, evaluation, transition: transition.flatten() }
    });
    let hosts = hosts.collect();
    Ok(HostsAssessment { machine_networks, hosts, peers })
}

/// The source of the roles of hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoleAssignment {
    /// The service suggests a role for each host whose user has not chosen a role.
    Automatic,
    /// Users choose all roles.
    Manual,
}

impl HostsAssessment {
    /// Returns the cluster with the new networks, statuses and roles. `is_stored` receives the index of a host, and
    /// returns `false` if the caller could not store the new status: that host stays unchanged.
    #[must_use]
    pub fn applied_to(&self, view: &ClusterView, is_stored: impl Fn(usize) -> bool) -> ClusterView {
        let hosts = view.hosts.iter().zip(&self.hosts).enumerate().map(|(index, (host, assessed))| {
            let status = assessed.transition.as_ref().and_then(Transition::status).unwrap_or(host.status);
            let is_same = status == host.status && assessed.suggested_role == host.suggested_role;
            if is_same || !is_stored(index) {
                return Arc::clone(host);
            }
            Arc::new(HostView { status, suggested_role: assessed.suggested_role, ..HostView::clone(host) })
        });
        let hosts = hosts.collect();
        ClusterView { cluster: with_networks(&view.cluster, self.machine_networks.as_deref()), hosts }
    }
}

fn with_networks(cluster: &Arc<ClusterSettings>, networks: Option<&[Cidr]>) -> Arc<ClusterSettings> {
    match networks {
        Some(networks) => {
            let machine_networks = networks.to_vec();
            Arc::new(ClusterSettings { machine_networks, ..ClusterSettings::clone(cluster) })
        }
        None => Arc::clone(cluster),
    }
}

/// Returns a cluster with new machine networks and suggested roles.
fn with_networks_and_roles(
    view: &ClusterView,
    networks: Option<&[Cidr]>,
    suggestions: &[(HostId, HostRole)],
) -> ClusterView {
    let suggestions: BTreeMap<_, _> = suggestions.iter().copied().collect();
    let hosts = view.hosts.iter().map(|host| match suggestions.get(&host.id).copied() {
        Some(suggested_role) => Arc::new(HostView { suggested_role, ..HostView::clone(host) }),
        None => Arc::clone(host),
    });
    ClusterView { hosts: hosts.collect(), cluster: with_networks(&view.cluster, networks) }
}
