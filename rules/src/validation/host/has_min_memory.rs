//! Validation `has-min-memory`: whether the host has enough memory for at least one role.

use serde::{Deserialize, Serialize};

use super::group::HostGroup;
use super::input::HostInput;
use super::minimum::{MIB, below_minimum, format_bytes};
use super::missing_inventory::missing_inventory;
use crate::validation::definition::{ValidationCategory, ValidationDefinition};
use crate::validation::outcome::{OutcomeDescription, TypedOutcome};

/// Amount by which the reported memory may be too small, because firmware and graphics reserve some of it.
const TOLERANCE_MIB: i128 = 100;

/// Divisor for the memory that the kernel reserves: one fiftieth (2 %) of the minimum.
const KERNEL_SHARE: i128 = 50;

/// The outcome of the validation `has-min-memory`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MinMemoryOutcome {
    /// No inventory report is stored.
    MissingInventory,
    /// The memory suffices for at least one role.
    Sufficient,
    /// The memory does not suffice for any role.
    TooLittle {
        /// Memory for the least demanding role, in MiB.
        minimum_mib: i64,
        /// Memory of the host, in bytes.
        found_bytes: i64,
    },
}

impl TypedOutcome for MinMemoryOutcome {
    type Group = HostGroup;
    type Input<'a> = HostInput<'a>;

    const DEFINITION: ValidationDefinition<HostGroup> = ValidationDefinition {
        category: ValidationCategory::Hardware,
        groups: &[HostGroup::MinimumHardware, HostGroup::Unbound],
        is_ignorable: true,
        hidden_in: &[],
        applies_to: "all hosts",
        passes_if: "the host has as much memory as the role that needs the least. 100 MiB may be missing, and another \
                    2% if the agent read the size from `/proc/meminfo`",
    };

    fn evaluate(input: &HostInput<'_>) -> Self {
        let Some(inventory) = input.inventory() else { return Self::MissingInventory };
        let minimum_mib = input.minimum.ram_mib;
        // A report that omits the memory counts as zero bytes.
        let found_bytes = inventory.physical_bytes.unwrap_or(0);
        if i128::from(found_bytes) >= required_bytes(minimum_mib, inventory.memory_is_meminfo) {
            return Self::Sufficient;
        }
        Self::TooLittle { minimum_mib, found_bytes }
    }

    fn describe(&self) -> OutcomeDescription {
        match *self {
            Self::MissingInventory => missing_inventory(),
            Self::Sufficient => OutcomeDescription::success("Sufficient minimum RAM"),
            Self::TooLittle { minimum_mib, found_bytes } => {
                let minimum = format_bytes(i128::from(minimum_mib) * MIB);
                OutcomeDescription::failure(
                    below_minimum("RAM", minimum, format_bytes(found_bytes.into())),
                    "Use a machine with more memory, or add memory to the virtual machine.",
                )
            }
        }
    }

    fn has_same_items(&self, other: &Self) -> bool {
        match (self, other) {
            (
                Self::TooLittle { minimum_mib, found_bytes: _ },
                Self::TooLittle { minimum_mib: other, found_bytes: _ },
            ) => minimum_mib == other,
            _ => self == other,
        }
    }

    fn samples() -> Vec<Self> {
        let too_little = Self::TooLittle { minimum_mib: 8192, found_bytes: 6 << 30 };
        vec![Self::MissingInventory, Self::Sufficient, too_little]
    }
}

/// Returns the minimum in bytes, reduced by the tolerances.
fn required_bytes(minimum_mib: i64, is_meminfo: bool) -> i128 {
    let required = (i128::from(minimum_mib) - TOLERANCE_MIB) * MIB;
    // `/proc/meminfo` does not include the memory that the kernel reserves at boot.
    if is_meminfo { required - required / KERNEL_SHARE } else { required }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_may_be_slightly_below_the_minimum() {
        assert_eq!(required_bytes(8192, false), 8092 * MIB);
        let meminfo = required_bytes(8192, true);
        assert!(meminfo <= 7931 * MIB && meminfo > 7930 * MIB);
        assert!(required_bytes(i64::MAX, true) > 0);
    }
}
