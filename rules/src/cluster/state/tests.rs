//! Exhaustive checks of the cluster rules, and the generator of the cluster tables in `docs/state-machines.md`.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::tables::{CONFIGURED, Refresh};
use super::*;
use crate::state_machines::{RULES_HEAD, code, rule_row};
use crate::transitions::TransitionTable as _;

const NOW: DateTime<Utc> = DateTime::UNIX_EPOCH;

/// Returns all combinations of facts.
fn all_conclusions() -> impl Iterator<Item = ClusterConclusions> {
    (0..1_u32 << 4).map(|bits| ClusterConclusions {
        has_vip_dhcp_allocation: bits & 1 != 0,
        has_required_settings: bits & 2 != 0,
        has_vips: bits & 4 != 0,
        is_installable: bits & 8 != 0,
    })
}

fn refresh(status: ClusterStatus, conclusions: ClusterConclusions) -> ClusterTransition {
    decide(status, &ClusterEvent::Refresh(conclusions), NOW).unwrap()
}

#[test]
fn every_rule_can_match_each_of_its_sources() {
    for (number, rule) in Refresh::RULES.iter().enumerate() {
        for status in rule.from {
            let first = |facts| Refresh::RULES.iter().position(|rule| rule.matches(*status, &facts));
            assert!(all_conclusions().any(|facts| first(facts) == Some(number)), "rule {number}, {status}");
        }
    }
}

#[test]
fn facts_alone_decide_the_status_of_a_configured_cluster() {
    for conclusions in all_conclusions() {
        let settled = refresh(Insufficient, conclusions);
        for status in CONFIGURED {
            assert_eq!(refresh(*status, conclusions), settled);
        }
    }
}

#[test]
fn every_status_of_a_configured_cluster_can_change() {
    let reached: BTreeSet<_> =
        all_conclusions().filter_map(|facts| refresh(Insufficient, facts).status()).collect();
    assert_eq!(reached, CONFIGURED.iter().copied().collect());
}

#[test]
fn clusters_in_other_statuses_keep_status_and_text() {
    for status in ClusterStatus::ALL.iter().filter(|status| !CONFIGURED.contains(status)) {
        for conclusions in all_conclusions() {
            if let Ok(transition) = decide(*status, &ClusterEvent::Refresh(conclusions), NOW) {
                assert_eq!((transition.status(), transition.info()), (None, None), "{status}");
            }
        }
    }
}

#[test]
fn conclusions_decide_the_status() {
    let all = ClusterConclusions {
        has_vip_dhcp_allocation: false,
        has_required_settings: true,
        has_vips: true,
        is_installable: true,
    };
    let with_dhcp = ClusterConclusions { has_vip_dhcp_allocation: true, ..all };
    let ready = (Some(Ready), Some("Cluster ready to be installed"));
    let insufficient = (Some(Insufficient), Some("Cluster is not ready for install"));
    let pending = (Some(PendingForInput), Some("User input required"));
    for (conclusions, expected) in [
        (all, ready),
        (ClusterConclusions { is_installable: false, ..all }, insufficient),
        (ClusterConclusions { has_vips: false, ..all }, pending),
        (ClusterConclusions { has_vips: false, is_installable: false, ..all }, pending),
        (ClusterConclusions { has_required_settings: false, ..all }, pending),
        (with_dhcp, ready),
        (ClusterConclusions { is_installable: false, ..with_dhcp }, insufficient),
        (ClusterConclusions { has_vips: false, ..with_dhcp }, insufficient),
        (ClusterConclusions { has_required_settings: false, ..with_dhcp }, pending),
        (ClusterConclusions { has_required_settings: false, has_vips: false, ..with_dhcp }, pending),
    ] {
        let transition = refresh(Insufficient, conclusions);
        assert_eq!((transition.status(), transition.info()), expected, "{conclusions:?}");
    }
}

/// Returns the cluster rules as Markdown tables.
pub(crate) fn cluster_tables() -> String {
    let mut text = "| new cluster | status | `status_info` |\n|---|---|---|\n".to_owned();
    for origin in ClusterOrigin::ALL {
        let (status, info) = origin.first_status();
        writeln!(text, "| {} | `{status}` | {info} |", format!("{origin:?}").to_lowercase()).unwrap();
    }
    text.push_str(REFRESH);
    text.push_str(RULES_HEAD);
    for rule in Refresh::RULES {
        let to = match rule.outcome {
            RuleOutcome::To(status) => code([status]),
            RuleOutcome::Stay | RuleOutcome::Refused(_) => "stays".to_owned(),
        };
        writeln!(text, "{}", rule_row(rule, &to, "")).unwrap();
    }
    text.push_str(UNIMPLEMENTED);
    text.push_str("\n### Operations\n\n| operation | allowed in |\n|---|---|\n");
    for operation in ClusterOperation::ALL {
        let (allowed, refused): (Vec<&ClusterStatus>, Vec<&ClusterStatus>) =
            ClusterStatus::ALL.iter().partition(|status| operation.is_allowed(**status));
        let allowed = if refused.len() < 3 { format!("all but {}", code(refused)) } else { code(allowed) };
        let name = match operation {
            ClusterOperation::Update => "change of its settings",
            ClusterOperation::AddHost => "registration or binding of a host",
            ClusterOperation::Delete => "deletion",
        };
        writeln!(text, "| {name} | {allowed} |").unwrap();
    }
    text
}

const REFRESH: &str = "
### Refresh

Starts when the cluster is assessed: its settings or its hosts have changed. The first row that matches counts.

";

const UNIMPLEMENTED: &str = "
### Not implemented

This service does not install clusters yet. These events of the Assisted Installer have no rules:

| event | operation | would lead to |
|---|---|---|
| PrepareForInstallation | `actions/install` | `preparing-for-installation` |
| CancelInstallation | `actions/cancel` | `cancelled`; a cluster that is being prepared: `ready` |
| ResetCluster | `actions/reset` | `insufficient` |
| | `actions/allow-add-hosts`, `actions/allow-add-workers` | `adding-hosts` |
| | `actions/complete-installation` | no other status |
";

#[test]
fn changeable_new_clusters_accept_hosts() {
    for origin in ClusterOrigin::ALL {
        let (status, _) = origin.first_status();
        let is_monitored = origin != ClusterOrigin::Disconnected;
        assert_eq!(CHANGEABLE_STATUSES.contains(&status), is_monitored);
        assert!(ClusterOperation::Delete.is_allowed(status));
    }
}
