//! Validation `dns-domain-defined`: whether the base DNS domain is set.

use serde::{Deserialize, Serialize};

use super::group::ClusterGroup;
use super::input::ClusterInput;
use crate::validation::definition::{ValidationCategory, ValidationDefinition};
use crate::validation::outcome::{OutcomeDescription, TypedOutcome};

/// The outcome of the validation `dns-domain-defined`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DnsDomainOutcome {
    /// The cluster has a base domain.
    Defined,
    /// The cluster has no base domain.
    Undefined,
}

impl TypedOutcome for DnsDomainOutcome {
    type Group = ClusterGroup;
    type Input<'a> = ClusterInput<'a>;

    const DEFINITION: ValidationDefinition<ClusterGroup> = ValidationDefinition {
        category: ValidationCategory::Network,
        groups: &[ClusterGroup::PendingConditions],
        is_ignorable: true,
        hidden_in: &[],
        applies_to: "all clusters",
        passes_if: "`base_dns_domain` is not empty",
    };

    fn evaluate(input: &ClusterInput<'_>) -> Self {
        if input.view.cluster.base_dns_domain.is_empty() { Self::Undefined } else { Self::Defined }
    }

    fn describe(&self) -> OutcomeDescription {
        match self {
            Self::Defined => OutcomeDescription::success("The base domain is defined."),
            Self::Undefined => OutcomeDescription::failure(
                "The base domain is undefined and must be provided.",
                "Set `base_dns_domain` of the cluster.",
            ),
        }
    }

    fn samples() -> Vec<Self> {
        vec![Self::Defined, Self::Undefined]
    }
}
