//! Admission rules for AgentClassifications. [`check`] implements them.

use super::Denial;
use crate::classification::{Classification, check};
use crate::crds::AgentClassification;

/// Checks a new AgentClassification.
///
/// # Errors
///
/// Returns the denial of the request.
pub(crate) fn creation(new: &AgentClassification) -> Result<(), Denial> {
    check::creation(&classification(new)).map_err(|message| Denial::bad_request(message, &["spec"]))
}

/// Checks an update of an AgentClassification.
///
/// # Errors
///
/// Returns the denial of the request.
pub(crate) fn update(old: &AgentClassification, new: &AgentClassification) -> Result<(), Denial> {
    check::update(&classification(old), &classification(new))
        .map_err(|message| Denial::bad_request(message, &["spec.labelKey", "spec.labelValue"]))
}

fn classification(object: &AgentClassification) -> Classification {
    Classification {
        name: object.metadata.name.clone().unwrap_or_default(),
        label_key: object.spec.label_key.clone(),
        label_value: object.spec.label_value.clone(),
        query: object.spec.query.clone(),
        deleting: object.metadata.deletion_timestamp.is_some(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crds::AgentClassificationSpec;

    fn object(key: &str, value: &str, query: &str) -> AgentClassification {
        let spec = AgentClassificationSpec {
            label_key: key.to_owned(),
            label_value: value.to_owned(),
            query: query.to_owned(),
        };
        AgentClassification::new("a", spec)
    }

    #[test]
    fn creation_follows_the_table() {
        creation(&object("size", "big", ".cpu.count >= 8")).unwrap();
        for (key, value, query, part) in [
            ("a b", "big", "true", "spec: Invalid value: "),
            ("size", "-", "true", "spec: Invalid value: "),
            ("size", "QUERYERROR-a", "true", "label must not start with QUERYERROR as this is reserved"),
            ("size", "big", ".cpu[", "unexpected end of the query"),
        ] {
            let denial = creation(&object(key, value, query)).unwrap_err();
            assert_eq!(denial.code, 400);
            assert!(denial.message.contains(part), "{}", denial.message);
        }
    }

    #[test]
    fn label_is_immutable_and_query_is_not_checked_again() {
        let old = object("size", "big", "true");
        update(&old, &object("size", "big", ".cpu[")).unwrap();
        for new in [object("other", "big", "true"), object("size", "small", "true")] {
            let denial = update(&old, &new).unwrap_err();
            assert_eq!((denial.code, &*denial.message), (400, check::LABEL_MODIFIED));
        }
    }
}
