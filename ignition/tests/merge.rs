//! What merging makes of the cases in `tests/merge`, and what holds for all configs.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "test code: what is not as expected must stop the test"
)]

mod cases;
mod random;

use cases::Case;
use ignition::document::Document;
use ignition::merge::merge;
use ignition::spec::Spec;
use ignition::translate::translate;
use ignition::validate::validate;
use proptest::prelude::*;
use random::Shape;
use serde_json::Value;

#[test]
fn every_case_merges_as_expected() {
    let cases = Case::all();
    assert!(cases.len() >= 60);
    let differs = |case: &&Case| merge(&case.parent(), &case.child()) != case.expected();
    let text = |case: &Case| {
        format!(
            "{}\n  merged   {}\n  expected {}",
            case.name,
            merge(&case.parent(), &case.child()),
            case.expected()
        )
    };
    let failed: Vec<String> = cases.iter().filter(differs).map(text).collect();
    assert!(failed.is_empty(), "{} of {}:\n{}", failed.len(), cases.len(), failed.join("\n"));
}

#[test]
fn every_case_is_as_valid_as_it_says() {
    for case in Case::all() {
        let is_valid = |document: &Document, expected: bool, what: &str| {
            let report = validate(document);
            assert_eq!(
                !report.is_fatal(),
                expected,
                "{} of {:?}: {}",
                what,
                case.name,
                report.to_text("case")
            );
        };
        is_valid(&case.parent(), case.parent_valid, "parent");
        is_valid(&case.child(), case.child_valid, "child");
        is_valid(&case.expected(), case.valid, "result");
    }
}

#[test]
fn the_types_of_every_version_hold_the_results() {
    for case in Case::all() {
        let merged = merge(&case.parent(), &case.child());
        let config = merged.to_config().unwrap();
        assert_eq!(Document::try_from(&config).unwrap(), merged, "{}", case.name);
    }
}

fn documents(specs: &[Spec], shape: Shape) -> impl Strategy<Value = Document> {
    random::document(specs.to_vec(), shape)
}

/// Nothing here is undone by a config further down: a deletion, another kind of node, an absent plain value.
fn additive() -> impl Strategy<Value = Document> {
    documents(&Spec::ALL[3..], Shape { crossing: false, headers: false, ..Shape::ANY })
}

proptest! {
    #[test]
    fn merging_with_the_empty_config_changes_the_version_at_most(
        document in documents(&Spec::ALL, Shape::ANY),
        spec in proptest::sample::select(&Spec::ALL[..]),
    ) {
        let newer = translate(&document, spec.max(document.spec())).unwrap();
        prop_assert_eq!(&merge(&document, &Document::empty(spec)), &newer);
        prop_assert_eq!(merge(&Document::empty(spec), &document), newer);
    }

    #[test]
    fn merging_is_associative_where_nothing_is_undone(a in additive(), b in additive(), c in additive()) {
        prop_assert_eq!(merge(&merge(&a, &b), &c), merge(&a, &merge(&b, &c)));
    }

    #[test]
    fn merging_twice_adds_nothing_but_to_lists_without_keys(a in additive(), b in additive()) {
        let once = merge(&a, &b);
        let twice = merge(&once, &b);
        let appended = ["append", "options", "mountOptions"];
        prop_assert_eq!(without(&appended, once.to_value()), without(&appended, twice.to_value()));
    }

    #[test]
    fn configs_that_do_not_meet_stay_valid(
        parent in documents(&Spec::ALL, Shape { prefix: "p", ..Shape::ANY }),
        child in documents(&Spec::ALL, Shape { prefix: "c", ..Shape::ANY }),
    ) {
        prop_assume!(!validate(&parent).is_fatal() && !validate(&child).is_fatal());
        let spec = parent.spec().max(child.spec());
        let translated = [&parent, &child].map(|it| validate(&translate(it, spec).unwrap()).is_fatal());
        prop_assert_eq!(validate(&merge(&parent, &child)).is_fatal(), translated.contains(&true));
    }

    #[test]
    fn what_is_written_is_read_again(document in documents(&Spec::ALL, Shape::ANY)) {
        for text in [document.to_string(), document.to_pretty()] {
            let parsed = Document::parse(text.as_bytes()).unwrap();
            prop_assert!(parsed.warnings.is_empty());
            prop_assert_eq!(&parsed.document, &document);
        }
    }
}

/// A tree without fields of these names, at any depth.
fn without(names: &[&str], value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let kept = fields.into_iter().filter(|(name, _)| !names.contains(&name.as_str()));
            Value::Object(kept.map(|(name, value)| (name, without(names, value))).collect())
        }
        Value::Array(items) => items.into_iter().map(|item| without(names, item)).collect(),
        other => other,
    }
}
