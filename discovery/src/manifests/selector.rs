//! Parses Kubernetes label selectors, and matches them with the labels of objects.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::Value;

/// A label selector, as a list of requirements.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Selector(Vec<LabelRequirement>);

#[derive(Debug, PartialEq, Eq)]
struct LabelRequirement {
    key: String,
    test: LabelTest,
}

#[derive(Debug, PartialEq, Eq)]
enum LabelTest {
    In(Vec<String>),
    NotIn(Vec<String>),
    Exists,
    DoesNotExist,
}

impl Selector {
    /// Parses a selector. The error contains the path of the invalid value, relative to the selector, and the reason.
    pub(super) fn parse(value: &Value) -> Result<Self, (String, String)> {
        let wrong = |path: &str, reason: &str| Err((path.to_owned(), reason.to_owned()));
        let Some(map) = value.as_object() else { return wrong("", "has to be an object") };
        let mut requirements = Vec::new();
        for (key, value) in map {
            match (key.as_str(), value) {
                (_, Value::Null) => {}
                ("matchLabels", Value::Object(labels)) => {
                    let equal = labels.iter().map(|(key, value)| equality(key, value));
                    let equal = equal.collect::<Result<Vec<_>, _>>();
                    requirements.extend(equal.map_err(|reason| (key.clone(), reason))?);
                }
                ("matchExpressions", Value::Array(list)) => {
                    let read = |(at, value): (usize, &Value)| {
                        expression(value).map_err(|reason| (format!("{key}[{at}]"), reason.to_owned()))
                    };
                    requirements.extend(list.iter().enumerate().map(read).collect::<Result<Vec<_>, _>>()?);
                }
                ("matchLabels", _) => return wrong("matchLabels", "has to be an object"),
                ("matchExpressions", _) => return wrong("matchExpressions", "has to be a list"),
                _ => return wrong(key, "unknown field; a selector has matchLabels and matchExpressions"),
            }
        }
        Ok(Self(requirements))
    }

    /// Returns `true` if the selector has no requirements. An empty Kubernetes selector matches everything, but the
    /// empty selector of an infra-env matches nothing.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns `true` if an infra-env with this selector selects an object with these labels. An empty selector selects
    /// nothing.
    pub(super) fn selects_some(&self, labels: &BTreeMap<&str, &str>) -> bool {
        !self.is_empty() && self.selects(labels)
    }

    /// Returns `true` if at least one label has a key for which the selector requires a value.
    pub(super) fn has_key_of(&self, labels: &BTreeMap<&str, &str>) -> bool {
        self.0.iter().any(|it| matches!(it.test, LabelTest::In(_)) && labels.contains_key(it.key.as_str()))
    }

    /// Returns the unmet requirements, if at least one label has a value that the selector requires.
    pub(super) fn unmet_besides_match(&self, labels: &BTreeMap<&str, &str>) -> Option<String> {
        let (met, unmet): (Vec<_>, Vec<_>) = self.0.iter().partition(|it| it.is_met(labels));
        let has_match = met.iter().any(|it| matches!(it.test, LabelTest::In(_)));
        let unmet: Vec<String> = unmet.iter().map(ToString::to_string).collect();
        (has_match && !unmet.is_empty()).then(|| unmet.join(" and "))
    }

    /// Returns `true` if the labels meet all requirements.
    fn selects(&self, labels: &BTreeMap<&str, &str>) -> bool {
        self.0.iter().all(|it| it.is_met(labels))
    }
}

impl LabelRequirement {
    fn is_met(&self, labels: &BTreeMap<&str, &str>) -> bool {
        let value = labels.get(self.key.as_str());
        match &self.test {
            LabelTest::In(values) => value.is_some_and(|value| values.iter().any(|it| it == value)),
            LabelTest::NotIn(values) => !value.is_some_and(|value| values.iter().any(|it| it == value)),
            LabelTest::Exists => value.is_some(),
            LabelTest::DoesNotExist => value.is_none(),
        }
    }
}

