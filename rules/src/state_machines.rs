//! Checks that `docs/state-machines.md` contains the current rules of this crate, and writes the file on request.

use std::fmt::Display;

use crate::cluster::state::tests::cluster_tables;
use crate::host::state::host_section;
use crate::transitions::{StateMachine, StatusInfo, TransitionRule, TransitionTable};

/// The header of a Markdown table of rules.
pub(crate) const RULES_HEAD: &str =
    "| from | condition | to | `status_info` | effect |\n|---|---|---|---|---|\n";

/// Formats texts as Markdown code, separated by commas.
pub(crate) fn code(texts: impl IntoIterator<Item = impl Display>) -> String {
    texts.into_iter().map(|text| format!("`{text}`")).collect::<Vec<_>>().join(", ")
}

/// Formats a rule as a row of a Markdown table.
pub(crate) fn rule_row<T: TransitionTable>(rule: &TransitionRule<T>, to: &str, effect: &str) -> String
where
    <T::Machine as StateMachine>::Status: Display,
{
    let condition = rule.condition.as_ref().map_or("", |condition| condition.text);
    let info = match &rule.info {
        StatusInfo::Unchanged => "unchanged".to_owned(),
        StatusInfo::Text(text) => (*text).to_owned(),
        StatusInfo::WithDetails(text, details) => format!("{text}*{}*", details.words),
    };
    format!("| {} | {condition} | {to} | {info} | {effect} |", code(rule.from))
}

fn document() -> String {
    let introduction = "Which statuses hosts and clusters have, and what changes them. This page is generated from the code.";
    let (hosts, clusters) = (host_section(), cluster_tables());
    let text =
        format!("# State machines\n\n{introduction}\n\n## Hosts\n\n{hosts}\n## Clusters\n\n{clusters}");
    text.trim_end().to_owned() + "\n"
}

#[test]
fn document_has_the_tables_of_the_code() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/state-machines.md");
    let document = document();
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(path, &document).unwrap();
    }
    let text = std::fs::read_to_string(path).unwrap_or_default();
    assert!(text == document, "docs/state-machines.md differs from the tables; UPDATE_GOLDEN=1 writes it");
}
