//! Generates the section about hosts in `docs/state-machines.md`.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use assisted::host::HostStatus;
use chrono::DateTime;

use super::tests::{ExploredTable, REACHABLE, for_each_table};
use super::{HostRefusal, Transition, tables};
use crate::host::status::MEDIA_DISCONNECTED;
use crate::state_machines::{RULES_HEAD, code, rule_row};
use crate::transitions::RuleOutcome;

/// The name of each event, and its cause.
const CAUSES: [(&str, &str); 9] = [
    (tables::Register::NAME, "the agent registers, after each boot of the discovery image"),
    (
        tables::Refresh::NAME,
        "the cluster of the host is assessed: a host has reported something, or a user has changed something",
    ),
    (
        tables::RefreshUnbound::NAME,
        "the agent of a host without a cluster sends a report or polls after a silence, a user changes the host, or the host is silent for too long",
    ),
    (tables::LoseMedia::NAME, "a step reply reports that the boot media cannot be read"),
    (tables::LoseConnection::NAME, "the agent of a host with a cluster has not polled for too long"),
    (tables::EnterStage::NAME, "the installer reports another stage"),
    (tables::Bind::NAME, "a user binds the host to a cluster"),
    (tables::Unbind::NAME, "a user unbinds the host"),
    (tables::DeleteCluster::NAME, "a user deletes the cluster"),
];

const INTRODUCTION: &str =
    "For each event, the first row that matches counts. An event without a row does not change the host; a
request that causes it is refused.
";

const AFTER_TABLES: &str = "
Each new status adds the event `host_status_updated`. Statuses that the diagram lacks belong to installations,
which this service does not start yet. If an inventory report, or a reply that cannot be parsed, was refused, the
`status_info` of a `discovering` or `insufficient` host, bound or not, ends with the reason until an inventory report is
accepted.

";

/// Returns the section as Markdown.
pub(crate) fn host_section() -> String {
    let mut text = format!("{INTRODUCTION}\n| event | cause |\n|---|---|\n");
    for (event, cause) in CAUSES {
        writeln!(text, "| {event} | {cause} |").unwrap();
    }
    for_each_table!(Event => text.push_str(&table::<Event>()));
    text + AFTER_TABLES + &diagram()
}

fn first(is_bound: bool) -> Transition {
    Transition::first(is_bound, DateTime::UNIX_EPOCH)
}

fn table<T: ExploredTable>() -> String {
    let mut text = format!("\n### {}\n\n{RULES_HEAD}", T::NAME);
    if T::NAME == tables::Register::NAME {
        for (is_bound, condition) in [(true, "the infra-env is bound to a cluster"), (false, "")] {
            let (first, effect) = (first(is_bound), "the host is created");
            let (status, info) = (first.status().unwrap(), first.info().unwrap());
            writeln!(text, "| new host | {condition} | `{status}` | {info} | {effect} |").unwrap();
        }
    }
    for rule in T::RULES {
        let refusal = |refusal| match refusal {
            HostRefusal::MustBootFromDisk | HostRefusal::NoInstallationDisk | HostRefusal::NoRule => {
                "refused, 400"
            }
            HostRefusal::AlreadyInstalled => "refused, 409",
        };
        let to = match rule.outcome {
            RuleOutcome::To(status) => code([status]),
            RuleOutcome::Stay => "stays".to_owned(),
            RuleOutcome::Refused(reason) => refusal(reason).to_owned(),
        };
        let reset = rule.resets.map(|_| "reports, progress and logs of the last boot are discarded");
        let legacy = rule.legacy.map(|reason| format!("legacy: {reason}"));
        let effect = reset.map(str::to_owned).or(legacy).unwrap_or_default();
        let row = rule_row(rule, &to, &effect).replace(MEDIA_DISCONNECTED, "*lost media*");
        writeln!(text, "{row}").unwrap();
    }
    if T::NAME == tables::LoseMedia::NAME {
        writeln!(text, "\n*lost media*: {MEDIA_DISCONNECTED}").unwrap();
    }
    text
}

/// Returns a diagram of the statuses that hosts can get in this version of the service.
fn diagram() -> String {
    let mut edges = BTreeSet::new();
    for status in REACHABLE {
        for_each_table!(Event => for to in Event::targets(status) {
            edges.insert((status.as_str(), to.as_str(), Event::NAME));
        });
    }
    let mut text = "```mermaid\nstateDiagram-v2\n".to_owned();
    let id = |status: &str| status.replace('-', "_");
    for status in REACHABLE {
        writeln!(text, "    state \"{status}\" as {}", id(status.as_str())).unwrap();
    }
    for is_bound in [true, false] {
        let status: HostStatus = first(is_bound).status().unwrap();
        writeln!(text, "    [*] --> {}: Register", id(status.as_str())).unwrap();
    }
    for (from, to, event) in edges {
        writeln!(text, "    {} --> {}: {event}", id(from), id(to)).unwrap();
    }
    text + "```\n"
}
