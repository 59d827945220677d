//! The status of a host before an installation, which follows from its last check-in and from its reports.
//!
//! A host that was silent for too long is disconnected by the [monitor](crate::monitor).

use chrono::{DateTime, Utc};

use super::draft::HostDraft;
use super::record::HostRecord;
use super::refused_report;
use super::state::{HostEvent, HostFacts, becomes_disconnected, find_rule};
use super::validation::{
    blocking_validations, connected_since, has_media, has_minimum_hardware, is_connected,
};
use crate::error::Error;
use crate::journal::Journal;
use crate::store::{Change, Key, ReadSet, Reader as _, ReportKind};
use crate::{Inventory, Settings};

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

/// Disconnects the hosts among these that have not checked in for too long, in one change. Returns their number.
pub(crate) async fn disconnect_silent(inventory: &Inventory, hosts: &[Key]) -> Result<usize, Error> {
    let settings = inventory.settings();
    let plan = |reads: ReadSet| async move {
        let mut change = Change::new();
        let mut disconnected = 0;
        for key in hosts {
            let found = reads.find::<HostRecord>(key.parent, key.id).await?;
            let Some(stored) = found.filter(|host| host.record.deleted_at.is_none()) else { continue };
            let mut journal = inventory.journal(None);
            let host = &stored.record;
            if !becomes_disconnected(host.status()) || is_connected(host, settings, journal.now()) {
                continue;
            }
            let mut draft = HostDraft::new(stored);
            refresh(&mut draft.record, settings, &mut journal);
            draft.record.updated_at = journal.micros();
            // Another replica may store a check-in in the meantime, which does not change the generation.
            change.require_silent(&draft.record, connected_since(settings, journal.now()));
            draft.write(&mut change)?;
            journal.write(&mut change)?;
            disconnected += 1;
        }
        Ok((change, disconnected))
    };
    inventory.records().change(plan).await
}
