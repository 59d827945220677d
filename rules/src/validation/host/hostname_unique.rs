//! Validation `hostname-unique`: whether no other host of the cluster has the same name.

use serde::{Deserialize, Serialize};

use super::group::HostGroup;
use super::input::HostInput;
use super::missing_inventory::missing_inventory;
use crate::validation::definition::{ValidationCategory, ValidationDefinition};
use crate::validation::outcome::{OutcomeDescription, TypedOutcome};

/// The outcome of the validation `hostname-unique`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum UniqueHostnameOutcome {
    /// The host does not belong to a cluster.
    Unbound,
    /// No inventory report is stored.
    MissingInventory,
    /// No other host has the name.
    Unique {
        /// Name of the host.
        name: Box<str>,
    },
    /// Another host has the same name.
    Shared {
        /// Name of the host.
        name: Box<str>,
    },
}

impl TypedOutcome for UniqueHostnameOutcome {
    type Group = HostGroup;
    type Input<'a> = HostInput<'a>;

    const DEFINITION: ValidationDefinition<HostGroup> = ValidationDefinition {
        category: ValidationCategory::Hardware,
        groups: &[HostGroup::SufficientForInstall],
        is_ignorable: false,
        hidden_in: &[],
        applies_to: "hosts of a cluster",
        passes_if: "no other host of the cluster has the same name, among those that have sent an inventory report",
    };

    fn evaluate(input: &HostInput<'_>) -> Self {
        let Some(cluster) = input.cluster else { return Self::Unbound };
        if input.inventory().is_none() {
            return Self::MissingInventory;
        }
        let name = input.host.hostname();
        // The count includes the host itself.
        if cluster.peers.name_count(name) > 1 {
            Self::Shared { name: name.into() }
        } else {
            Self::Unique { name: name.into() }
        }
    }

    fn describe(&self) -> OutcomeDescription {
        match self {
            Self::Unbound => OutcomeDescription::suppressed(),
            Self::MissingInventory => missing_inventory(),
            Self::Unique { name } => {
                OutcomeDescription::success(format!("Hostname {name} is unique in cluster"))
            }
            Self::Shared { name } => OutcomeDescription::failure(
                format!("Hostname {name} is not unique in cluster"),
                "Set another name of the host.",
            ),
        }
    }

    fn samples() -> Vec<Self> {
        let name = || "node-1".into();
        vec![
            Self::Unbound,
            Self::MissingInventory,
            Self::Unique { name: name() },
            Self::Shared { name: name() },
        ]
    }
}
