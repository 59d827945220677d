//! AgentClassifications: labels on Agents that result from queries on their inventories.
//!
//! An AgentClassification contains a query in the jq language. If the query returns true for the inventory of an Agent,
//! the Agent gets the label `agentclassification.agent-install.openshift.io/<labelKey>=<labelValue>`. If the query
//! fails, the label value is `QUERYERROR-<labelValue>`. The functions of this module are pure. Controllers read and
//! write the objects.
//!
//! The input of a query is `status.inventory` of the Agent as in the custom resource, which omits zero values. For
//! example, `.systemVendor.virtual` of a physical machine is null, not false.

pub mod check;
pub mod counts;
pub mod jq;
pub mod labels;
mod queries;

pub use queries::Queries;

use crate::label_value::label_value;

/// Prefix of the keys of labels that classifications set.
pub const LABEL_PREFIX: &str = "agentclassification.agent-install.openshift.io/";

/// Prefix of the label value for a failed query.
pub const QUERY_ERROR: &str = "QUERYERROR";

/// The fields of an AgentClassification that determine labels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Classification {
    /// `metadata.name`.
    pub name: String,
    /// `spec.labelKey`, without the prefix.
    pub label_key: String,
    /// `spec.labelValue`.
    pub label_value: String,
    /// `spec.query`.
    pub query: String,
    /// Whether `metadata.deletionTimestamp` is set.
    pub deleting: bool,
}

impl Classification {
    /// Returns the full key of the label.
    pub fn key(&self) -> String {
        format!("{LABEL_PREFIX}{}", self.label_key)
    }

    /// Returns the label value for a matching Agent, or `None` if `label_value` cannot be converted to a legal value.
    fn match_value(&self) -> Option<String> {
        label_value(&self.label_value)
    }

    /// Returns the label value for an Agent on which the query fails, or `None` if no legal value exists.
    fn error_value(&self) -> Option<String> {
        label_value(&format!("{QUERY_ERROR}-{}", self.label_value))
    }

    /// Returns `true` if this classification can set this label value.
    fn sets(&self, value: &str) -> bool {
        [self.match_value(), self.error_value()].iter().flatten().any(|own| own == value)
    }
}
