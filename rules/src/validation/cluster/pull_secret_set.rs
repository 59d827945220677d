//! Validation `pull-secret-set`: whether the cluster has a pull secret.

use serde::{Deserialize, Serialize};

use super::group::ClusterGroup;
use super::input::ClusterInput;
use crate::validation::definition::{ValidationCategory, ValidationDefinition};
use crate::validation::outcome::{OutcomeDescription, TypedOutcome};

/// The outcome of the validation `pull-secret-set`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PullSecretOutcome {
    /// The cluster has a pull secret.
    Set,
    /// The cluster has no pull secret.
    NotSet,
}

impl TypedOutcome for PullSecretOutcome {
    type Group = ClusterGroup;
    type Input<'a> = ClusterInput<'a>;

    const DEFINITION: ValidationDefinition<ClusterGroup> = ValidationDefinition {
        category: ValidationCategory::Configuration,
        groups: &[ClusterGroup::PendingConditions],
        is_ignorable: false,
        hidden_in: &[],
        applies_to: "all clusters",
        passes_if: "the cluster has a pull secret",
    };

    fn evaluate(input: &ClusterInput<'_>) -> Self {
        if input.view.cluster.has_pull_secret { Self::Set } else { Self::NotSet }
    }

    fn describe(&self) -> OutcomeDescription {
        match self {
            Self::Set => OutcomeDescription::success("The pull secret is set."),
            Self::NotSet => OutcomeDescription::failure(
                "The pull secret is not set.",
                "Set `pull_secret` of the cluster.",
            ),
        }
    }

    fn samples() -> Vec<Self> {
        vec![Self::Set, Self::NotSet]
    }
}
