//! The status of a host before an installation, which follows from its last check-in and from its reports.
//!
//! A host that was silent for too long is disconnected by a background task.

use chrono::{DateTime, Utc};
use rules::host::state::{HostEvent, HostFacts, find_rule};

use super::record::HostRecord;
use super::refused_report;
use super::validation::{blocking_validations, has_media, has_minimum_hardware, is_connected};
use crate::journal::Journal;
use crate::settings::Settings;
use crate::store::ReportKind;

/// Updates the status of a host, unless it is being installed or has another status that only an operation ends.
pub(crate) fn refresh(host: &mut HostRecord, settings: &Settings, journal: &mut Journal) {
    let (facts, failures) = facts(host, settings, journal.now());
    if let Some(rule) = find_rule(host.status(), HostEvent::Refresh, &facts) {
        let transition = refused_report::with_reason(&host.findings, rule.transition(&failures));
        journal.apply(host, &transition);
    }
}

/// Returns the facts that the status depends on, and the messages of the failing validations.
fn facts(host: &HostRecord, settings: &Settings, now: DateTime<Utc>) -> (HostFacts, String) {
    let mut facts = HostFacts {
        is_connected: is_connected(host, settings, now),
        has_media: has_media(host),
        has_inventory: host.findings.has_report(ReportKind::Inventory),
        ..HostFacts::default()
    };
    let mut failures = String::new();
    if facts.has_inventory {
        let (blocking, messages) = blocking_validations(host);
        facts.is_sufficient = blocking.is_empty();
        facts.has_minimum_hardware = has_minimum_hardware(&blocking);
        failures = messages;
    }
    (facts, failures)
}
