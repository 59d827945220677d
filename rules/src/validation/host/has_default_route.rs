//! Validation `has-default-route`: whether the host has a default route.

use serde::{Deserialize, Serialize};

use super::group::HostGroup;
use super::input::HostInput;
use super::missing_inventory::WAIT_FOR_INVENTORY;
use crate::summary::RouteSummary;
use crate::validation::definition::{ValidationCategory, ValidationDefinition};
use crate::validation::outcome::{OutcomeDescription, TypedOutcome};

/// The outcome of the validation `has-default-route`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DefaultRouteOutcome {
    /// No inventory report is stored.
    MissingInventory,
    /// The host has a default route.
    Configured,
    /// The host has no default route.
    Missing,
}

impl TypedOutcome for DefaultRouteOutcome {
    type Group = HostGroup;
    type Input<'a> = HostInput<'a>;

    const DEFINITION: ValidationDefinition<HostGroup> = ValidationDefinition {
        category: ValidationCategory::Network,
        groups: &[HostGroup::SufficientForInstall],
        is_ignorable: true,
        hidden_in: &[],
        applies_to: "all hosts",
        passes_if: "the host has a default route with a gateway, of IPv4 or IPv6",
    };

    fn evaluate(input: &HostInput<'_>) -> Self {
        let Some(inventory) = input.inventory() else { return Self::MissingInventory };
        if inventory.routes.iter().any(is_default) { Self::Configured } else { Self::Missing }
    }

    fn describe(&self) -> OutcomeDescription {
        match self {
            Self::MissingInventory => {
                OutcomeDescription::pending("Missing default routing information.", WAIT_FOR_INVENTORY)
            }
            Self::Configured => {
                OutcomeDescription::success("Host has been configured with at least one default route.")
            }
            Self::Missing => OutcomeDescription::failure(
                "Host has not yet been configured with a default route.",
                "Configure a gateway: in the DHCP server, or in the static network config of the host.",
            ),
        }
    }

    fn samples() -> Vec<Self> {
        vec![Self::MissingInventory, Self::Configured, Self::Missing]
    }
}

fn is_default(route: &RouteSummary) -> bool {
    route.destination.is_some_and(|destination| destination.is_unspecified())
        && route.gateway.is_some_and(|gateway| !gateway.is_unspecified())
}
