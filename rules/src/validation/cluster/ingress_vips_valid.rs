//! Validation `ingress-vips-valid`: whether the virtual IP addresses of ingress are unused addresses in the machine
//! networks.

use assisted::step::VipType;
use serde::{Deserialize, Serialize};

use super::group::ClusterGroup;
use super::input::ClusterInput;
use super::vips_valid::{DEFINITION, VipsValidOutcome};
use crate::validation::definition::ValidationDefinition;
use crate::validation::outcome::{OutcomeDescription, TypedOutcome};

/// The outcome of the validation `ingress-vips-valid`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct IngressVipsValidOutcome(VipsValidOutcome);

impl TypedOutcome for IngressVipsValidOutcome {
    type Group = ClusterGroup;
    type Input<'a> = ClusterInput<'a>;

    const DEFINITION: ValidationDefinition<ClusterGroup> = DEFINITION;

    fn evaluate(input: &ClusterInput<'_>) -> Self {
        Self(VipsValidOutcome::evaluate(input.view, VipType::Ingress))
    }

    fn describe(&self) -> OutcomeDescription {
        self.0.describe(VipType::Ingress)
    }

    fn samples() -> Vec<Self> {
        VipsValidOutcome::samples().into_iter().map(Self).collect()
    }
}
