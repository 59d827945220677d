//! Generates `docs/validations.md` from the registry of validations.

use std::fmt::Write as _;

use super::cluster::{ClusterGroup, ClusterOutcome};
use super::definition::ValidationId;
use super::host::{HostGroup, HostOutcome};
use super::outcome::ValidationOutcome;

/// The group type of the validations with outcome type `O`.
type Group<O> = <<O as ValidationOutcome>::Id as ValidationId>::Group;

/// The groups of host validations, with their names and the effect of a failure.
const HOST_GROUPS: &[(HostGroup, &str, &str)] = &[
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

/// The groups of cluster validations, with their names and the effect of a failure.
const CLUSTER_GROUPS: &[(ClusterGroup, &str, &str)] = &[
    (ClusterGroup::PendingConditions, "pending conditions", "is `pending-for-input`"),
    (
        ClusterGroup::VipsDefined,
        "virtual IP addresses",
        "is `pending-for-input`; `insufficient`, if a DHCP server assigns the addresses",
    ),
    (
        ClusterGroup::RequiredForInstall,
        "required for install",
        "is `insufficient`, if it is not `pending-for-input`",
    ),
];

const INTRODUCTION: &str = "# Validations

What is checked before hosts and clusters can be installed, and what to do if a check fails. This page is generated from
the code.

Read the results in `validations_info` of a host or cluster. Each has one of these statuses:

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
";

const HOSTS: &str = "
## Hosts

If a validation of a group does not pass, the host has another status:

| group | otherwise, the host |
|---|---|
";

const AFTER_HOST_GROUPS: &str = "
A validation without a group is only reported.

The validations are listed in computing order. While a host reboots after its installation, and later, the results of
validations with an asterisk are hidden.
";

const CLUSTERS: &str = "
## Clusters

If a validation of a group does not pass, the cluster has another status:

| group | otherwise, the cluster |
|---|---|
";

const AFTER_CLUSTER_GROUPS: &str = "
A validation without a group is only reported.

The validations are listed in computing order.
";

fn effects<G>(groups: &[(G, &str, &str)]) -> String {
    groups.iter().map(|(_, name, effect)| format!("| {name} | {effect} |\n")).collect()
}

fn definitions<O: ValidationOutcome>(groups: &[(Group<O>, &str, &str)]) -> String {
    let mut text =
        "\n| id | category | groups | can be ignored | applies to | passes if |\n|---|---|---|---|---|---|\n"
            .to_owned();
    for id in O::Id::ALL {
        let definition = id.definition();
        let of_id = groups.iter().filter(|(group, ..)| definition.groups.contains(group));
        let of_id: Vec<_> = of_id.map(|(_, name, _)| *name).collect();
        assert_eq!(of_id.len(), definition.groups.len(), "{id:?} has a group without a name");
        writeln!(
            text,
            "| `{}`{} | {} | {} | {} | {} | {} |",
            id.as_str(),
            if definition.hidden_in.is_empty() { "" } else { " \\*" },
            definition.category,
            of_id.join(", "),
            if definition.is_ignorable { "yes" } else { "no" },
            definition.applies_to,
            definition.passes_if,
        )
        .unwrap();
    }
    text
}

fn messages<O: ValidationOutcome>(owners: &str) -> String {
    let mut text = format!("\n## Messages of {owners}\n\nNumbers and names are examples.\n");
    for id in O::Id::ALL {
        writeln!(text, "\n### {}\n\n| status | message | what to do |\n|---|---|---|", id.as_str()).unwrap();
        for sample in O::samples(*id) {
            let description = sample.describe();
            let status = description.status.shown().map_or("not shown", |status| status.as_str());
            // Message texts may contain patterns with characters that are special in Markdown.
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
    [
        INTRODUCTION.to_owned(),
        HOSTS.to_owned() + &effects(HOST_GROUPS) + AFTER_HOST_GROUPS,
        definitions::<HostOutcome>(HOST_GROUPS),
        messages::<HostOutcome>("hosts"),
        CLUSTERS.to_owned() + &effects(CLUSTER_GROUPS) + AFTER_CLUSTER_GROUPS,
        definitions::<ClusterOutcome>(CLUSTER_GROUPS),
        messages::<ClusterOutcome>("clusters"),
    ]
    .concat()
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
