//! The merge cases in `tests/merge`, and properties that all merges have.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "test code: what is not as expected must stop the test"
)]

mod cases;
mod random;

use cases::Case;
use ignition::config::Config;
use ignition::merge::merge;
use ignition::rewrite::rewrite;
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
fn every_case_has_its_stated_validity() {
    for case in Case::all() {
        let is_valid = |config: &Config, expected: bool, what: &str| {
            let report = validate(config);
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
fn rewrite_keeps_merged_configs() {
    for case in Case::all() {
        let merged = merge(&case.parent(), &case.child());
        let rewritten = rewrite(merged.to_string().as_bytes()).unwrap();
        assert_eq!(rewritten.warnings, [""; 0], "{}", case.name);
        assert_eq!(Config::parse(rewritten.json.as_bytes()).unwrap().config, merged, "{}", case.name);
    }
}

/// Returns a config without any settings.
fn empty(spec: Spec) -> Config {
    cases::read(&Value::Object(serde_json::Map::new()), spec.as_str())
}

fn configs(specs: &[Spec], shape: Shape) -> impl Strategy<Value = Config> {
    random::any_config(specs.to_vec(), shape)
}

/// Generates configs without anything that a later config can undo: deletions, changes of a node's kind, absent plain
/// values.
fn additive() -> impl Strategy<Value = Config> {
    configs(&Spec::ALL[3..], Shape { crossing: false, headers: false, ..Shape::ANY })
}

proptest! {
    #[test]
    fn merging_with_the_empty_config_changes_at_most_the_version(
        config in configs(&Spec::ALL, Shape::ANY),
        spec in proptest::sample::select(&Spec::ALL[..]),
    ) {
        let newer = translate(&config, spec.max(config.spec())).unwrap();
        prop_assert_eq!(&merge(&config, &empty(spec)), &newer);
        prop_assert_eq!(merge(&empty(spec), &config), newer);
    }

    #[test]
    fn merging_is_associative_without_removals(a in additive(), b in additive(), c in additive()) {
        prop_assert_eq!(merge(&merge(&a, &b), &c), merge(&a, &merge(&b, &c)));
    }

    #[test]
    fn merging_twice_changes_only_lists_without_keys(a in additive(), b in additive()) {
        let once = merge(&a, &b);
        let twice = merge(&once, &b);
        let appended = ["append", "options", "mountOptions"];
        prop_assert_eq!(without(&appended, once.to_value()), without(&appended, twice.to_value()));
    }

    #[test]
    fn merging_disjoint_configs_keeps_validity(
        parent in configs(&Spec::ALL, Shape { prefix: "p", ..Shape::ANY }),
        child in configs(&Spec::ALL, Shape { prefix: "c", ..Shape::ANY }),
    ) {
        prop_assume!(!validate(&parent).is_fatal() && !validate(&child).is_fatal());
        let spec = parent.spec().max(child.spec());
        let translated = [&parent, &child].map(|it| validate(&translate(it, spec).unwrap()).is_fatal());
        prop_assert_eq!(validate(&merge(&parent, &child)).is_fatal(), translated.contains(&true));
    }

    #[test]
    fn written_config_is_read_back(config in configs(&Spec::ALL, Shape::ANY)) {
        for text in [config.to_string(), config.to_pretty()] {
            let parsed = Config::parse(text.as_bytes()).unwrap();
            prop_assert!(parsed.warnings.is_empty());
            prop_assert_eq!(&parsed.config, &config);
        }
    }
}

/// Removes the fields with these names at any depth.
fn without(names: &[&str], value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let others = fields.into_iter().filter(|(name, _)| !names.contains(&name.as_str()));
            Value::Object(others.map(|(name, value)| (name, without(names, value))).collect())
        }
        Value::Array(items) => items.into_iter().map(|item| without(names, item)).collect(),
        other => other,
    }
}
