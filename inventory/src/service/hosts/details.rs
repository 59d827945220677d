//! The details of a host that its `Agent` resource shows.

use std::collections::BTreeMap;

use assisted::host::{HostStage, Validation};
use assisted::inventory_report::InventoryReport;
use assisted::reply::NtpSource;
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use futures_util::{StreamExt, TryStreamExt};
use sha2::{Digest as _, Sha256};

use super::list::{HostQuery, stored_hosts};
use crate::Inventory;
use crate::error::Error;
use crate::host::stored_results::stored_results;
use crate::host::{HostRecord, inventory_report};
use crate::id::{HostKey, InfraEnvId};
use crate::json::to_json_text;
use crate::store::{Change, ReadSet, ReportKind, ReportKinds, Reports, Stored};

/// The kinds of reports that the details depend on.
const DETAILED: ReportKinds =
    ReportKinds::new(&[ReportKind::Inventory, ReportKind::NtpSources, ReportKind::Results]);

/// A host with the parts of its reports that its `Agent` resource shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostDetails {
    /// The stored host.
    pub record: HostRecord,
    /// A version that changes whenever the details change.
    pub version: HostVersion,
    /// The validation results by category, as in the API's `validations_info`. Empty before the first assessment.
    pub validations: BTreeMap<&'static str, Vec<Validation>>,
    inventory: String,
    ntp_sources: String,
}

/// A version of a host's [details](HostDetails). If two versions of a host are equal, its details are equal too, except
/// for the time of the last check-in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct HostVersion {
    /// The generation of the record. It increases with each change to the host, or to a report that the host names.
    pub generation: i64,
    /// A digest of the validation results, which change without the record. `None` if the host has no results.
    pub results: Option<u64>,
}

impl HostDetails {
    fn new(stored: Stored<HostRecord>, mut reports: Reports) -> Result<Self, Error> {
        let Stored { record, generation, .. } = stored;
        let results = stored_results(&record, &reports)?;
        let mut report = |kind| reports.0.remove(&kind);
        let version =
            HostVersion { generation, results: report(ReportKind::Results).map(|text| digest(&text)) };
        // As in the API, a report that the host does not name is an empty text.
        let inventory = report(ReportKind::Inventory).unwrap_or_default();
        let inventory = inventory_report::with_eligibility(record.id, inventory, results.as_ref())?;
        let ntp_sources = report(ReportKind::NtpSources).unwrap_or_default();
        let validations = results.map(|results| results.validations.shown()).unwrap_or_default();
        Ok(Self { record, version, validations, inventory, ntp_sources })
    }

    /// Returns the inventory report with the eligibility of the disks, as the API shows it. Returns `None` if the host
    /// has not sent a report.
    ///
    /// # Errors
    ///
    /// Returns an internal error if the stored report is damaged.
    pub fn inventory(&self) -> Result<Option<InventoryReport<'_>>, Error> {
        if self.inventory.is_empty() {
            return Ok(None);
        }
        inventory_report::from_stored(self.record.id, &self.inventory).map(Some)
    }

    /// Returns the report of [`inventory`](Self::inventory) as JSON. Empty if the host has not sent a report.
    #[must_use]
    pub fn inventory_json(&self) -> &str {
        &self.inventory
    }

    /// Returns the host's time servers and their synchronization states.
    ///
    /// # Errors
    ///
    /// Returns an internal error if the stored report is damaged.
    pub fn ntp_sources(&self) -> Result<Vec<NtpSource<'_>>, Error> {
        if self.ntp_sources.is_empty() {
            return Ok(Vec::new());
        }
        serde_json::from_str(&self.ntp_sources).map_err(|error| {
            Error::broken(format_args!(
                "the stored report ntp_sources of host {} is damaged: {error}",
                self.record.id
            ))
        })
    }

    /// Returns the validation results as JSON, in the format of the API's `validations_info`.
    ///
    /// # Errors
    ///
    /// Returns an internal error if the results cannot be serialized as JSON.
    pub fn validations_json(&self) -> Result<String, Error> {
        to_json_text("validations_info", &self.validations)
    }

    /// Returns the installation stages of the host in their order. A host without a role has no stages.
    #[must_use]
    pub fn stages(&self) -> &'static [HostStage] {
        self.record.stages()
    }
}

/// Returns the first 64 bits of a text's SHA-256 digest.
fn digest(text: &str) -> u64 {
    let digest = Sha256::digest(text);
    digest.iter().take(8).fold(0, |number, byte| (number << 8) | u64::from(*byte))
}

