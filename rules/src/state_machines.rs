//! `docs/state-machines.md` has the tables of this crate.

use std::fmt::Write as _;

use crate::cluster::state::tests::cluster_tables;
use crate::host::state::tests::{host_diagram, host_tables};

fn document() -> String {
    let mut text = "# State machines\n\nWhich statuses hosts and clusters have, and what changes them. This page is generated from \
the code.\n\n## Hosts\n\nFor each event, the first row that matches counts. An event without a row does not change the host; a\n\
request that causes it is refused.\n\n| event | cause |\n|---|---|\n"
        .to_owned();
    for (event, cause) in [
        ("Register", "the agent registers, after each boot of the discovery image"),
        ("Refresh", "a report, a poll, a choice of a user, or the monitor that looks for silent hosts"),
        ("LoseMedia", "a step reply says that the boot media cannot be read"),
        ("EnterStage", "the installer reports another stage"),
        ("Bind", "a user binds the host to a cluster"),
        ("Unbind", "a user unbinds the host"),
        ("DeleteCluster", "a user deletes the cluster"),
    ] {
        writeln!(text, "| {event} | {cause} |").unwrap();
    }
    writeln!(text, "\n{}", host_tables()).unwrap();
    text.push_str("Each new status adds the event `host_status_updated`. Statuses that the diagram lacks belong to installations,\n\
which this service does not start yet. If an inventory report, or a reply that cannot be parsed, was refused, the\n\
`status_info` of a `discovering` or `insufficient` host, bound or not, ends with the reason until an inventory report is\n\
accepted.\n\n");
    text.push_str(&host_diagram());
    writeln!(text, "\n## Clusters\n\n{}", cluster_tables()).unwrap();
    text.truncate(text.trim_end().len());
    text + "\n"
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
