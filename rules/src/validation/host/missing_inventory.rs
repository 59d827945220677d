//! The outcome of validations that need an inventory report, before it arrives.

use crate::validation::outcome::OutcomeDescription;

/// The message of a validation that needs an inventory report.
pub(super) const MISSING_INVENTORY: &str = "Missing inventory";

/// What a user can do if no inventory report is stored.
pub(super) const WAIT_FOR_INVENTORY: &str =
    "Wait for the inventory report of the agent. If none arrives, check the log of the agent on the host.";

/// Returns the description of an outcome without an inventory report.
pub(super) fn missing_inventory() -> OutcomeDescription {
    OutcomeDescription::pending(MISSING_INVENTORY, WAIT_FOR_INVENTORY)
}
