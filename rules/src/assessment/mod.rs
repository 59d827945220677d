//! The assessment of a cluster: all decisions that follow from the facts about the cluster and its hosts.
//!
//! [`assess_hosts`] first decides the machine networks, the suggested roles, the validation results and the statuses of
//! the hosts, in this order. [`assess_cluster`] then decides the results and the status of the cluster. Between the two
//! calls, the caller stores the new statuses of the hosts. If it cannot store the status of a host, this host stays
//! unchanged.
//!
//! The same facts always lead to the same decisions. If all decisions are stored, another assessment changes nothing.

mod cluster;
mod evaluation;
mod hosts;

pub use cluster::{AssessedCluster, assess_cluster};
pub use evaluation::{EvaluationSettings, HostEvaluation};
pub use hosts::{AssessedHost, HostsAssessment, RoleAssignment, assess_hosts};

#[cfg(test)]
mod tests;
