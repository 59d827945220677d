//! Validation `has-inventory`: whether an inventory report of the host is stored.

use serde::{Deserialize, Serialize};

use super::group::HostGroup;
use super::input::HostInput;
use super::missing_inventory::WAIT_FOR_INVENTORY;
use crate::validation::definition::{ValidationCategory, ValidationDefinition};
use crate::validation::outcome::{OutcomeDescription, TypedOutcome};

/// The outcome of the validation `has-inventory`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HasInventoryOutcome {
    /// A report is stored.
    Received,
    /// No report is stored.
    Missing,
}

impl TypedOutcome for HasInventoryOutcome {
    type Group = HostGroup;
    type Input<'a> = HostInput<'a>;

    const DEFINITION: ValidationDefinition<HostGroup> = ValidationDefinition {
        category: ValidationCategory::Hardware,
        groups: &[HostGroup::ValidInventory],
        is_ignorable: false,
        hidden_in: &[],
        applies_to: "all hosts",
        passes_if: "the agent has sent an inventory report",
    };

    fn evaluate(input: &HostInput<'_>) -> Self {
        if input.inventory().is_some() { Self::Received } else { Self::Missing }
    }

    fn describe(&self) -> OutcomeDescription {
        match self {
            Self::Received => OutcomeDescription::success("Valid inventory exists for the host"),
            Self::Missing => OutcomeDescription::failure(
                "Inventory has not been received for the host",
                WAIT_FOR_INVENTORY,
            ),
        }
    }

    fn samples() -> Vec<Self> {
        vec![Self::Received, Self::Missing]
    }
}
