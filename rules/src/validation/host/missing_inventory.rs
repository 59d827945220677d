//! Describes the outcome that validations share if they need an inventory report and no report is stored.

use crate::validation::outcome::OutcomeDescription;

/// The message of a validation that needs an inventory report.
pub(super) const MISSING_INVENTORY: &str = "Missing inventory";

/// The remedy for a missing inventory report.
pub(super) const WAIT_FOR_INVENTORY: &str =
    "Wait for the inventory report of the agent. If none arrives, check the log of the agent on the host.";

/// Returns the description of the outcome without an inventory report.
pub(super) fn missing_inventory() -> OutcomeDescription {
    OutcomeDescription::pending(MISSING_INVENTORY, WAIT_FOR_INVENTORY)
}
