//! `docs/validations.md` has the registry of this crate.

use std::fmt::Write as _;

use super::definition::ValidationId as _;
use super::host::{HostGroup, HostOutcome, HostValidationId};
use super::outcome::ValidationOutcome as _;

/// The groups with their names and effects.
const GROUPS: &[(HostGroup, &str, &str)] = &[
    (HostGroup::Connection, "connection", "is `disconnected`"),
    (HostGroup::ValidInventory, "valid inventory", "is being discovered"),
    (HostGroup::MinimumHardware, "minimum hardware", "is `insufficient`, if it belongs to a cluster"),
    (HostGroup::RequiredInput, "required input", "is `pending-for-input`"),
    (
        HostGroup::SufficientForInstall,
        "sufficient for install",
        "is `insufficient`, if it belongs to a cluster",
    ),
    (HostGroup::Unbound, "unbound", "is `insufficient-unbound`, if it does not belong to a cluster"),
];

const INTRODUCTION: &str = "# Validations

What is checked before a host can be installed, and what to do if a check fails. This page is generated from the code.

Read the results in `validations_info` of a host. Each has one of these statuses:

| status | meaning |
|---|---|
| `success` | the validation passed |
| `failure` | the validation failed; the message is part of the `status_info` of a host that cannot be installed |
| `pending` | data is missing |
| `error` | the validation could not be computed |
| `disabled` | the configuration of the service switches the validation off |

A validation that must pass also passes if it is `disabled`, or if the user of the cluster ignores it. An ignored
validation keeps its status. The list of ignored validations of a cluster may contain `all`; even an empty list, `[]`,
means that the configuration switches nothing off for the cluster.

If a validation of a group does not pass, the host has another status:

| group | otherwise, the host |
|---|---|
";

const AFTER_GROUPS: &str = "
A validation without a group is only reported.

## Hosts

The order is that of the computation. While a host reboots after its installation, and later, the results of
validations with an asterisk are hidden.

| id | category | groups | can be ignored | applies to | passes if |
|---|---|---|---|---|---|
";

const MESSAGES: &str = "
## Messages of hosts

Numbers and names are examples.
";

fn definitions() -> String {
    let mut text = String::new();
    for id in HostValidationId::ALL {
        let definition = id.definition();
        let groups = GROUPS.iter().filter(|(group, ..)| definition.groups.contains(group));
        let groups: Vec<_> = groups.map(|(_, name, _)| *name).collect();
        assert_eq!(groups.len(), definition.groups.len(), "{id} has a group without a name");
        writeln!(
            text,
            "| `{id}`{} | {} | {} | {} | {} | {} |",
            if definition.hidden_in.is_empty() { "" } else { " \\*" },
            definition.category,
            groups.join(", "),
            if definition.is_ignorable { "yes" } else { "no" },
            definition.applies_to,
            definition.passes_if,
        )
        .unwrap();
    }
    text
}

fn messages() -> String {
    let mut text = String::new();
    for id in HostValidationId::ALL {
        writeln!(text, "\n### {id}\n\n| status | message | what to do |\n|---|---|---|").unwrap();
        for sample in HostOutcome::samples(*id) {
            let description = sample.describe();
            let status = description.status.shown().map_or("not shown", |status| status.as_str());
            // Patterns in messages contain characters of Markdown.
            let message = if description.message.contains('^') {
                description.message.replace('^', "`^") + "`"
            } else {
                description.message.replace('|', "\\|")
            };
            writeln!(text, "| {status} | {message} | {} |", description.remedy.unwrap_or("")).unwrap();
        }
    }
    text
}

fn document() -> String {
    let mut text = INTRODUCTION.to_owned();
    for (_, name, effect) in GROUPS {
        writeln!(text, "| {name} | {effect} |").unwrap();
    }
    text.push_str(AFTER_GROUPS);
    text.push_str(&definitions());
    text.push_str(MESSAGES);
    text.push_str(&messages());
    text.push_str("\n## Clusters\n\nClusters have no validations yet.\n");
    text
}

#[test]
fn document_has_the_validations_of_the_code() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/validations.md");
    let document = document();
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(path, &document).unwrap();
    }
    let text = std::fs::read_to_string(path).unwrap_or_default();
    assert!(text == document, "docs/validations.md differs from the code; UPDATE_GOLDEN=1 writes it");
}
