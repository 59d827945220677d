//! Classification of Agents: labels that follow from queries over the inventory.
//!
//! An AgentClassification has a query in the jq language. An Agent for whose inventory the query yields true gets the
//! label `agentclassification.agent-install.openshift.io/<labelKey>=<labelValue>`. If the query fails, the value is
//! `QUERYERROR-<labelValue>`. Everything here is pure: controllers read and write the objects.
//!
//! The input of a query is `status.inventory` of the Agent as it is in the custom resource, where zero values are
//! omitted: `.systemVendor.virtual` of a physical machine is null, not false.

pub mod check;
pub mod counts;
pub mod jq;
pub mod labels;
mod queries;

pub use queries::Queries;

use crate::label_value::label_value;

/// Prefix of the keys of labels that classifications set.
pub const LABEL_PREFIX: &str = "agentclassification.agent-install.openshift.io/";

/// Start of the value of a label whose query failed.
pub const QUERY_ERROR: &str = "QUERYERROR";

/// The fields of an AgentClassification that decide over labels.
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

    /// Returns the value of the label of a matching Agent, or `None` if no legal value can be made of it.
    fn match_value(&self) -> Option<String> {
        label_value(&self.label_value)
    }

    /// Returns the value of the label of an Agent for which the query fails.
    fn error_value(&self) -> Option<String> {
        label_value(&format!("{QUERY_ERROR}-{}", self.label_value))
    }

    /// Returns `true` if the classification sets this value.
    fn sets(&self, value: &str) -> bool {
        [self.match_value(), self.error_value()].iter().flatten().any(|own| own == value)
    }
}
