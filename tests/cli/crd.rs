//! `kindling crd`: the selected custom resource definitions as YAML.

use serde::Deserialize;
use serde_json::Value;

use crate::support::Scratch;

/// Returns the kinds of the printed definitions.
fn printed_kinds(line: &str) -> Vec<String> {
    let text = Scratch::new().run_kindling(line).expect_text();
    serde_yaml_ng::Deserializer::from_str(&text)
        .map(|document| {
            let definition = Value::deserialize(document).unwrap();
            assert_eq!(definition["kind"], "CustomResourceDefinition");
            definition["spec"]["names"]["kind"].as_str().unwrap().to_owned()
        })
        .collect()
}

#[test]
fn all_definitions_are_printed_without_names() {
    assert_eq!(printed_kinds("crd"), ["AgentClassification", "Agent", "InfraEnv", "NMStateConfig"]);
}

#[test]
fn named_definitions_are_printed() {
    assert_eq!(printed_kinds("crd InfraEnv"), ["InfraEnv"]);
    assert_eq!(printed_kinds("crd nmstateconfig Agent Agent"), ["Agent", "NMStateConfig"]);
}

#[test]
fn rejects_unknown_kind() {
    Scratch::new().run_kindling("crd Pod").expect_usage_error("invalid value 'Pod'");
}
