//! The labels that AgentClassifications set on one Agent.
//!
//! # Several classifications with the same key
//!
//! In the Assisted Installer, such classifications overwrite each other's labels forever. Here, they are evaluated in
//! the order of their names, and the first one that matches sets the label. If none matches, the first one with a
//! failed query sets it. Otherwise the label is removed if one of these classifications has set it.
//!
//! # Agents without an inventory
//!
//! Queries are not evaluated before the first inventory, because the hardware is unknown. The label then stays
//! unchanged. A query that cannot be parsed is an error for every Agent.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::jq::QueryOutcome;
use super::{Classification, Queries};
use crate::label_value::is_label_name;

/// Changes of labels by key: the value to set, or `None` to remove the label. Serialized, they form a merge patch.
pub type LabelChanges = BTreeMap<String, Option<String>>;

/// Members that the input of a query always contains, even if the inventory omits them because they are empty.
const OBJECTS: [&str; 4] = ["boot", "cpu", "memory", "systemVendor"];

/// The result of one classification for one Agent.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Match,
    NoMatch,
    Error,
    /// The Agent has no inventory yet, so the query was not evaluated.
    Unknown,
}

/// Returns the label changes that make an Agent consistent with the classifications of its namespace.
///
/// `inventory` is `status.inventory` of the Agent. A classification with an illegal label is ignored, because the API
/// server would refuse the whole patch.
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

/// Returns the change of one label, or `None` if the label stays unchanged.
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

/// Adds the missing nested objects, so that queries such as `.boot | has("pxeInterface")` work for each Agent.
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
