//! The fixed properties of a validation.

use std::fmt;

use assisted::host::HostStage;

assisted::string_enum! {
    /// The part of a host or cluster that a validation is about. Clients show validations by category.
    ValidationCategory {
        /// The network.
        Network = "network",
        /// The hardware of a host, and its name.
        Hardware = "hardware",
        /// The hosts of a cluster.
        HostsData = "hosts-data",
        /// The settings of a cluster.
        Configuration = "configuration",
        /// Requirements of operators.
        Operators = "operators",
    }
}

/// The fixed properties of a validation. `G` are the groups that rules ask for.
#[derive(Clone, Copy, Debug)]
pub struct ValidationDefinition<G: 'static> {
    /// Category.
    pub category: ValidationCategory,
    /// Groups that require it. Empty: it is only reported.
    pub groups: &'static [G],
    /// Whether users can ignore it.
    pub is_ignorable: bool,
    /// Stages of a host's installation in which clients do not see it.
    pub hidden_in: &'static [HostStage],
    /// The hosts or clusters that it applies to, for the documentation.
    pub applies_to: &'static str,
    /// When it succeeds, for the documentation.
    pub passes_if: &'static str,
}

/// The order of the validations that clients see in one category. Those of operators are always sorted by id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListOrder {
    /// The order of computation, which is the order of the ids.
    Computing,
    /// Sorted by id.
    ById,
}

/// The id of a validation. Ids are ordered as they are computed.
pub trait ValidationId: Copy + Ord + fmt::Debug + 'static {
    /// A set of validations that rules require together.
    type Group: Copy + PartialEq + fmt::Debug + 'static;

    /// Every id, in computing order.
    const ALL: &'static [Self];

    /// The order in which clients see them.
    const ORDER: ListOrder;

    /// The ids of the Assisted Installer that are not implemented. Such a validation counts as satisfied.
    const UNIMPLEMENTED: &'static [&'static str];

    /// Returns the string that the API uses.
    fn as_str(self) -> &'static str;

    /// Returns the fixed properties.
    fn definition(self) -> &'static ValidationDefinition<Self::Group>;

    /// Returns the id with this string.
    #[must_use]
    fn find(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|id| id.as_str() == text)
    }

    /// Returns `true` if it is about the requirements of an operator.
    #[must_use]
    fn is_of_operator(self) -> bool {
        self.definition().category == ValidationCategory::Operators
    }
}