impl fmt::Display for LabelRequirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, test } = self;
        match test {
            LabelTest::In(values) => match values.as_slice() {
                [value] => write!(f, "{key}={value}"),
                values => write!(f, "{key} in ({})", values.join(", ")),
            },
            LabelTest::NotIn(values) => write!(f, "{key} not in ({})", values.join(", ")),
            LabelTest::Exists => write!(f, "a label {key}"),
            LabelTest::DoesNotExist => write!(f, "no label {key}"),
        }
    }
}

fn equality(key: &str, value: &Value) -> Result<LabelRequirement, String> {
    let value = value.as_str().ok_or_else(|| format!("the value of {key} has to be a string"))?;
    Ok(LabelRequirement { key: key.to_owned(), test: LabelTest::In(vec![value.to_owned()]) })
}

fn expression(value: &Value) -> Result<LabelRequirement, &'static str> {
    let key = value.get("key").and_then(Value::as_str).ok_or("has no key")?;
    let values: Vec<String> = match value.get("values") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(list)) => {
            let texts = list.iter().map(|it| it.as_str().map(str::to_owned));
            texts.collect::<Option<_>>().ok_or("its values have to be strings")?
        }
        Some(_) => return Err("its values have to be a list"),
    };
    let operator = value.get("operator").and_then(Value::as_str).unwrap_or_default();
    let test = match (operator, values.is_empty()) {
        ("In", false) => LabelTest::In(values),
        ("NotIn", false) => LabelTest::NotIn(values),
        ("In" | "NotIn", true) => return Err("needs values"),
        ("Exists", true) => LabelTest::Exists,
        ("DoesNotExist", true) => LabelTest::DoesNotExist,
        ("Exists" | "DoesNotExist", false) => return Err("takes no values"),
        _ => return Err("its operator is not In, NotIn, Exists or DoesNotExist"),
    };
    Ok(LabelRequirement { key: key.to_owned(), test })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn all_requirements_must_be_met() {
        let selector = Selector::parse(&json!({
            "matchLabels": {"site": "a"},
            "matchExpressions": [
                {"key": "rack", "operator": "In", "values": ["1", "2"]},
                {"key": "old", "operator": "DoesNotExist"},
                {"key": "tier", "operator": "NotIn", "values": ["x"]},
                {"key": "rack", "operator": "Exists"},
            ],
        }))
        .unwrap();
        let selects =
            |labels: &[(&'static str, &'static str)]| selector.selects(&labels.iter().copied().collect());
        assert!(selects(&[("site", "a"), ("rack", "2")]));
        assert!(!selects(&[("site", "b"), ("rack", "2")]));
        assert!(!selects(&[("site", "a")]));
        assert!(!selects(&[("site", "a"), ("rack", "3")]));
        assert!(!selects(&[("site", "a"), ("rack", "1"), ("old", "")]));
        assert!(!selects(&[("site", "a"), ("rack", "1"), ("tier", "x")]));
        assert!(Selector::parse(&json!({"matchLabels": null})).unwrap().is_empty());
    }

    #[test]
    fn rejects_invalid_selectors_with_their_path() {
        for (value, path) in [
            (json!("site=a"), ""),
            (json!({"matchLabels": ["a"]}), "matchLabels"),
            (json!({"matchLabels": {"a": 1}}), "matchLabels"),
            (json!({"matchLabel": {"a": "1"}}), "matchLabel"),
            (json!({"matchExpressions": [{"operator": "Exists"}]}), "matchExpressions[0]"),
            (json!({"matchExpressions": [{"key": "a", "operator": "In"}]}), "matchExpressions[0]"),
            (
                json!({"matchExpressions": [{"key": "a", "operator": "In", "values": ["1", 2]}]}),
                "matchExpressions[0]",
            ),
            (
                json!({"matchExpressions": [{"key": "a", "operator": "Exists", "values": "1"}]}),
                "matchExpressions[0]",
            ),
            (
                json!({"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["1"]}]}),
                "matchExpressions[0]",
            ),
        ] {
            assert_eq!(Selector::parse(&value).unwrap_err().0, path, "{value}");
        }
    }
}
