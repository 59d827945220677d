//! Validation `inventory-not-partially-truncated`: whether the agent omitted a part of its inventory report because it
//! was too large.

use serde::{Deserialize, Serialize};

use super::group::HostGroup;
use super::input::HostInput;
use super::missing_inventory::missing_inventory;
use super::truncation::{REDUCE_REPORT, ReportExtent, UNEXPECTED_TYPE, UPDATE_AGENT};
use crate::validation::definition::{ValidationCategory, ValidationDefinition};
use crate::validation::outcome::{OutcomeDescription, TypedOutcome};

/// The outcome of the validation `inventory-not-partially-truncated`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PartialTruncationOutcome {
    /// No report is stored.
    MissingInventory,
    /// The report is complete.
    Complete,
    /// The agent omitted the whole report. Another validation covers this.
    Empty,
    /// The agent omitted a part of the report.
    Truncated {
        /// Reasons of the agent for the omission.
        reasons: Box<str>,
    },
    /// The agent reported an unknown extent of the omission.
    UnknownExtent,
}

impl TypedOutcome for PartialTruncationOutcome {
    type Group = HostGroup;
    type Input<'a> = HostInput<'a>;

    const DEFINITION: ValidationDefinition<HostGroup> = ValidationDefinition {
        category: ValidationCategory::Hardware,
        groups: &[],
        is_ignorable: true,
        hidden_in: &[],
        applies_to: "all hosts",
        passes_if: "the agent left out no part of the report, or all of it",
    };

    fn evaluate(input: &HostInput<'_>) -> Self {
        match input.inventory().map(ReportExtent::from_report) {
            None => Self::MissingInventory,
            Some(ReportExtent::Complete) => Self::Complete,
            Some(ReportExtent::Empty(_)) => Self::Empty,
            Some(ReportExtent::Partial(reasons)) => Self::Truncated { reasons: reasons.into() },
            Some(ReportExtent::Unknown) => Self::UnknownExtent,
        }
    }

    fn describe(&self) -> OutcomeDescription {
        match self {
            Self::MissingInventory => missing_inventory(),
            Self::Complete => OutcomeDescription::success("Inventory is not truncated"),
            Self::Empty => OutcomeDescription::success("Inventory is not partially truncated"),
            Self::Truncated { reasons } => OutcomeDescription::failure(
                format!("Inventory is truncated (partial): {reasons}"),
                REDUCE_REPORT,
            ),
            Self::UnknownExtent => OutcomeDescription::error(UNEXPECTED_TYPE, UPDATE_AGENT),
        }
    }

    fn samples() -> Vec<Self> {
        let truncated = Self::Truncated { reasons: "*reasons*".into() };
        vec![Self::MissingInventory, Self::Complete, Self::Empty, truncated, Self::UnknownExtent]
    }
}
