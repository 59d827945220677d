//! The transition table is explored over all statuses, events and facts.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::*;

const EVENTS: [HostEvent; 7] = [
    HostEvent::Register,
    HostEvent::Refresh,
    HostEvent::LoseMedia,
    HostEvent::EnterStage,
    HostEvent::Bind,
    HostEvent::Unbind,
    HostEvent::DeleteCluster,
];

/// The statuses that a host can get today. Installations will add the others.
const REACHABLE: [HostStatus; 10] = [
    Discovering,
    Known,
    Disconnected,
    Insufficient,
    Binding,
    Unbinding,
    KnownUnbound,
    DisconnectedUnbound,
    InsufficientUnbound,
    DiscoveringUnbound,
];

/// All combinations of facts.
fn all_facts() -> Vec<HostFacts> {
    let stages = [
        None,
        Some(HostStage::Installing),
        Some(HostStage::Rebooting),
        Some(HostStage::Done),
        Some(HostStage::Failed),
    ];
    let mut all = Vec::new();
    for bits in 0..1_u32 << 7 {
        let bit = |number: u32| bits & 1 << number != 0;
        for stage in stages {
            all.push(HostFacts {
                is_connected: bit(0),
                has_media: bit(1),
                has_inventory: bit(2),
                has_minimum_hardware: bit(3),
                is_sufficient: bit(4),
                joins: bit(5),
                has_bound_infra_env: bit(6),
                stage,
            });
        }
    }
    all
}

fn next(status: HostStatus, event: HostEvent, facts: &HostFacts) -> HostStatus {
    let rule = find_rule(status, event, facts);
    rule.and_then(|rule| rule.transition("").status()).unwrap_or(status)
}

#[test]
fn every_row_can_match_each_of_its_sources() {
    let facts = all_facts();
    for (number, rule) in RULES.iter().enumerate() {
        for status in rule.from {
            let is_found = |facts: &HostFacts| {
                find_rule(*status, rule.event, facts).is_some_and(|found| std::ptr::eq(found, rule))
            };
            assert!(facts.iter().any(is_found), "row {number} never matches {status}");
        }
    }
}

#[test]
fn hosts_get_exactly_the_expected_statuses() {
    let facts = all_facts();
    let first = [true, false].map(|is_bound| Transition::first(is_bound).status().unwrap());
    let mut reached = BTreeSet::from(first);
    loop {
        let mut more = reached.clone();
        for status in &reached {
            for event in EVENTS {
                more.extend(facts.iter().map(|facts| next(*status, event, facts)));
            }
        }
        if more == reached {
            break;
        }
        reached = more;
    }
    assert_eq!(reached, BTreeSet::from(REACHABLE));
}

#[test]
fn every_status_that_a_host_can_get_has_a_way_out() {
    let facts = all_facts();
    for status in REACHABLE {
        // The deletion of the cluster ends every status of a bound host, so it does not count.
        let events = EVENTS.into_iter().filter(|event| *event != HostEvent::DeleteCluster);
        let leaves = |event| facts.iter().any(|facts| next(status, event, facts) != status);
        assert!(events.into_iter().any(leaves), "{status} has no way out");
    }
}

#[test]
fn facts_alone_decide_the_status_of_a_discovered_host() {
    for facts in all_facts() {
        for group in [POOL, DISCOVERED] {
            let found: BTreeSet<_> =
                group.iter().map(|status| next(*status, HostEvent::Refresh, &facts)).collect();
            assert_eq!(found.len(), 1, "{facts:?}: {found:?}");
            let settled = *found.first().unwrap();
            assert_eq!(next(settled, HostEvent::Refresh, &facts), settled, "{facts:?}");
        }
    }
}

#[test]
fn silent_hosts_become_disconnected_before_their_installation() {
    let expected = [
        Discovering,
        Known,
        Insufficient,
        PendingForInput,
        KnownUnbound,
        InsufficientUnbound,
        DiscoveringUnbound,
    ];
    let found: BTreeSet<_> = statuses_before_disconnection().collect();
    assert_eq!(found, BTreeSet::from(expected));
}

