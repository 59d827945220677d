//! Validation `cluster-cidr-defined`: whether a cluster network is set, from which pods get their addresses.

use serde::{Deserialize, Serialize};

use super::group::ClusterGroup;
use super::input::ClusterInput;
use crate::validation::definition::{ValidationCategory, ValidationDefinition};
use crate::validation::outcome::{OutcomeDescription, TypedOutcome};

/// The outcome of the validation `cluster-cidr-defined`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClusterCidrOutcome {
    /// The cluster has a cluster network.
    Defined,
    /// The cluster has no cluster network.
    Undefined,
}

impl TypedOutcome for ClusterCidrOutcome {
    type Group = ClusterGroup;
    type Input<'a> = ClusterInput<'a>;

    const DEFINITION: ValidationDefinition<ClusterGroup> = ValidationDefinition {
        category: ValidationCategory::Network,
        groups: &[ClusterGroup::PendingConditions],
        is_ignorable: true,
        hidden_in: &[],
        applies_to: "all clusters",
        passes_if: "`cluster_networks` has an entry",
    };

    fn evaluate(input: &ClusterInput<'_>) -> Self {
        if input.view.cluster.cluster_networks.is_empty() { Self::Undefined } else { Self::Defined }
    }

    fn describe(&self) -> OutcomeDescription {
        match self {
            Self::Defined => OutcomeDescription::success("The Cluster Network CIDR is defined."),
            Self::Undefined => OutcomeDescription::failure(
                "The Cluster Network CIDR is undefined.",
                "Set `cluster_networks` of the cluster.",
            ),
        }
    }

    fn samples() -> Vec<Self> {
        vec![Self::Defined, Self::Undefined]
    }
}
