//! Validation `api-vips-defined`: whether the virtual IP addresses of the API are set.

use assisted::step::VipType;
use serde::{Deserialize, Serialize};

use super::group::ClusterGroup;
use super::input::ClusterInput;
use super::vips_defined::{DEFINITION, VipsDefinedOutcome};
use crate::validation::definition::ValidationDefinition;
use crate::validation::outcome::{OutcomeDescription, TypedOutcome};

/// The outcome of the validation `api-vips-defined`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ApiVipsDefinedOutcome(VipsDefinedOutcome);

impl TypedOutcome for ApiVipsDefinedOutcome {
    type Group = ClusterGroup;
    type Input<'a> = ClusterInput<'a>;

    const DEFINITION: ValidationDefinition<ClusterGroup> = DEFINITION;

    fn evaluate(input: &ClusterInput<'_>) -> Self {
        Self(VipsDefinedOutcome::evaluate(&input.view.cluster, VipType::Api))
    }

    fn describe(&self) -> OutcomeDescription {
        self.0.describe(VipType::Api)
    }

    fn samples() -> Vec<Self> {
        VipsDefinedOutcome::samples().into_iter().map(Self).collect()
    }
}