#[test]
fn legacy_rows_have_sources_that_hosts_do_not_get() {
    for rule in RULES.iter().filter(|rule| rule.legacy.is_some()) {
        assert!(rule.from.iter().all(|status| !REACHABLE.contains(status)), "{rule:?}");
    }
}

fn code(texts: impl IntoIterator<Item = String>) -> String {
    texts.into_iter().map(|text| format!("`{text}`")).collect::<Vec<_>>().join(", ")
}

fn info_in_words(info: StatusInfo) -> String {
    match info {
        StatusInfo::Unchanged => "unchanged".to_owned(),
        StatusInfo::Text(MEDIA_DISCONNECTED) => "*lost media*".to_owned(),
        StatusInfo::Text(text) => text.to_owned(),
        StatusInfo::WithDetails(text, details) => {
            let details = match details {
                Details::FailingValidations => "failing validations",
                Details::InstallationDisk => "model, serial, name and id of the disk",
                Details::Stage => "stage; a failure with its message",
                Details::LostMedia => "lost media*. *previous text",
            };
            format!("{text}*{details}*")
        }
    }
}

/// Returns the table and the diagram as Markdown.
pub(crate) fn host_tables() -> String {
    let mut text =
        "| event | from | condition | to | `status_info` | effect |\n|---|---|---|---|---|---|\n".to_owned();
    for (is_bound, condition) in [(true, "the infra-env is bound to a cluster"), (false, "otherwise")] {
        let first = Transition::first(is_bound);
        let (status, info) = (first.status().unwrap(), first.info().unwrap());
        writeln!(text, "| Register | new host | {condition} | `{status}` | {info} | the host is created |")
            .unwrap();
    }
    for rule in RULES {
        let from = code(rule.from.iter().map(HostStatus::to_string));
        let condition = rule.condition.map_or("", |condition| condition.text);
        let (to, info) = match rule.outcome {
            RuleOutcome::To(status) => (format!("`{status}`"), info_in_words(rule.info)),
            RuleOutcome::Stay => ("stays".to_owned(), "unchanged".to_owned()),
            RuleOutcome::Refused(RefusalReason::MustBootFromDisk) => {
                ("refused, 400".to_owned(), String::new())
            }
            RuleOutcome::Refused(RefusalReason::AlreadyInstalled) => {
                ("refused, 409".to_owned(), String::new())
            }
        };
        let effect =
            if rule.resets_boot { "reports, progress and logs of the last boot are discarded" } else { "" };
        let legacy = rule.legacy.map(|reason| format!("legacy: {reason}")).unwrap_or_default();
        writeln!(text, "| {:?} | {from} | {condition} | {to} | {info} | {effect}{legacy} |", rule.event)
            .unwrap();
    }
    text
}

/// Returns the diagram of the statuses that hosts can get today.
pub(crate) fn host_diagram() -> String {
    let mut edges = BTreeSet::new();
    for status in REACHABLE {
        for event in EVENTS {
            for facts in all_facts() {
                let to = next(status, event, &facts);
                if to != status {
                    edges.insert((status.as_str(), to.as_str(), format!("{event:?}")));
                }
            }
        }
    }
    let mut text = "```mermaid\nstateDiagram-v2\n".to_owned();
    let id = |status: &str| status.replace('-', "_");
    for status in REACHABLE {
        writeln!(text, "    state \"{status}\" as {}", id(status.as_str())).unwrap();
    }
    for is_bound in [true, false] {
        writeln!(
            text,
            "    [*] --> {}: Register",
            id(Transition::first(is_bound).status().unwrap().as_str())
        )
        .unwrap();
    }
    for (from, to, event) in edges {
        writeln!(text, "    {} --> {}: {event}", id(from), id(to)).unwrap();
    }
    text + "```\n"
}
