//! Registration of hosts by their agents after each boot of the discovery image.

use rules::disk::is_named;
use rules::host::state::{HostEvent, HostRefusal, HostReset, RegistrationFacts, Transition, decide};

use crate::Inventory;
use crate::catalogue::ImageType;
use crate::cluster::ClusterRecord;
use crate::error::{Error, ErrorKind};
use crate::event::Severity;
use crate::host::assessment::{HostContext, assess_unbound};
use crate::host::bounds::require_room_for_host;
use crate::host::cluster::{accepts_hosts, cannot_accept_hosts, is_add_hosts_cluster, is_single_node};
use crate::host::draft::{ASSESSED, HostDraft};
use crate::host::{HostKind, HostRecord, HostRole};
use crate::id::HostKey;
use crate::infra_env::InfraEnvRecord;
use crate::journal::Journal;
use crate::request_id::RequestId;
use crate::service::infra_envs::{require_cluster_of_infra_env, stored_infra_env};
use crate::store::{Change, ReadSet};

/// Error text if an installed host has booted the discovery image again.
const ALREADY_INSTALLED: &str = "Host is trying to register after the cluster has already been installed. That most probably \
                                  means that the host is booting from the installation ISO, and therefore not effectively \
                                  joining the cluster. The request will be ignored. Fix the boot order and reboot the host.";

/// The registration request of a host's agent.
#[derive(Clone, Debug)]
pub(crate) struct Registration {
    pub(crate) key: HostKey,
    /// Container image of the agent. Empty if the agent does not send it.
    pub(crate) agent_version: String,
    pub(crate) request: Option<RequestId>,
}

impl Inventory {
    /// Creates a host, or registers an existing host again. A refused registration adds an event.
    ///
    /// # Errors
    ///
    /// Returns an error if the infra-env does not exist or is full, or if the status of the host or of its cluster does
    /// not allow the registration.
    pub(crate) async fn register_host(&self, registration: &Registration) -> Result<HostRecord, Error> {
        registration.register(self).await
    }
}

impl Registration {
    async fn register(&self, inventory: &Inventory) -> Result<HostRecord, Error> {
        let records = inventory.records();
        let context = &inventory.registration_context(self.key).await?;
        let registered = records
            .change(|reads: ReadSet| async move { self.attempt(&reads, inventory, context).await })
            .await;
        if let Err(refusal) = &registered
            && matches!(refusal.kind(), ErrorKind::Invalid | ErrorKind::Conflict)
        {
            let HostKey { infra_env_id, host_id } = self.key;
            let event = inventory.journal(self.request).event(
                "host_registration_failed",
                Severity::Error,
                refusal.reason(),
            );
            let event = event.of_infra_env(infra_env_id).of_host(host_id);
            records.add_event(event).await?;
        }
        registered
    }

    async fn attempt(
        &self,
        records: &ReadSet,
        inventory: &Inventory,
        context: &HostContext<'_>,
    ) -> Result<(Change, HostRecord), Error> {
        let mut change = Change::new();
        let infra_env = stored_infra_env(records, self.key.infra_env_id).await?.record;
        if infra_env.image.image_type == ImageType::Disconnected {
            return Err(Error::invalid("Hosts of a disconnected ISO do not register"));
        }
        // If the infra-env is deleted concurrently, either the deletion or this change fails.
        change.require(&infra_env);
        let existing = self.key.find_any(records).await?;
        let (existing, deleted) = match existing {
            Some(host) if host.record.deleted_at.is_some() => (None, Some(host)),
            existing => (existing, None),
        };
        let mut journal = inventory.journal(self.request);
        let host = if let Some(stored) = existing {
            let mut draft = HostDraft::read(records, stored, ASSESSED).await?;
            self.register_again(&infra_env, &mut draft, &mut journal)?;
            assess_unbound(&mut draft, context, &mut journal)?;
            draft.write(&mut change)?
        } else {
            let cluster = require_cluster_of_infra_env(records, infra_env.cluster_id).await?;
            if let Some(cluster) = &cluster {
                change.require(cluster);
            }
            if let Some(deleted) = deleted {
                change.remove(&deleted);
            }
            let mut draft = HostDraft::of_new_host(self.new_host(cluster.as_ref(), &journal)?);
            assess_unbound(&mut draft, context, &mut journal)?;
            let host = draft.insert(&mut change)?;
            require_room_for_host(&mut change, self.key.infra_env_id, &inventory.settings().host_limits);
            host
        };
        journal.add_host_event(
            &host,
            "host_registration_succeeded",
            Severity::Info,
            "Successfully registered",
        );
        journal.write(&mut change)?;
        Ok((change, host))
    }

