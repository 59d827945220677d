//! Updates the conditions in the status of a resource.

use chrono::{DateTime, Utc};

use crate::crds::AgentInstallCondition;

/// The value of a condition, without its type and times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ConditionValue {
    /// `True`, `False` or `Unknown`.
    pub(crate) status: &'static str,
    /// The cause of the status, as one word in CamelCase.
    pub(crate) reason: &'static str,
    /// The cause of the status, as a message for users.
    pub(crate) message: String,
}

impl ConditionValue {
    pub(crate) fn new(status: &'static str, reason: &'static str, message: impl Into<String>) -> Self {
        Self { status, reason, message: message.into() }
    }
}

/// Replaces the condition of this type, or appends it. The transition time changes only if the status changes.
pub(crate) fn set(
    conditions: &mut Vec<AgentInstallCondition>,
    type_: &str,
    value: ConditionValue,
    now: DateTime<Utc>,
) {
    let ConditionValue { status, reason, message } = value;
    if let Some(condition) = conditions.iter_mut().find(|condition| condition.type_ == type_) {
        if condition.status != status {
            status.clone_into(&mut condition.status);
            condition.last_transition_time = Some(now.into());
        }
        reason.clone_into(&mut condition.reason);
        condition.message = message;
        return;
    }
    conditions.push(AgentInstallCondition {
        type_: type_.to_owned(),
        status: status.to_owned(),
        reason: reason.to_owned(),
        message,
        last_transition_time: Some(now.into()),
        last_heartbeat_time: None,
    });
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;

    use super::*;

    #[test]
    fn transition_time_changes_only_with_the_status() {
        let begin = DateTime::<Utc>::UNIX_EPOCH;
        let later = begin + TimeDelta::seconds(5);
        let mut conditions = Vec::new();
        set(&mut conditions, "A", ConditionValue::new("True", "One", "x"), begin);
        set(&mut conditions, "B", ConditionValue::new("True", "One", "x"), begin);
        set(&mut conditions, "A", ConditionValue::new("True", "Two", "y"), later);
        let times = |conditions: &[AgentInstallCondition]| {
            conditions.iter().map(|it| it.last_transition_time).collect::<Vec<_>>()
        };
        assert_eq!(times(&conditions), [Some(begin.into()); 2]);
        assert_eq!((&*conditions[0].reason, &*conditions[0].message), ("Two", "y"));
        set(&mut conditions, "A", ConditionValue::new("False", "Two", "y"), later);
        assert_eq!(times(&conditions), [Some(later.into()), Some(begin.into())]);
    }
}
