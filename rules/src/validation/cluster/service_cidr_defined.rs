//! Validation `service-cidr-defined`: whether a service network is set.

use serde::{Deserialize, Serialize};

use super::group::ClusterGroup;
use super::input::ClusterInput;
use crate::validation::definition::{ValidationCategory, ValidationDefinition};
use crate::validation::outcome::{OutcomeDescription, TypedOutcome};

/// The outcome of the validation `service-cidr-defined`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ServiceCidrOutcome {
    /// The cluster has a service network.
    Defined,
    /// The cluster has no service network.
    Undefined,
}

impl TypedOutcome for ServiceCidrOutcome {
    type Group = ClusterGroup;
    type Input<'a> = ClusterInput<'a>;

    const DEFINITION: ValidationDefinition<ClusterGroup> = ValidationDefinition {
        category: ValidationCategory::Network,
        groups: &[ClusterGroup::PendingConditions],
        is_ignorable: true,
        hidden_in: &[],
        applies_to: "all clusters",
        passes_if: "`service_networks` has an entry",
    };

    fn evaluate(input: &ClusterInput<'_>) -> Self {
        if input.view.cluster.service_networks.is_empty() { Self::Undefined } else { Self::Defined }
    }

    fn describe(&self) -> OutcomeDescription {
        match self {
            Self::Defined => OutcomeDescription::success("The Service Network CIDR is defined."),
            Self::Undefined => OutcomeDescription::failure(
                "The Service Network CIDR is undefined.",
                "Set `service_networks` of the cluster.",
            ),
        }
    }

    fn samples() -> Vec<Self> {
        vec![Self::Defined, Self::Undefined]
    }
}
