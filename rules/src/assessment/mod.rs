//! The assessment of a cluster: everything that follows from the facts about the cluster and all of its hosts.
//!
//! [`assess_hosts`] decides about the machine networks, the suggested roles, the validations and the statuses of the
//! hosts, in this order. After that, [`assess_cluster`] decides about the cluster. A caller that cannot store the new
//! status of a host leaves the host unchanged in between.
//!
//! The same facts always lead to the same decisions, and an assessment of a cluster that has all of them changes nothing.

mod cluster;
mod evaluation;
mod hosts;

pub use cluster::{AssessedCluster, assess_cluster};
pub use evaluation::{EvaluationSettings, HostEvaluation};
pub use hosts::{AssessedHost, HostsAssessment, RoleAssignment, assess_hosts};

#[cfg(test)]
mod tests;
