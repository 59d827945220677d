//! The form in which the cache stores a condition of an Agent.

use crate::crds::{AgentInstallCondition, Timestamp};
use crate::projection::CONDITION_TYPES;

/// The statuses of conditions.
const STATUSES: [&str; 3] = ["True", "False", "Unknown"];

/// A condition of an Agent. An Agent has six conditions of [`CONDITION_TYPES`], which would otherwise be the largest
/// part of the cache.
#[derive(Debug)]
pub(crate) enum CachedCondition {
    /// A condition of [`CONDITION_TYPES`]. It has no reason and no message, because each reconciliation replaces them.
    Replaced { type_: &'static str, status: &'static str, last_transition_time: Option<Timestamp> },
    /// Any other condition.
    Whole(Box<AgentInstallCondition>),
}

impl From<&AgentInstallCondition> for CachedCondition {
    fn from(condition: &AgentInstallCondition) -> Self {
        let find = |texts: &[&'static str], text: &str| texts.iter().copied().find(|it| *it == text);
        let replaced = find(&CONDITION_TYPES, &condition.type_).zip(find(&STATUSES, &condition.status));
        match (replaced, condition.last_heartbeat_time) {
            (Some((type_, status)), None) => {
                Self::Replaced { type_, status, last_transition_time: condition.last_transition_time }
            }
            _ => Self::Whole(Box::new(condition.clone())),
        }
    }
}

impl From<&CachedCondition> for AgentInstallCondition {
    fn from(condition: &CachedCondition) -> Self {
        match condition {
            CachedCondition::Replaced { type_, status, last_transition_time } => Self {
                type_: (*type_).to_owned(),
                status: (*status).to_owned(),
                last_transition_time: *last_transition_time,
                ..Self::default()
            },
            CachedCondition::Whole(condition) => (**condition).clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;

    use super::*;

    #[test]
    fn only_replaced_texts_are_missing() {
        let condition = |type_: &str, status: &str, has_heartbeat: bool| AgentInstallCondition {
            type_: type_.to_owned(),
            status: status.to_owned(),
            reason: "Reason".to_owned(),
            message: "The cause".to_owned(),
            last_transition_time: Some(DateTime::UNIX_EPOCH.into()),
            last_heartbeat_time: has_heartbeat.then(|| DateTime::UNIX_EPOCH.into()),
        };
        let cached = |before: &AgentInstallCondition| AgentInstallCondition::from(&before.into());
        for (type_, status, has_heartbeat) in
            [("Other", "True", false), ("Bound", "Other", false), ("Bound", "True", true)]
        {
            let whole = condition(type_, status, has_heartbeat);
            assert_eq!(cached(&whole), whole);
        }
        for (type_, status) in CONDITION_TYPES.into_iter().flat_map(|type_| STATUSES.map(|it| (type_, it))) {
            let condition = condition(type_, status, false);
            let expected =
                AgentInstallCondition { reason: String::new(), message: String::new(), ..condition.clone() };
            assert_eq!(cached(&condition), expected);
        }
    }
}
