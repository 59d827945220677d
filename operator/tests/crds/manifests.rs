//! Checks the manifests that the tests with an API server use. The accepted manifests use every member of each `spec`.
//!
//! The first line of a refused manifest is a comment with a part of the expected error message.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use operator::crds::{Agent, AgentClassification, InfraEnv, NMStateConfig};
use serde_json::Value;

use crate::facts::properties;

/// Returns the file names and texts of all manifests in a folder.
fn manifests(folder: &str) -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/manifests").join(folder);
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    paths
        .map(|path| {
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            (name, fs::read_to_string(path).unwrap())
        })
        .collect()
}

/// Adds the path of each member, in the notation of [`properties`].
fn collect_paths(path: &str, value: &Value, schema_paths: &BTreeSet<String>, paths: &mut BTreeSet<String>) {
    paths.insert(path.to_owned());
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                let property = format!("{path}.{name}");
                let is_property = schema_paths.contains(&property);
                let path = if is_property { property } else { format!("{path}{{}}") };
                collect_paths(&path, member, schema_paths, paths);
            }
        }
        Value::Array(items) => {
            for item in items {
                collect_paths(&format!("{path}[]"), item, schema_paths, paths);
            }
        }
        _ => {}
    }
}

#[test]
fn accepted_manifests_use_every_member_of_each_spec() {
    for kind in ["AgentClassification", "Agent", "InfraEnv", "NMStateConfig"] {
        let schema_paths: BTreeSet<_> =
            properties(kind).into_keys().filter(|path| path.starts_with(".spec")).collect();
        let mut paths = BTreeSet::new();
        for (_, text) in manifests("accepted") {
            let manifest: Value = serde_yaml_ng::from_str(&text).unwrap();
            if manifest["kind"] == kind {
                collect_paths(".spec", &manifest["spec"], &schema_paths, &mut paths);
            }
        }
        let unused: Vec<_> = schema_paths.difference(&paths).collect();
        assert!(unused.is_empty(), "{kind}: {unused:?}");
    }
}

#[test]
fn accepted_manifests_are_readable() {
    for (name, text) in manifests("accepted") {
        let manifest: Value = serde_yaml_ng::from_str(&text).unwrap();
        let result = match manifest["kind"].as_str().unwrap() {
            "Agent" => serde_json::from_value::<Agent>(manifest).map(drop),
            "AgentClassification" => serde_json::from_value::<AgentClassification>(manifest).map(drop),
            "InfraEnv" => serde_json::from_value::<InfraEnv>(manifest).map(drop),
            "NMStateConfig" => serde_json::from_value::<NMStateConfig>(manifest).map(drop),
            kind => panic!("{name}: unexpected kind {kind}"),
        };
        result.unwrap_or_else(|error| panic!("{name}: {error}"));
    }
}

#[test]
fn refused_manifests_begin_with_the_expected_message() {
    let manifests = manifests("refused");
    assert!(manifests.len() > 20);
    for (name, text) in manifests {
        let message = text.lines().next().and_then(|line| line.strip_prefix("# "));
        assert!(message.is_some_and(|message| !message.is_empty()), "{name}");
    }
}
