//! Validation `has-min-valid-disks`: whether the host has a disk on which OpenShift can be installed.

use serde::{Deserialize, Serialize};

use super::group::HostGroup;
use super::input::HostInput;
use super::missing_inventory::missing_inventory;
use crate::validation::definition::{ValidationCategory, ValidationDefinition};
use crate::validation::outcome::{OutcomeDescription, TypedOutcome};

/// The outcome of the validation `has-min-valid-disks`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MinValidDisksOutcome {
    /// No inventory report is stored.
    MissingInventory,
    /// At least one disk is eligible.
    Sufficient,
    /// The host has disks, but no eligible one.
    NoneEligible,
    /// The host has no disks.
    NoDisks,
}

impl TypedOutcome for MinValidDisksOutcome {
    type Group = HostGroup;
    type Input<'a> = HostInput<'a>;

    const DEFINITION: ValidationDefinition<HostGroup> = ValidationDefinition {
        category: ValidationCategory::Hardware,
        groups: &[HostGroup::MinimumHardware, HostGroup::Unbound],
        is_ignorable: true,
        hidden_in: &[],
        applies_to: "all hosts",
        passes_if: "a disk is eligible for the installation",
    };

    fn evaluate(input: &HostInput<'_>) -> Self {
        match input.inventory() {
            None => Self::MissingInventory,
            Some(inventory) if inventory.disks.is_empty() => Self::NoDisks,
            Some(_) if input.eligible_disks == 0 => Self::NoneEligible,
            Some(_) => Self::Sufficient,
        }
    }

    fn describe(&self) -> OutcomeDescription {
        match self {
            Self::MissingInventory => missing_inventory(),
            Self::Sufficient => OutcomeDescription::success("Sufficient disk capacity"),
            Self::NoneEligible => OutcomeDescription::failure(
                "No eligible disks were found, please check specific disks to see why they are not eligible",
                "Read the reasons in `installation_eligibility` of each disk, and add or replace a disk.",
            ),
            Self::NoDisks => OutcomeDescription::error(
                "Failed to detected disks",
                "Connect a disk to the host, and check that the discovery image has a driver for its controller.",
            ),
        }
    }

    fn samples() -> Vec<Self> {
        vec![Self::MissingInventory, Self::Sufficient, Self::NoneEligible, Self::NoDisks]
    }
}
