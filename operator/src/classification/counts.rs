//! The status of an AgentClassification, computed from the labels of the Agents in its namespace.

use std::collections::BTreeMap;

use super::{Classification, QUERY_ERROR};

/// Type of the condition that reports failed queries.
pub const QUERY_ERRORS: &str = "QueryErrors";

/// The numbers of Agents, by the value of the label that a classification sets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// `status.matchedCount`: Agents with the label value of the classification.
    pub matched: usize,
    /// `status.errorCount`: Agents whose label value starts with `QUERYERROR`.
    pub errors: usize,
}

/// The parts of the condition `QueryErrors` that depend on the Agents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueryErrorsCondition {
    /// `True` or `False`.
    pub status: &'static str,
    /// `HasQueryErrors` or `NoQueryErrors`.
    pub reason: &'static str,
    /// Message for users.
    pub message: String,
}

impl Counts {
    /// Counts the Agents by label value.
    pub fn new<'a>(
        classification: &Classification,
        agents: impl IntoIterator<Item = &'a BTreeMap<String, String>>,
    ) -> Self {
        let key = classification.key();
        let matched = classification.match_value();
        let mut counts = Self::default();
        for value in agents.into_iter().filter_map(|labels| labels.get(&key)) {
            if Some(value) == matched.as_ref() {
                counts.matched += 1;
            } else if value.starts_with(QUERY_ERROR) {
                counts.errors += 1;
            }
        }
        counts
    }

    /// Returns the condition `QueryErrors`.
    pub fn condition(&self) -> QueryErrorsCondition {
        match self.errors {
            0 => QueryErrorsCondition {
                status: "False",
                reason: "NoQueryErrors",
                message: "No Agents failed to apply the classification".to_owned(),
            },
            errors => QueryErrorsCondition {
                status: "True",
                reason: "HasQueryErrors",
                message: format!("{errors} Agents failed to apply the classification"),
            },
        }
    }
}

/// Returns `true` if the finalizer of a deleted classification may be removed, because no Agent has its label any more.
///
/// Labels count with both values: for a match and for a query error. A label value that another classification also
/// sets does not count, because that label stays after the deletion.
pub fn may_drop_finalizer<'a>(
    classification: &Classification,
    others: &[Classification],
    agents: impl IntoIterator<Item = &'a BTreeMap<String, String>>,
) -> bool {
    let key = classification.key();
    let shared = |value: &str| {
        let mut rivals = others.iter().filter(|other| other.name != classification.name && !other.deleting);
        rivals.any(|other| other.label_key == classification.label_key && other.sets(value))
    };
    let mut values = agents.into_iter().filter_map(|labels| labels.get(&key));
    !values.any(|value| classification.sets(value) && !shared(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn classification(name: &str, value: &str) -> Classification {
        Classification {
            name: name.to_owned(),
            label_key: "size".to_owned(),
            label_value: value.to_owned(),
            query: "true".to_owned(),
            deleting: false,
        }
    }

    fn agents(values: &[&str]) -> Vec<BTreeMap<String, String>> {
        let key = classification("a", "big").key();
        values.iter().map(|value| BTreeMap::from([(key.clone(), (*value).to_owned())])).collect()
    }

    #[test]
    fn agents_are_counted_by_label_value() {
        let mut agents = agents(&["big", "big", "small", "QUERYERROR-big", "QUERYERROR-small", ""]);
        agents.push(BTreeMap::new());
        assert_eq!(Counts::new(&classification("a", "big"), &agents), Counts { matched: 2, errors: 2 });
        assert_eq!(Counts::new(&classification("a", "b i g"), &agents), Counts { matched: 2, errors: 2 });
    }

    #[test]
    fn condition_has_the_texts_of_the_assisted_installer() {
        let condition = |errors| {
            let condition = Counts { matched: 1, errors }.condition();
            [condition.status.to_owned(), condition.reason.to_owned(), condition.message]
        };
        assert_eq!(condition(0), ["False", "NoQueryErrors", "No Agents failed to apply the classification"]);
        assert_eq!(condition(1), ["True", "HasQueryErrors", "1 Agents failed to apply the classification"]);
        assert_eq!(condition(3), ["True", "HasQueryErrors", "3 Agents failed to apply the classification"]);
    }

    #[test]
    fn finalizer_waits_for_matches_and_for_query_errors() {
        let deleted = classification("a", "big");
        for (values, dropped) in [
            (vec![], true),
            (vec!["small", "QUERYERROR-small"], true),
            (vec!["small", "big"], false),
            (vec!["QUERYERROR-big"], false),
        ] {
            assert_eq!(may_drop_finalizer(&deleted, &[], &agents(&values)), dropped, "{values:?}");
        }
    }

    #[test]
    fn finalizer_does_not_wait_for_labels_of_another_classification() {
        let deleted = classification("a", "big");
        let mut other = classification("b", "big");
        assert!(may_drop_finalizer(
            &deleted,
            &[deleted.clone(), other.clone()],
            &agents(&["big", "QUERYERROR-big"])
        ));
        other.deleting = true;
        assert!(!may_drop_finalizer(&deleted, &[deleted.clone(), other], &agents(&["big"])));
    }
}