impl Inventory {
    /// Returns the details of a host for its `Agent` resource. Returns `None` if the host does not exist.
    ///
    /// # Errors
    ///
    /// Returns an error if the database fails, or if a stored report is damaged.
    pub fn host_details(&self, key: HostKey) -> BoxFuture<'_, Result<Option<HostDetails>, Error>> {
        Box::pin(async move {
            let read = |reads: ReadSet| async move {
                let stored = key.find_any(&reads).await?;
                let Some(stored) = stored.filter(|host| host.record.deleted_at.is_none()) else {
                    return Ok((Change::new(), None));
                };
                let reports = reads.reports(&stored, DETAILED).await?;
                // Reading the host again detects a change since the first read. Both reads are then repeated.
                key.find_any(&reads).await?;
                Ok((Change::new(), Some(HostDetails::new(stored, reports)?)))
            };
            self.records().change(read).await
        })
    }

    /// Returns the details of all hosts of an infra-env, in the order of their creation. The stream reads page by page,
    /// as the caller consumes it. If the infra-env does not exist, the first item is an error.
    pub fn hosts_details(&self, infra_env: InfraEnvId) -> BoxStream<'static, Result<HostDetails, Error>> {
        let hosts = stored_hosts(self, HostQuery::of_infra_env(infra_env), DETAILED);
        hosts.and_then(|(host, reports)| std::future::ready(HostDetails::new(host, reports))).boxed()
    }
}

#[cfg(test)]
mod tests {
    use assisted::step::StepType;
    use serde_json::Value;

    use super::*;
    use crate::id::HostId;
    use crate::service::hosts::registration::Registration;
    use crate::service::test_inventory::{INVENTORY_REPORT, TestInventory, register_host, reply};

    const NTP: &str = r#"{"ntp_sources": [{"source_name": "ntp.example.com", "source_state": "synced"}]}"#;

    #[tokio::test]
    async fn details_equal_the_host_in_the_api() {
        let test = TestInventory::open().await;
        let inventory = &test.inventory;
        let key = register_host(inventory).await;
        let details = inventory.host_details(key).await.unwrap().unwrap();
        assert!(details.inventory().unwrap().is_none() && details.ntp_sources().unwrap().is_empty());
        let before = details.version;
        reply(inventory, key, StepType::Inventory, INVENTORY_REPORT).await;
        reply(inventory, key, StepType::NtpSynchronizer, NTP).await;
        let details = inventory.host_details(key).await.unwrap().unwrap();
        assert!(details.version.generation > before.generation && details.version.results != before.results);
        let host = inventory.host(key).await.unwrap();
        let api_host = inventory.to_api_host(&host).await.unwrap();
        assert_eq!(details.record, host);
        assert_eq!(details.inventory_json(), api_host.inventory);
        assert_eq!(details.validations_json().unwrap(), api_host.validations_info);
        let report = details.inventory().unwrap().unwrap();
        assert!(report.disks.iter().all(|disk| disk.installation_eligibility.eligible), "{report:?}");
        assert_eq!(details.ntp_sources().unwrap()[0].source_name.as_str(), "ntp.example.com");
        let validations: Value = serde_json::from_str(&api_host.validations_info).unwrap();
        assert_eq!(details.validations["hardware"][0].id, validations["hardware"][0]["id"].as_str().unwrap());
    }

    #[tokio::test]
    async fn version_changes_only_with_the_details() {
        let test = TestInventory::open().await;
        let inventory = &test.inventory;
        let key = register_host(inventory).await;
        reply(inventory, key, StepType::Inventory, INVENTORY_REPORT).await;
        let version = async || inventory.host_details(key).await.unwrap().unwrap().version;
        let before = version().await;
        reply(inventory, key, StepType::Inventory, INVENTORY_REPORT).await;
        assert_eq!(version().await, before);
        reply(inventory, key, StepType::NtpSynchronizer, NTP).await;
        assert_ne!(version().await, before);
    }

    #[tokio::test]
    async fn list_of_an_infra_env_omits_deleted_hosts() {
        let test = TestInventory::open().await;
        let inventory = &test.inventory;
        let first = register_host(inventory).await;
        let mut expected = vec![first.host_id];
        for _ in 0..3 {
            let key = HostKey { host_id: HostId::fresh(), ..first };
            let registration = Registration { key, agent_version: String::new(), request: None };
            inventory.register_host(&registration).await.unwrap();
            expected.push(key.host_id);
        }
        register_host(inventory).await;
        let deleted = HostKey { host_id: expected.remove(2), ..first };
        inventory.deregister_host(deleted, None).await.unwrap();
        let listed: Vec<_> = inventory.hosts_details(first.infra_env_id).try_collect().await.unwrap();
        assert_eq!(listed.iter().map(|host| host.record.id).collect::<Vec<_>>(), expected);
        assert_eq!(inventory.host_details(first).await.unwrap().unwrap(), listed[0]);
        assert_eq!(inventory.host_details(deleted).await.unwrap(), None);
        let mut unknown = inventory.hosts_details(InfraEnvId::fresh());
        assert!(unknown.next().await.unwrap().is_err());
    }
}
