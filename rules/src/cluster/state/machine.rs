//! What the rules of clusters decide besides the status.

use std::convert::Infallible;

use assisted::cluster::ClusterStatus;

use crate::transitions::StateMachine;

/// An event for which the table of clusters has no rule. The cluster does not change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoClusterRule;

/// Clusters as a [`StateMachine`].
pub(super) enum ClusterMachine {}

impl StateMachine for ClusterMachine {
    type Status = ClusterStatus;
    type Refusal = NoClusterRule;
    type Reset = Infallible;
}