    /// Returns the record of a host that registers for the first time.
    fn new_host(&self, cluster: Option<&ClusterRecord>, journal: &Journal) -> Result<HostRecord, Error> {
        if let Some(cluster) = cluster.filter(|cluster| !accepts_hosts(cluster)) {
            return Err(cannot_accept_hosts(cluster));
        }
        let single_node = cluster.is_some_and(is_single_node);
        let joins = cluster.is_some_and(is_add_hosts_cluster);
        let (role, pool) = match () {
            () if single_node => (HostRole::Master, ""),
            () if joins => (HostRole::Worker, "worker"),
            () => (HostRole::AutoAssign, ""),
        };
        let mut host = HostRecord::new(self.key, &Transition::first(cluster.is_some(), journal.now()));
        host.cluster_id = cluster.map(|cluster| cluster.id);
        host.kind = if joins { HostKind::Joining } else { HostKind::Host };
        (host.role, host.suggested_role) = (role, role);
        (host.bootstrap, host.single_node) = (single_node, single_node);
        host.agent_version.clone_from(&self.agent_version);
        pool.clone_into(&mut host.choices.machine_config_pool_name);
        Ok(host)
    }

    /// Updates a host that has booted the discovery image again. The effect depends on the status of the host.
    fn register_again(
        &self,
        infra_env: &InfraEnvRecord,
        draft: &mut HostDraft,
        journal: &mut Journal,
    ) -> Result<(), Error> {
        let host = &draft.record;
        let installation_disk = describe_installation_disk(draft)?;
        let event = HostEvent::Register(RegistrationFacts {
            stage: host.progress.stage,
            joins: host.joins(),
            has_bound_infra_env: infra_env.cluster_id.is_some(),
            installation_disk: installation_disk.as_deref(),
        });
        let transition = decide(host.status(), &event, journal.now())
            .map_err(|refusal| refused_registration(host, refusal))?;
        journal.apply(&mut draft.record, &transition);
        if transition.resets() == Some(HostReset::Boot) {
            draft.clear_summary();
        }
        let host = &mut draft.record;
        host.agent_version.clone_from(&self.agent_version);
        host.registered_at = journal.millis();
        host.checked_in_at = journal.millis();
        host.updated_at = journal.micros();
        Ok(())
    }
}

fn refused_registration(host: &HostRecord, refusal: HostRefusal) -> Error {
    match refusal {
        HostRefusal::NoRule => {
            Error::invalid(format!("Host {} cannot register in state {}", host.id, host.status()))
        }
        HostRefusal::MustBootFromDisk => {
            let disk = host.choices.installation_disk.as_ref().map_or("", |disk| disk.id.as_str());
            Error::invalid(format!("Host is required to be booted from disk {disk}"))
        }
        HostRefusal::NoInstallationDisk => {
            Error::invalid(format!("Host {} has no installation disk in its inventory", host.id))
        }
        HostRefusal::AlreadyInstalled => Error::conflict(ALREADY_INSTALLED),
    }
}

/// Returns the installation disk in the form that the host's console shows. Returns `None` if the inventory report does
/// not contain the disk.
fn describe_installation_disk(draft: &HostDraft) -> Result<Option<String>, Error> {
    let (host, inventory) = (&draft.record, draft.summary()?.inventory.as_ref());
    let choice = host.choices.installation_disk.as_ref();
    let mut disks = inventory.iter().flat_map(|inventory| &inventory.disks);
    let disk = choice.and_then(|choice| disks.find(|disk| is_named(disk, &choice.id)));
    Ok(disk.map(|disk| {
        let name = format!("({}, {})", disk.name, disk.id);
        let parts = [&*disk.model, &disk.serial, &name];
        let parts: Vec<_> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        parts.join(" ")
    }))
}
