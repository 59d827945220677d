//! Defines clusters as a state machine, for the generic rules in `transitions`.

use std::convert::Infallible;

use assisted::cluster::ClusterStatus;

use crate::transitions::StateMachine;

/// The error for an event that no rule of the cluster table matches. The cluster does not change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoClusterRule;

/// The [`StateMachine`] of clusters.
pub(super) enum ClusterMachine {}

impl StateMachine for ClusterMachine {
    type Status = ClusterStatus;
    type Refusal = NoClusterRule;
    type Reset = Infallible;
}
