use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::classification::LABEL_PREFIX;
use crate::label_value::is_label_value;

fn classification(name: &str, [key, value, query]: [&str; 3]) -> Classification {
    Classification {
        name: name.to_owned(),
        label_key: key.to_owned(),
        label_value: value.to_owned(),
        query: query.to_owned(),
        deleting: false,
    }
}

fn deleting(name: &str, fields: [&str; 3]) -> Classification {
    Classification { deleting: true, ..classification(name, fields) }
}

/// Returns the label changes for an Agent with 8 CPUs. The keys have no prefix.
fn changed(labels: &[(&str, &str)], classifications: &[Classification]) -> Vec<(String, Option<String>)> {
    let inventory = json!({"cpu": {"count": 8}});
    let labels =
        labels.iter().map(|(key, value)| (format!("{LABEL_PREFIX}{key}"), (*value).to_owned())).collect();
    let changes = changes(&labels, classifications, Some(&inventory), &Queries::default());
    changes
        .into_iter()
        .map(|(key, value)| (key.strip_prefix(LABEL_PREFIX).unwrap().to_owned(), value))
        .collect()
}

fn set(key: &str, value: &str) -> Vec<(String, Option<String>)> {
    vec![(key.to_owned(), Some(value.to_owned()))]
}

fn removed(key: &str) -> Vec<(String, Option<String>)> {
    vec![(key.to_owned(), None)]
}

const TRUE: &str = ".cpu.count >= 4";
const FALSE: &str = ".cpu.count < 4";

#[test]
fn labels_match_the_assisted_installer() {
    let classifications = [
        classification("big", ["size", "big", ".cpu.count >= 4"]),
        classification("broken", ["size2", "x", ".cpu["]),
        classification("odd", ["size3", "x", ".cpu.count"]),
    ];
    assert_eq!(changed(&[], &classifications), [set("size", "big"), set("size2", "QUERYERROR-x")].concat());
    assert_eq!(changed(&[("size", "big"), ("size2", "QUERYERROR-x")], &classifications), []);
    let deleted = [deleting("big", ["size", "big", ".cpu.count >= 4"])];
    assert_eq!(changed(&[("size", "big"), ("size2", "QUERYERROR-x")], &deleted), removed("size"));
}

#[test]
fn label_depends_on_the_result_of_the_query() {
    for (query, change) in [
        (TRUE, set("k", "v")),
        (".cpu[", set("k", "QUERYERROR-v")),
        ("nofunction", set("k", "QUERYERROR-v")),
        (".cpu.count + \"a\"", set("k", "QUERYERROR-v")),
        ("empty", set("k", "QUERYERROR-v")),
        ("true, true", set("k", "QUERYERROR-v")),
        ("def f: f; f", set("k", "QUERYERROR-v")),
        (FALSE, vec![]),
        (".cpu.count", vec![]),
        ("null", vec![]),
        ("\"true\"", vec![]),
    ] {
        assert_eq!(changed(&[], &[classification("a", ["k", "v", query])]), change, "{query}");
    }
}

#[test]
fn label_is_removed_only_if_the_classification_set_it() {
    for query in [FALSE, ".cpu.count"] {
        for (value, change) in [
            ("v", removed("k")),
            ("QUERYERROR-v", removed("k")),
            ("other", vec![]),
            ("QUERYERROR-other", vec![]),
        ] {
            assert_eq!(
                changed(&[("k", value)], &[classification("a", ["k", "v", query])]),
                change,
                "{value}"
            );
            assert_eq!(changed(&[("k", value)], &[deleting("a", ["k", "v", TRUE])]), change, "{value}");
        }
    }
    assert_eq!(changed(&[("k", "other")], &[classification("a", ["k", "v", TRUE])]), set("k", "v"));
}

#[test]
fn illegal_characters_are_removed_from_values() {
    let long = "v".repeat(70);
    assert_eq!(changed(&[], &[classification("a", ["k", "Red Hat", TRUE])]), set("k", "RedHat"));
    assert_eq!(changed(&[], &[classification("a", ["k", &long, TRUE])]), set("k", &"v".repeat(63)));
    let error = format!("QUERYERROR-{}", "v".repeat(52));
    assert_eq!(changed(&[], &[classification("a", ["k", &long, ".cpu["])]), set("k", &error));
    assert_eq!(changed(&[("k", &error)], &[deleting("a", ["k", &long, TRUE])]), removed("k"));
    assert_eq!(changed(&[], &[classification("a", ["k", "-", TRUE])]), []);
    assert_eq!(changed(&[], &[classification("a", ["not legal", "v", TRUE])]), []);
}

