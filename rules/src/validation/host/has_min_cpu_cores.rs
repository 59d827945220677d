//! Validation `has-min-cpu-cores`: whether the host has enough CPU cores for at least one role.

use serde::{Deserialize, Serialize};

use super::group::HostGroup;
use super::input::HostInput;
use super::minimum::below_minimum;
use super::missing_inventory::missing_inventory;
use crate::validation::definition::{ValidationCategory, ValidationDefinition};
use crate::validation::outcome::{OutcomeDescription, TypedOutcome};

/// The outcome of the validation `has-min-cpu-cores`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MinCpuCoresOutcome {
    /// No inventory report is stored.
    MissingInventory,
    /// The CPU cores suffice for at least one role.
    Sufficient,
    /// The CPU cores do not suffice for any role.
    TooFew {
        /// Number of CPU cores for the least demanding role.
        minimum: i64,
        /// Number of CPU cores of the host.
        found: i64,
    },
}

impl TypedOutcome for MinCpuCoresOutcome {
    type Group = HostGroup;
    type Input<'a> = HostInput<'a>;

    const DEFINITION: ValidationDefinition<HostGroup> = ValidationDefinition {
        category: ValidationCategory::Hardware,
        groups: &[HostGroup::MinimumHardware, HostGroup::Unbound],
        is_ignorable: true,
        hidden_in: &[],
        applies_to: "all hosts",
        passes_if: "the host has at least as many CPU cores as the role that needs the fewest",
    };

    fn evaluate(input: &HostInput<'_>) -> Self {
        let Some(inventory) = input.inventory() else { return Self::MissingInventory };
        let minimum = input.minimum.cpu_cores;
        // A report that omits the processors counts as zero cores.
        let cores = inventory.cpus.unwrap_or(0);
        if cores >= minimum { Self::Sufficient } else { Self::TooFew { minimum, found: cores } }
    }

    fn describe(&self) -> OutcomeDescription {
        match self {
            Self::MissingInventory => missing_inventory(),
            Self::Sufficient => OutcomeDescription::success("Sufficient CPU cores"),
            Self::TooFew { minimum, found } => OutcomeDescription::failure(
                below_minimum("CPU cores", minimum, found),
                "Use a machine with more CPU cores, or add CPU cores to the virtual machine.",
            ),
        }
    }

    fn has_same_items(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::TooFew { minimum, found: _ }, Self::TooFew { minimum: other, found: _ }) => {
                minimum == other
            }
            _ => self == other,
        }
    }

    fn samples() -> Vec<Self> {
        vec![Self::MissingInventory, Self::Sufficient, Self::TooFew { minimum: 2, found: 1 }]
    }
}
