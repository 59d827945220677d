//! Evaluates label selectors.

use std::collections::BTreeMap;

use crate::crds::{Selector, SelectorRequirement};

/// Returns `true` if the labels match all requirements of the selector. An empty selector matches nothing.
///
/// # Errors
///
/// Returns an error if the selector has an unknown operator, or lacks the values that an operator needs.
pub(crate) fn matches(
    selector: &Selector,
    labels: Option<&BTreeMap<String, String>>,
) -> Result<bool, String> {
    let no_labels = BTreeMap::new();
    let labels = labels.unwrap_or(&no_labels);
    let mut is_match = !selector.match_labels.is_empty() || !selector.match_expressions.is_empty();
    is_match &= selector.match_labels.iter().all(|(key, value)| labels.get(key) == Some(value));
    for requirement in &selector.match_expressions {
        is_match &= is_fulfilled(requirement, labels.get(&requirement.key))?;
    }
    Ok(is_match)
}

fn is_fulfilled(requirement: &SelectorRequirement, value: Option<&String>) -> Result<bool, String> {
    let SelectorRequirement { key, operator, values } = requirement;
    let has_values = !values.is_empty();
    let is_in = value.is_some_and(|value| values.contains(value));
    match (operator.as_str(), has_values) {
        ("In", true) => Ok(is_in),
        ("NotIn", true) => Ok(!is_in),
        ("Exists", false) => Ok(value.is_some()),
        ("DoesNotExist", false) => Ok(value.is_none()),
        ("In" | "NotIn", false) => Err(format!("operator {operator} for label {key:?} needs values")),
        ("Exists" | "DoesNotExist", true) => {
            Err(format!("operator {operator} for label {key:?} allows no values"))
        }
        _ => Err(format!("{operator:?} is not a valid label selector operator")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    fn expression(key: &str, operator: &str, values: &[&str]) -> Selector {
        let requirement = SelectorRequirement {
            key: key.to_owned(),
            operator: operator.to_owned(),
            values: values.iter().map(|value| (*value).to_owned()).collect(),
        };
        Selector { match_expressions: vec![requirement], ..Selector::default() }
    }

    #[test]
    fn empty_selector_selects_nothing() {
        assert_eq!(matches(&Selector::default(), Some(&labels(&[("a", "b")]))), Ok(false));
    }

    #[test]
    fn all_labels_must_match() {
        let selector = Selector { match_labels: labels(&[("a", "1"), ("b", "2")]), ..Selector::default() };
        assert_eq!(matches(&selector, Some(&labels(&[("a", "1"), ("b", "2"), ("c", "3")]))), Ok(true));
        assert_eq!(matches(&selector, Some(&labels(&[("a", "1")]))), Ok(false));
        assert_eq!(matches(&selector, None), Ok(false));
    }

    #[test]
    fn expressions_follow_their_operators() {
        let present = labels(&[("a", "1")]);
        let rows = [
            (expression("a", "In", &["1", "2"]), true, false),
            (expression("a", "NotIn", &["1", "2"]), false, true),
            (expression("a", "Exists", &[]), true, false),
            (expression("a", "DoesNotExist", &[]), false, true),
        ];
        for (selector, with_label, without) in rows {
            assert_eq!(matches(&selector, Some(&present)), Ok(with_label), "{selector:?}");
            assert_eq!(matches(&selector, None), Ok(without), "{selector:?}");
        }
    }

    #[test]
    fn rejects_invalid_operators() {
        for selector in
            [expression("a", "Like", &["1"]), expression("a", "In", &[]), expression("a", "Exists", &["1"])]
        {
            assert!(matches(&selector, None).is_err(), "{selector:?}");
        }
    }
}
