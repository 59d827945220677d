//! The state that a host is in without anybody's doing: whether it was heard of lately, and what it found out.
//!
//! Only hosts that nobody installs come here. A host that was silent for too long is moved when somebody looks at it: who
//! cannot see the difference does not need it.

use axum::http::StatusCode;

use super::journal::Journal;
use super::record::HostRecord;
use super::status::HostStatus;
use super::validation::{blocking, has_media, has_minimum_hardware, is_connected};
use crate::api_error::ApiError;
use crate::inventory::store::{Change, Records, Stored};
use crate::inventory::{Inventory, Settings};

/// The four states, for hosts of the pool and for hosts of a cluster.
struct States {
    disconnected: HostStatus,
    discovering: HostStatus,
    insufficient: HostStatus,
    known: HostStatus,
    known_info: &'static str,
}

const POOL: States = States {
    disconnected: HostStatus::DisconnectedUnbound,
    discovering: HostStatus::DiscoveringUnbound,
    insufficient: HostStatus::InsufficientUnbound,
    known: HostStatus::KnownUnbound,
    known_info: "Host is ready to be bound to a cluster",
};

const OF_CLUSTER: States = States {
    disconnected: HostStatus::Disconnected,
    discovering: HostStatus::Discovering,
    insufficient: HostStatus::Insufficient,
    known: HostStatus::Known,
    known_info: "Host is ready to be installed",
};

/// What a host waits for that said nothing yet.
pub(super) const WAITING_FOR_INVENTORY: &str = "Waiting for host to send hardware details";

/// Moves a host to where it belongs.
pub(super) fn refresh(host: &mut HostRecord, settings: &Settings, journal: &mut Journal) {
    let states = match host.status {
        status if status.is_in_pool() => POOL,
        status if status.is_before_installation() => OF_CLUSTER,
        _ => return,
    };
    if !has_media(host) {
        // Why was said when it happened.
        let info = host.status_info.clone();
        return journal.move_host(host, states.disconnected, &info);
    }
    if !is_connected(host, settings, journal.now()) {
        return journal.move_host(
            host,
            states.disconnected,
            "Host has stopped communicating with the installation service",
        );
    }
    if host.findings.inventory.is_empty() {
        return journal.move_host(host, states.discovering, WAITING_FOR_INVENTORY);
    }
    let (blocking, failures) = blocking(host);
    if blocking.is_empty() {
        return journal.move_host(host, states.known, states.known_info);
    }
    let reason = if host.status.is_in_pool() || !has_minimum_hardware(&blocking) {
        "Host does not meet the minimum hardware requirements"
    } else {
        "Host cannot be installed due to following failing validation(s)"
    };
    journal.move_host(host, states.insufficient, &format!("{reason}: {failures}"));
}

/// Whether a host would be moved for its silence.
fn is_overdue(host: &HostRecord, settings: &Settings, journal: &Journal) -> bool {
    let counts = host.status.is_in_pool() || host.status.is_before_installation();
    let is_disconnected = matches!(host.status, HostStatus::Disconnected | HostStatus::DisconnectedUnbound);
    counts && !is_disconnected && !is_connected(host, settings, journal.now())
}

/// A host as clients see it: one that was silent for too long is moved first. `None` if it is deleted just now.
pub(super) async fn up_to_date(
    inventory: &Inventory,
    host: HostRecord,
) -> Result<Option<HostRecord>, ApiError> {
    let mut journal = Journal::of_time();
    if !is_overdue(&host, inventory.settings(), &journal) {
        return Ok(Some(host));
    }
    match move_overdue(inventory, &host).await {
        // It is shown as it will be once there is space to store that.
        Err(refusal) if refusal.status() == StatusCode::INSUFFICIENT_STORAGE => {
            let mut host = host;
            refresh(&mut host, inventory.settings(), &mut journal);
            Ok(Some(host))
        }
        moved => moved,
    }
}

/// Moves a host that was silent, unless it is heard of just now. Nothing if it is deleted just now.
async fn move_overdue(inventory: &Inventory, host: &HostRecord) -> Result<Option<HostRecord>, ApiError> {
    let records: &Records = inventory.records();
    records
        .change(|| async {
            let mut change = Change::new();
            let found = records.find::<HostRecord>(Some(host.infra_env_id.0), host.id.0).await?;
            let Some(Stored { record: mut host, generation, .. }) =
                found.filter(|host| host.record.deleted_at.is_none())
            else {
                return Ok((change, None));
            };
            let mut journal = Journal::of_time();
            if is_overdue(&host, inventory.settings(), &journal) {
                refresh(&mut host, inventory.settings(), &mut journal);
                host.updated_at = journal.micros();
                change.replace(&host, generation);
                journal.write(&mut change);
            }
            Ok((change, Some(host)))
        })
        .await
}
