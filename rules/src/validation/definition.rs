//! The properties of a validation that never change: its category, its groups, and which clients see it.

use std::fmt;

use assisted::host::HostStage;

assisted::string_enum! {
    /// The subject of a validation. Clients show validations by category.
    ValidationCategory {
        /// Networks and addresses.
        Network = "network",
        /// The hardware of a host, and its host name.
        Hardware = "hardware",
        /// The hosts of a cluster.
        HostsData = "hosts-data",
        /// The settings of a cluster.
        Configuration = "configuration",
        /// The requirements of operators.
        Operators = "operators",
    }
}

/// The fixed properties of a validation. `G` is the type of the groups.
#[derive(Clone, Copy, Debug)]
pub struct ValidationDefinition<G: 'static> {
    /// The category under which clients show the validation.
    pub category: ValidationCategory,
    /// The groups that contain the validation. A validation without a group is only reported.
    pub groups: &'static [G],
    /// Whether users can ignore the validation.
    pub is_ignorable: bool,
    /// Installation stages of a host in which clients do not see the validation.
    pub hidden_in: &'static [HostStage],
    /// The hosts or clusters to which the validation applies, for the documentation.
    pub applies_to: &'static str,
    /// The condition for success, for the documentation.
    pub passes_if: &'static str,
}

/// The order of validations within a category. Operator validations are always sorted by id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListOrder {
    /// Computing order, which is the order of the ids in the registry.
    Computing,
    /// Sorted by id.
    ById,
}

/// The id of a validation. Ids sort in computing order.
pub trait ValidationId: Copy + Ord + fmt::Debug + 'static {
    /// The type of the groups. A status rule can require that all validations of a group are satisfied.
    type Group: Copy + PartialEq + fmt::Debug + 'static;

    /// All ids, in computing order.
    const ALL: &'static [Self];

    /// The order in which clients see the validations.
    const ORDER: ListOrder;

    /// Ids of the Assisted Installer without an implementation here. These validations count as satisfied.
    const UNIMPLEMENTED: &'static [&'static str];

    /// Returns the id as the API shows it.
    fn as_str(self) -> &'static str;

    /// Returns the fixed properties of the validation.
    fn definition(self) -> &'static ValidationDefinition<Self::Group>;

    /// Returns the id for a text, or `None` if the text is unknown.
    #[must_use]
    fn find(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|id| id.as_str() == text)
    }

    /// Returns `true` if the validation is about the requirements of an operator.
    #[must_use]
    fn is_of_operator(self) -> bool {
        self.definition().category == ValidationCategory::Operators
    }
}
