//! A machine booted, and its agent says so.

use axum::http::StatusCode;

use super::bounds::require_room;
use super::choice::machine_of;
use super::cluster::{find_cluster, is_joined, is_single_node, takes_hosts, takes_none};
use super::journal::Journal;
use super::key::HostKey;
use super::record::{Choices, Findings, HostRecord, Logs, Progress};
use super::refresh::WAITING_FOR_INVENTORY;
use super::stage::{HostRole, HostStage};
use super::status::{HostKind, HostStatus};
use crate::api_error::ApiError;
use crate::images::ImageType;
use crate::inventory::Inventory;
use crate::inventory::cluster::ClusterRecord;
use crate::inventory::event::{Event, Severity};
use crate::inventory::infra_env::InfraEnvRecord;
use crate::inventory::request::RequestId;
use crate::inventory::store::{Change, Records, Stored};

/// The refusal of an installed host that booted the discovery image again.
const AFTER_INSTALLATION: &str = "Host is trying to register after the cluster has already been installed. That most probably \
                                  means that the host is booting from the installation ISO, and therefore not effectively \
                                  joining the cluster. The request will be ignored. Fix the boot order and reboot the host.";

/// Who registers.
#[derive(Clone, Debug)]
pub(super) struct Registration {
    pub(super) place: HostKey,
    pub(super) agent_version: String,
    pub(super) request: RequestId,
}

impl Registration {
    /// Registers.
    pub(super) async fn register(&self, inventory: &Inventory) -> Result<HostRecord, ApiError> {
        let records = inventory.records();
        let registered = records.change(|| self.attempt(inventory)).await;
        if let Err(refusal) = &registered
            && matches!(refusal.status(), StatusCode::BAD_REQUEST | StatusCode::CONFLICT)
        {
            let HostKey { infra_env_id, host_id } = self.place;
            let event = Event::now("host_registration_failed", Severity::Error, refusal.reason());
            let event = event.of_infra_env(infra_env_id).of_host(host_id).in_answer_to(self.request.0);
            records.tell(event).await?;
        }
        registered
    }

    async fn attempt(&self, inventory: &Inventory) -> Result<(Change, HostRecord), ApiError> {
        let records = inventory.records();
        let mut change = Change::new();
        let infra_env = records.find::<InfraEnvRecord>(None, self.place.infra_env_id.0).await?;
        let infra_env = infra_env.ok_or_else(|| ApiError::not_found("record not found"))?.record;
        if infra_env.image.image_type == ImageType::Disconnected {
            return Err(ApiError::bad("Hosts of a disconnected ISO do not register"));
        }
        // Whoever deletes the infra-env has to see the host.
        change.require(&infra_env);
        let found = self.place.find_any(records).await?;
        let (found, gone) = match found {
            Some(host) if host.record.deleted_at.is_some() => (None, Some(host)),
            found => (found, None),
        };
        let mut journal = Journal::of(self.request);
        let host = if let Some(Stored { record: mut host, generation, .. }) = found {
            self.again(&infra_env, &mut host, &mut journal)?;
            change.replace(&host, generation);
            host
        } else {
            let cluster = cluster_of(records, &infra_env).await?;
            if let Some(cluster) = &cluster {
                change.require(cluster);
            }
            if let Some(gone) = gone {
                change.remove(&gone);
            }
            let host = self.newcomer(cluster.as_ref(), &journal)?;
            change.insert(&host);
            require_room(&mut change, self.place.infra_env_id, &inventory.settings().host_limits);
            host
        };
        journal.tell(&host, "host_registration_succeeded", Severity::Info, "Successfully registered");
        journal.write(&mut change);
        Ok((change, host))
    }

    /// A host that nobody knows yet.
    fn newcomer(&self, cluster: Option<&ClusterRecord>, journal: &Journal) -> Result<HostRecord, ApiError> {
        if let Some(cluster) = cluster.filter(|cluster| !takes_hosts(cluster)) {
            return Err(takes_none(cluster));
        }
        let single_node = cluster.is_some_and(is_single_node);
        let joins = cluster.is_some_and(is_joined);
        let (role, pool) = match () {
            () if single_node => (HostRole::Master, ""),
            () if joins => (HostRole::Worker, "worker"),
            () => (HostRole::AutoAssign, ""),
        };
        Ok(HostRecord {
            id: self.place.host_id,
            infra_env_id: self.place.infra_env_id,
            cluster_id: cluster.map(|cluster| cluster.id),
            kind: if joins { HostKind::Joining } else { HostKind::Host },
            status: if cluster.is_some() { HostStatus::Discovering } else { HostStatus::DiscoveringUnbound },
            status_info: WAITING_FOR_INVENTORY.to_owned(),
            status_updated_at: journal.millis(),
            role,
            suggested_role: role,
            bootstrap: single_node,
            single_node,
            user_name: "admin".to_owned(),
            agent_version: self.agent_version.clone(),
            checked_in_at: journal.millis(),
            clock: 0,
            registered_at: journal.millis(),
            created_at: journal.micros(),
            updated_at: journal.micros(),
            deleted_at: None,
            choices: Choices { machine_config_pool_name: pool.to_owned(), ..Choices::default() },
            findings: Findings::default(),
            progress: Progress::default(),
            logs: Logs::default(),
            told: std::collections::BTreeMap::new(),
        })
    }

