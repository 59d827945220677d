//! Computes JSON merge patches (RFC 7386).

use serde_json::{Map, Value};

/// Returns the merge patch that turns `before` into `after`, or `None` if they are equal.
#[must_use]
pub(crate) fn difference(before: &Value, after: &Value) -> Option<Value> {
    if before == after {
        return None;
    }
    let (Value::Object(before), Value::Object(after)) = (before, after) else { return Some(after.clone()) };
    let mut patch = Map::new();
    for (key, value) in after {
        let change = match before.get(key) {
            Some(before) => difference(before, value),
            None => Some(value.clone()),
        };
        patch.extend(change.map(|change| (key.clone(), change)));
    }
    let removed = before.keys().filter(|key| !after.contains_key(*key));
    patch.extend(removed.map(|key| (key.clone(), Value::Null)));
    Some(Value::Object(patch))
}

/// Returns a merge patch that turns any object with some of these members into `after`. Members missing from `after`
/// are removed.
#[must_use]
pub(crate) fn replacement(members: &Value, after: Value) -> Value {
    let Value::Object(members) = members else { return after };
    let Value::Object(mut after) = after else { return after };
    for (key, nested) in members {
        let value = after.get_mut(key).map_or(Value::Null, Value::take);
        after.insert(key.clone(), replacement(nested, value));
    }
    Value::Object(after)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn patch_contains_only_differences_and_removals() {
        let before = json!({"a": 1, "b": {"c": 1, "d": [1]}, "e": "x"});
        let after = json!({"a": 1, "b": {"c": 2, "d": [1]}, "f": {}});
        let expected = json!({"b": {"c": 2}, "e": null, "f": {}});
        assert_eq!(difference(&before, &after), Some(expected));
        assert_eq!(difference(&after, &after), None);
    }

    #[test]
    fn replacement_removes_all_members_that_are_absent() {
        let members = json!({"a": null, "b": {"c": null, "d": null}, "e": {"f": null}});
        let patch = replacement(&members, json!({"a": [1], "b": {"d": 2}}));
        assert_eq!(patch, json!({"a": [1], "b": {"c": null, "d": 2}, "e": null}));
    }

    #[test]
    fn lists_are_replaced_as_a_whole() {
        let patch = difference(&json!({"a": [1, 2]}), &json!({"a": [2]}));
        assert_eq!(patch, Some(json!({"a": [2]})));
    }
}
