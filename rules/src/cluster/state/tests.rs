//! The tables of clusters, for `docs/state-machines.md`.

use std::fmt::Write as _;

use super::*;

/// Returns the tables as Markdown.
pub(crate) fn cluster_tables() -> String {
    let mut text = "No operation changes the status of a cluster yet: installations do.\n\n".to_owned();
    text.push_str("| new cluster | status | `status_info` |\n|---|---|---|\n");
    for origin in ClusterOrigin::ALL {
        let (status, info) = origin.first_status();
        writeln!(text, "| {} | `{status}` | {info} |", format!("{origin:?}").to_lowercase()).unwrap();
    }
    text.push_str("\n| operation | allowed in |\n|---|---|\n");
    for operation in ClusterOperation::ALL {
        let (allowed, refused): (Vec<_>, Vec<_>) =
            ClusterStatus::ALL.iter().partition(|status| operation.is_allowed(**status));
        let code = |statuses: Vec<&ClusterStatus>| {
            statuses.into_iter().map(|status| format!("`{status}`")).collect::<Vec<_>>().join(", ")
        };
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

#[test]
fn new_clusters_that_can_change_accept_hosts() {
    for origin in ClusterOrigin::ALL {
        let (status, _) = origin.first_status();
        let is_monitored = origin != ClusterOrigin::Disconnected;
        assert_eq!(CHANGEABLE_STATUSES.contains(&status), is_monitored);
        assert!(ClusterOperation::Delete.is_allowed(status));
    }
}
