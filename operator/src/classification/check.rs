//! Admission checks for AgentClassifications that users create or change.

use super::jq::JqQuery;
use super::{Classification, LABEL_PREFIX, QUERY_ERROR};
use crate::label_value::{MAX_LABEL_VALUE, has_label_shape};

/// The message that refuses a change of the label.
pub const LABEL_MODIFIED: &str = "Label modified: the specified label may not be modified after creation";

const RESERVED: &str = "label must not start with QUERYERROR as this is reserved";

const KEY_SHAPE: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with \
    an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
    '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";

const VALUE_SHAPE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', \
    and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for \
    validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

/// Checks a new AgentClassification.
///
/// # Errors
///
/// Returns the refusal message. It lists all violations, in brackets if there are several.
pub fn creation(classification: &Classification) -> Result<(), String> {
    let mut violations = label_violations(classification);
    if classification.label_value.starts_with(QUERY_ERROR) {
        violations.push(RESERVED.to_owned());
    }
    if let Err(error) = JqQuery::parse(&classification.query) {
        violations.push(error.to_string());
    }
    match violations.as_slice() {
        [] => Ok(()),
        [violation] => Err(violation.clone()),
        violations => Err(format!("[{}]", violations.join(", "))),
    }
}

/// Checks a change of an AgentClassification. The query may change, and is not checked again.
///
/// # Errors
///
/// Returns the refusal message.
pub fn update(old: &Classification, new: &Classification) -> Result<(), &'static str> {
    if old.label_key == new.label_key && old.label_value == new.label_value {
        Ok(())
    } else {
        Err(LABEL_MODIFIED)
    }
}

/// Returns the violations in the format of Kubernetes: `spec: Invalid value: "x": must be ...`.
fn label_violations(classification: &Classification) -> Vec<String> {
    let (name, value) = (&classification.label_key, &classification.label_value);
    let mut violations = Vec::new();
    let mut invalid =
        |text: &str, detail: &str| violations.push(format!("spec: Invalid value: {text:?}: {detail}"));
    let key = format!("{LABEL_PREFIX}{name}");
    if name.is_empty() {
        invalid(&key, "name part must be non-empty");
    }
    if name.len() > MAX_LABEL_VALUE {
        invalid(&key, "name part must be no more than 63 characters");
    }
    if !has_label_shape(name) {
        invalid(&key, KEY_SHAPE);
    }
    if value.len() > MAX_LABEL_VALUE {
        invalid(value, "must be no more than 63 characters");
    }
    if !value.is_empty() && !has_label_shape(value) {
        invalid(value, VALUE_SHAPE);
    }
    violations
}

#[cfg(test)]
mod tests {
    use super::*;

    fn classification(key: &str, value: &str, query: &str) -> Classification {
        Classification {
            name: "a".to_owned(),
            label_key: key.to_owned(),
            label_value: value.to_owned(),
            query: query.to_owned(),
            deleting: false,
        }
    }

    #[test]
    fn legal_classification_passes() {
        creation(&classification("size", "big", ".cpu.count >= 8")).unwrap();
        creation(&classification("size", "", "false")).unwrap();
        creation(&classification(&"k".repeat(63), &"v".repeat(63), ".cpu.count")).unwrap();
    }

    #[test]
    fn rejects_reserved_value() {
        assert_eq!(creation(&classification("size", "QUERYERROR-a", "true")), Err(RESERVED.to_owned()));
    }

    #[test]
    fn rejects_illegal_label() {
        let message = creation(&classification("a b", "big", "true")).unwrap_err();
        let key = "agentclassification.agent-install.openshift.io/a b";
        assert!(
            message.starts_with(&format!("spec: Invalid value: {key:?}: name part must consist of")),
            "{message}"
        );
        for (key, value) in
            [("", "a"), ("a/b", "a"), (&*"k".repeat(64), "a"), ("a", "-"), ("a", &*"v".repeat(64))]
        {
            assert!(creation(&classification(key, value, "true")).is_err(), "{key} {value}");
        }
    }

    #[test]
    fn rejects_query_that_does_not_parse() {
        for query in [".cpu[", "", ".cpu.count >", "nofunction", "$x", "input", "env", "now"] {
            assert!(creation(&classification("a", "b", query)).is_err(), "{query}");
        }
        let message = creation(&classification("a", "b", ".cpu[")).unwrap_err();
        assert_eq!(message, "unexpected end of the query, expected closing bracket");
    }

    #[test]
    fn violations_are_aggregated() {
        let message = creation(&classification("size", "QUERYERROR ", ".cpu[")).unwrap_err();
        assert!(
            message.starts_with("[spec: Invalid value: \"QUERYERROR \": a valid label must be"),
            "{message}"
        );
        assert!(
            message.ends_with(&format!("{RESERVED}, unexpected end of the query, expected closing bracket]")),
            "{message}"
        );
    }

    #[test]
    fn rejects_change_of_the_label_only() {
        let old = classification("size", "big", "true");
        assert_eq!(update(&old, &classification("size", "big", ".cpu[")), Ok(()));
        assert_eq!(update(&old, &classification("size2", "big", "true")), Err(LABEL_MODIFIED));
        assert_eq!(update(&old, &classification("size", "small", "true")), Err(LABEL_MODIFIED));
    }
}