#[test]
fn first_matching_classification_by_name_sets_a_shared_key() {
    let rivals = [
        classification("c", ["k", "third", TRUE]),
        classification("b", ["k", "second", TRUE]),
        classification("a", ["k", "first", ".cpu["]),
    ];
    assert_eq!(changed(&[], &rivals), set("k", "second"));
    assert_eq!(changed(&[("k", "second")], &rivals), []);
    let rivals =
        [classification("b", ["k", "second", ".cpu["]), classification("a", ["k", "first", ".cpu["])];
    assert_eq!(changed(&[], &rivals), set("k", "QUERYERROR-first"));
    let rivals = [deleting("a", ["k", "first", TRUE]), classification("b", ["k", "second", FALSE])];
    assert_eq!(changed(&[("k", "first")], &rivals), removed("k"));
    let rivals = [deleting("a", ["k", "first", TRUE]), classification("b", ["k", "second", TRUE])];
    assert_eq!(changed(&[("k", "first")], &rivals), set("k", "second"));
}

#[test]
fn agent_without_inventory_keeps_its_labels() {
    let without = |labels: &[(&str, &str)], classification: Classification| {
        let labels =
            labels.iter().map(|(key, value)| (format!("{LABEL_PREFIX}{key}"), (*value).to_owned())).collect();
        changes(&labels, &[classification], None, &Queries::default())
    };
    assert!(without(&[], classification("a", ["k", "v", FALSE])).is_empty());
    assert!(without(&[("k", "v")], classification("a", ["k", "v", FALSE])).is_empty());
    let error = BTreeMap::from([(format!("{LABEL_PREFIX}k"), Some("QUERYERROR-v".to_owned()))]);
    assert_eq!(without(&[], classification("a", ["k", "v", ".cpu["])), error);
    let removal = BTreeMap::from([(format!("{LABEL_PREFIX}k"), None)]);
    assert_eq!(without(&[("k", "v")], deleting("a", ["k", "v", TRUE])), removal);
}

#[test]
fn missing_nested_objects_of_an_inventory_are_added() {
    assert_eq!(
        changed(&[], &[classification("a", ["k", "v", ".boot | has(\"pxeInterface\") | not"])]),
        set("k", "v")
    );
}

fn any_classification() -> impl Strategy<Value = Classification> {
    let query = prop::sample::select(vec![TRUE, FALSE, ".cpu[", "empty", ".cpu.count", "true, false"]);
    let key = prop::sample::select(vec!["k", "l", "not legal"]);
    let value = prop::sample::select(vec!["v", "w", "", "-", "a b", "QUERYERROR-v"]);
    ("[a-c]", key, value, query, any::<bool>()).prop_map(|(name, key, value, query, deleting)| {
        Classification { deleting, ..classification(&name, [key, value, query]) }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn changes_are_legal_and_lead_to_a_stable_state(
        classifications in prop::collection::vec(any_classification(), 0..5),
        present in prop::option::of(prop::sample::select(vec!["v", "QUERYERROR-w", "foreign", ""])),
        known in any::<bool>(),
    ) {
        let queries = Queries::default();
        let inventory = json!({"cpu": {"count": 8}});
        let inventory = known.then_some(&inventory);
        let foreign = ("site".to_owned(), "a".to_owned());
        let mut labels: BTreeMap<_, _> = present.map(|value| (format!("{LABEL_PREFIX}k"), value.to_owned())).into_iter().collect();
        labels.extend([foreign.clone()]);
        for (key, value) in changes(&labels, &classifications, inventory, &queries) {
            prop_assert!(key.starts_with(LABEL_PREFIX));
            match value {
                Some(value) => {
                    prop_assert!(is_label_value(&value));
                    prop_assert!(labels.insert(key, value.clone()) != Some(value), "a change changes something");
                }
                None => prop_assert!(labels.remove(&key).is_some(), "a removed label is present"),
            }
        }
        prop_assert!(changes(&labels, &classifications, inventory, &queries).is_empty());
        prop_assert_eq!(labels.get(&foreign.0), Some(&foreign.1));
    }

    #[test]
    fn order_of_classifications_in_the_list_does_not_matter(
        mut classifications in prop::collection::vec(any_classification(), 0..4),
    ) {
        classifications.sort_by(|left, right| left.name.cmp(&right.name));
        classifications.dedup_by(|left, right| left.name == right.name);
        let forward = changed(&[("k", "v")], &classifications);
        classifications.reverse();
        prop_assert_eq!(forward, changed(&[("k", "v")], &classifications));
    }
}
