//! The events that changes to infra-envs add.

use ignition::discovery::masked_url;
use ignition::network::check::NetworkFinding;

use super::record::InfraEnvRecord;
use crate::error::Error;
use crate::event::{Event, Severity};
use crate::id::InfraEnvId;
use crate::journal::Journal;

pub(crate) fn registered(record: &InfraEnvRecord, journal: &Journal) -> Event {
    journal
        .event("infra_env_registered", Severity::Info, "Registered infra env")
        .of_infra_env(record.id)
        .of_cluster(record.cluster_id)
}

pub(crate) fn registration_failed(refusal: &Error, journal: &Journal) -> Event {
    let message = format!("Failed to register infra env. Error: {}", refusal.reason());
    journal.event("infra_env_registration_failed", Severity::Error, message)
}

pub(crate) fn deregistered(record: &InfraEnvRecord, journal: &Journal) -> Event {
    journal
        .event("infra_env_deregistered", Severity::Info, "Deregistered infra env")
        .of_infra_env(record.id)
        .of_cluster(record.cluster_id)
}

pub(crate) fn deregister_failed(id: InfraEnvId, refusal: &Error, journal: &Journal) -> Event {
    let message = format!("Failed to deregister infra env. Error: {}", refusal.reason());
    journal.event("infra_env_deregister_failed", Severity::Error, message).of_infra_env(id)
}

pub(crate) fn image_updated(record: &InfraEnvRecord, journal: &Journal) -> Event {
    let proxy = record.image.proxy.http_proxy.as_deref().filter(|url| !url.is_empty());
    let proxy = proxy.map(|url| format!("proxy URL is \"{}\", ", masked_url(url))).unwrap_or_default();
    let has_key = if record.image.ssh_authorized_key.is_empty() { "is not set" } else { "is set" };
    let details = format!("{proxy}Image type is \"{}\", SSH public key {has_key}", record.image.image_type);
    journal
        .event("image_info_updated", Severity::Info, format!("Updated image information ({details})"))
        .of_infra_env(record.id)
        .of_cluster(record.cluster_id)
}

/// Returns the event for a network finding that is only a warning.
pub(crate) fn network_warning(record: &InfraEnvRecord, finding: &NetworkFinding, journal: &Journal) -> Event {
    journal
        .event("infra_env_network_warning", Severity::Warning, format!("Static network: {finding}"))
        .of_infra_env(record.id)
        .of_cluster(record.cluster_id)
}
