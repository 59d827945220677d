//! The errors for invalid replies and damaged summaries.

use assisted::step::StepType;

use super::excess::cut;
use super::limits::MAX_TEXT;

/// The reason why a reply of an agent is invalid. The summary has not changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidReply {
    /// An IP address is not valid.
    #[error("{step}: invalid IP address {text:?}")]
    Address {
        /// The step that the agent replied to.
        step: StepType,
        /// The invalid text, truncated.
        text: Box<str>,
    },
    /// A network is not valid.
    #[error("{step}: invalid network {text:?}, expected an address and a prefix length such as 192.0.2.0/24")]
    Network {
        /// The step that the agent replied to.
        step: StepType,
        /// The invalid text, truncated.
        text: Box<str>,
    },
    /// A list that must have items is empty.
    #[error("{step}: the reply has no results")]
    Empty {
        /// The step that the agent replied to.
        step: StepType,
    },
    /// The JSON of a reply, or the stored JSON of several replies, is invalid.
    #[error("{step}: invalid JSON: {reason}")]
    Json {
        /// The step that the agent replied to.
        step: StepType,
        /// The message of the JSON parser.
        reason: Box<str>,
    },
}

impl InvalidReply {
    pub(super) fn address(step: StepType, text: &str) -> Self {
        Self::Address { step, text: cut(text, MAX_TEXT).into() }
    }

    pub(super) fn network(step: StepType, text: &str) -> Self {
        Self::Network { step, text: cut(text, MAX_TEXT).into() }
    }

    pub(super) fn json(step: StepType, error: &serde_json::Error) -> Self {
        Self::Json { step, reason: cut(&error.to_string(), MAX_TEXT).into() }
    }
}

/// The error for a stored summary that cannot be parsed.
#[derive(Debug, thiserror::Error)]
#[error("the stored summary is damaged")]
pub struct DamagedSummary(#[source] pub(super) serde_json::Error);
