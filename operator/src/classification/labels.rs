//! Labels of one Agent.
//!
//! # Several classifications with one key
//!
//! In the Assisted Installer such classifications overwrite the labels of each other without end. Here they are asked
//! in the order of their names: the first one that matches sets the label. If none matches, the first one whose query
//! fails sets it. If there is neither, the label is removed if one of them has set it.
//!
//! # Agents without an inventory
//!
//! A query is not evaluated before the first inventory, since nothing is known about the machine; the label remains
//! unchanged. A query that cannot be parsed is an error for each Agent.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::jq::QueryOutcome;
use super::{Classification, Queries};
use crate::label_value::is_label_name;

/// Changes of labels by key: a value to set, or `None` for a label to remove. They are a merge patch of the labels.
pub type LabelChanges = BTreeMap<String, Option<String>>;

/// Members of an inventory that exist in each custom resource, even if empty.
const OBJECTS: [&str; 4] = ["boot", "cpu", "memory", "systemVendor"];

/// Result of a classification for one Agent.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Match,
    NoMatch,
    Error,
    /// The Agent has no inventory yet.
    Unknown,
}

/// Returns the changes that bring the labels of an Agent in line with the classifications of its namespace.
///
/// `inventory` is `status.inventory` of the Agent. A classification whose label is illegal is ignored, since the API
/// server would refuse the other labels together with it.
pub fn changes(
    current: &BTreeMap<String, String>,
    classifications: &[Classification],
    inventory: Option<&Value>,
    queries: &Queries,
) -> LabelChanges {
    let inventory = inventory.map(with_objects);
    let mut by_key: BTreeMap<&str, Vec<&Classification>> = BTreeMap::new();
    for classification in
        classifications.iter().filter(|classification| is_label_name(&classification.label_key))
    {
        by_key.entry(&classification.label_key).or_default().push(classification);
    }
    let mut changes = LabelChanges::new();
    for mut rivals in by_key.into_values() {
        rivals.sort_by(|left, right| left.name.cmp(&right.name));
        let Some(key) = rivals.first().map(|classification| classification.key()) else { continue };
        let present = current.get(&key).map(String::as_str);
        if let Some(change) = change(present, &rivals, inventory.as_ref(), queries) {
            changes.insert(key, change);
        }
    }
    changes
}

/// Returns the change of one label, or `None` if it remains unchanged.
fn change(
    present: Option<&str>,
    rivals: &[&Classification],
    inventory: Option<&Value>,
    queries: &Queries,
) -> Option<Option<String>> {
    let mut error = None;
    let mut unknown = BTreeSet::new();
    for classification in rivals.iter().filter(|classification| !classification.deleting) {
        let value = match verdict(classification, inventory, queries) {
            Verdict::Match => classification.match_value(),
            Verdict::Error => {
                error = error.or_else(|| classification.error_value());
                continue;
            }
            Verdict::NoMatch => continue,
            Verdict::Unknown => {
                unknown.extend(
                    [classification.match_value(), classification.error_value()].into_iter().flatten(),
                );
                continue;
            }
        };
        if value.is_some() {
            return set(present, value);
        }
    }
    if present.is_some_and(|present| unknown.contains(present)) {
        return None;
    }
    if error.is_some() {
        return set(present, error);
    }
    present.filter(|present| rivals.iter().any(|classification| classification.sets(present))).map(|_| None)
}

fn set(present: Option<&str>, value: Option<String>) -> Option<Option<String>> {
    (present != value.as_deref()).then_some(value)
}

fn verdict(classification: &Classification, inventory: Option<&Value>, queries: &Queries) -> Verdict {
    let Ok(query) = queries.parsed(&classification.query) else {
        return Verdict::Error;
    };
    match inventory.map(|inventory| query.outcome(inventory)) {
        None => Verdict::Unknown,
        Some(Ok(QueryOutcome::True)) => Verdict::Match,
        Some(Ok(QueryOutcome::False | QueryOutcome::Other)) => Verdict::NoMatch,
        Some(Err(_)) => Verdict::Error,
    }
}

/// Returns the inventory with its nested objects, so that `.boot | has("pxeInterface")` works for each Agent.
fn with_objects(inventory: &Value) -> Value {
    let mut inventory = inventory.clone();
    if let Some(members) = inventory.as_object_mut() {
        for name in OBJECTS {
            members.entry(name).or_insert_with(|| Value::Object(Map::new()));
        }
    }
    inventory
}

#[cfg(test)]
mod tests;