    /// A host that is known booted the image once more.
    fn again(
        &self,
        infra_env: &InfraEnvRecord,
        host: &mut HostRecord,
        journal: &mut Journal,
    ) -> Result<(), ApiError> {
        use HostStatus as S;
        let left_image = host.progress.stage == Some(HostStage::Rebooting)
            || (host.joins() && host.progress.stage == Some(HostStage::Done));
        match host.status {
            S::PreparingForInstallation | S::PreparingSuccessful => {
                journal.move_host(host, S::Known, "Host is ready to be installed");
            }
            S::Resetting if host.progress.stage == Some(HostStage::Rebooting) => {}
            S::Discovering
            | S::Known
            | S::Disconnected
            | S::Insufficient
            | S::ResettingPendingUserAction
            | S::Binding
            | S::PendingForInput
            | S::Resetting => start_anew(host, S::Discovering, journal),
            S::InstallingPendingUserAction if left_image => {
                let disk = host.choices.installation_disk.as_ref().map_or("", |disk| disk.id.as_str());
                return Err(ApiError::bad(format!("Host is required to be booted from disk {disk}")));
            }
            S::InstallingInProgress | S::AddedToExistingCluster if left_image => {
                let info = boot_order(host)?;
                journal.move_host(host, S::InstallingPendingUserAction, &info);
            }
            S::Installing | S::InstallingInProgress => {
                journal.move_host(host, S::Error, "The host unexpectedly restarted during the installation");
            }
            S::Error => {}
            S::Installed => {
                return Err(ApiError::conflict(AFTER_INSTALLATION));
            }
            status if (status.is_in_pool() || is_leaving(status)) && infra_env.cluster_id.is_none() => {
                start_anew(host, S::DiscoveringUnbound, journal);
            }
            status => {
                return Err(ApiError::bad(format!("Host {} cannot register in state {status}", host.id)));
            }
        }
        host.agent_version.clone_from(&self.agent_version);
        host.registered_at = journal.millis();
        host.checked_in_at = journal.millis();
        host.updated_at = journal.micros();
        Ok(())
    }
}

fn is_leaving(status: HostStatus) -> bool {
    matches!(
        status,
        HostStatus::Unbinding | HostStatus::UnbindingPendingUserAction | HostStatus::ReclaimingRebooting
    )
}

/// Forgets what was before the boot. What users chose is kept.
fn start_anew(host: &mut HostRecord, status: HostStatus, journal: &mut Journal) {
    journal.move_host(host, status, WAITING_FOR_INVENTORY);
    host.bootstrap = host.single_node;
    host.findings = Findings::default();
    host.progress = Progress::default();
    host.logs = Logs::default();
}

/// Asks for a boot from the installation disk, and names the disk as the host's own console does.
fn boot_order(host: &HostRecord) -> Result<String, ApiError> {
    let machine = machine_of(host)?;
    let chosen = host.choices.installation_disk.as_ref();
    let disk = chosen.and_then(|chosen| machine.disks.iter().find(|disk| disk.is_named(&chosen.id)));
    let Some(disk) = disk else {
        return Err(ApiError::bad(format!("Host {} has no installation disk in its inventory", host.id)));
    };
    let name = format!("({}, {})", disk.name, disk.identity());
    let parts = [disk.model.as_str(), &disk.serial, &name];
    let parts: Vec<_> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    Ok(format!(
        "Expected the host to boot from disk, but it booted the installation image - please reboot and fix boot order to \
         boot from disk {}",
        parts.join(" ")
    ))
}

/// The cluster of an infra-env that has one.
async fn cluster_of(
    records: &Records,
    infra_env: &InfraEnvRecord,
) -> Result<Option<ClusterRecord>, ApiError> {
    let Some(id) = infra_env.cluster_id else { return Ok(None) };
    let found = find_cluster(records, id).await?;
    found.map(Some).ok_or_else(|| ApiError::not_found(format!("Cluster ID {id} does not exist")))
}
