//! The status of a cluster: the first status, the events that change it, and the operations that each status allows.
//!
//! [`decide`] returns the [`ClusterTransition`] for an event. A caller must change the status of a cluster record only
//! by applying a transition. Installations are not implemented, so no rule leads to a status of an installation.
//! `docs/state-machines.md` shows the rules.

mod facts;
mod machine;
mod tables;

pub use facts::ClusterConclusions;
pub use machine::NoClusterRule;

use assisted::cluster::ClusterStatus;
use assisted::cluster::ClusterStatus::{
    AddingHosts, Installing, Insufficient, PendingForInput, Ready, Unmonitored,
};
use chrono::{DateTime, Utc};

use crate::transitions::{RuleOutcome, find_rule};

/// The origin of a cluster record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClusterOrigin {
    /// A cluster that this service is to install.
    Registered,
    /// An installed cluster, imported in order to add hosts.
    Imported,
    /// A cluster whose installation has no connection to this service.
    Disconnected,
}

impl ClusterOrigin {
    #[cfg(test)]
    const ALL: [Self; 3] = [Self::Registered, Self::Imported, Self::Disconnected];

    /// Returns the status of a new cluster, and the status text.
    pub fn first_status(self) -> (ClusterStatus, &'static str) {
        match self {
            Self::Registered => (Insufficient, "Cluster is not ready for install"),
            Self::Imported => (AddingHosts, "cluster is adding hosts to existing OCP cluster"),
            Self::Disconnected => (Unmonitored, "Cluster created for offline installation"),
        }
    }
}

/// An event that can change the status of a cluster.
#[derive(Clone, Copy, Debug)]
pub enum ClusterEvent {
    /// Facts about the cluster may have changed: its settings or its hosts.
    Refresh(ClusterConclusions),
}

/// A change to a cluster's status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterTransition {
    status: Option<ClusterStatus>,
    info: Option<String>,
    at: DateTime<Utc>,
}

impl ClusterTransition {
    /// Returns the first transition of a new cluster.
    #[must_use]
    pub fn first(origin: ClusterOrigin, at: DateTime<Utc>) -> Self {
        let (status, info) = origin.first_status();
        Self { status: Some(status), info: Some(info.to_owned()), at }
    }

    /// Returns the new status, which may equal the current one. `None` if the status stays.
    #[must_use]
    pub fn status(&self) -> Option<ClusterStatus> {
        self.status
    }

    /// Returns the new status text, or `None` if the text stays.
    #[must_use]
    pub fn info(&self) -> Option<&str> {
        self.info.as_deref()
    }

    /// Returns the time of the event that caused the transition.
    #[must_use]
    pub fn at(&self) -> DateTime<Utc> {
        self.at
    }
}

/// Returns the transition of a cluster with status `status` for an event at the time `now`.
///
/// # Errors
///
/// Returns an error if no rule of the event matches.
pub fn decide(
    status: ClusterStatus,
    event: &ClusterEvent,
    now: DateTime<Utc>,
) -> Result<ClusterTransition, NoClusterRule> {
    let ClusterEvent::Refresh(conclusions) = event;
    let rule = find_rule::<tables::Refresh>(status, conclusions).ok_or(NoClusterRule)?;
    let status = match rule.outcome {
        RuleOutcome::To(status) => Some(status),
        RuleOutcome::Stay => None,
        RuleOutcome::Refused(refusal) => return Err(refusal),
    };
    Ok(ClusterTransition { status, info: rule.info.write(conclusions), at: now })
}

/// An operation allowed only in some statuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClusterOperation {
    /// A change to the cluster's settings.
    Update,
    /// A host registers in an infra-env of the cluster, or is bound to the cluster.
    AddHost,
    /// The deletion of the cluster.
    Delete,
}

/// The statuses in which a cluster can be changed and accepts hosts.
pub const CHANGEABLE_STATUSES: [ClusterStatus; 4] = [Insufficient, Ready, PendingForInput, AddingHosts];

impl ClusterOperation {
    #[cfg(test)]
    const ALL: [Self; 3] = [Self::Update, Self::AddHost, Self::Delete];

    /// Returns `true` if a cluster with this status allows the operation.
    pub fn is_allowed(self, status: ClusterStatus) -> bool {
        match self {
            Self::Update | Self::AddHost => CHANGEABLE_STATUSES.contains(&status),
            Self::Delete => status != Installing,
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
