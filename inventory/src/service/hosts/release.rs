//! Removes hosts from a cluster that is being deleted.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use rules::host::state::HostEvent;

use crate::error::Error;
use crate::host::HostRecord;
use crate::host::draft::HostDraft;
use crate::host::membership::{clear_cluster, deregister};
use crate::id::ClusterId;
use crate::infra_env::InfraEnvRecord;
use crate::journal::Journal;
use crate::store::{Change, Filter, Kind, ReadSet, Reader as _};

/// Deletes or unbinds the hosts of a cluster as part of the change that deletes the cluster.
///
/// Hosts are deleted if their infra-env is bound to the cluster, and unbound otherwise.
///
/// # Errors
///
/// Returns an error if the database fails.
pub(crate) async fn release_hosts(
    reads: &ReadSet,
    change: &mut Change,
    cluster: ClusterId,
    journal: &mut Journal,
) -> Result<(), Error> {
    let mut bound_infra_envs = BTreeMap::new();
    for stored in reads.list::<HostRecord>(Filter::all(Kind::Host).of_cluster(cluster.0)).await? {
        let mut draft = HostDraft::new(stored);
        let host = &mut draft.record;
        // Usually, many hosts of a cluster are in the same infra-env, so the result is remembered.
        let is_bound = match bound_infra_envs.entry(host.infra_env_id) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(unknown) => {
                let infra_env = reads.find::<InfraEnvRecord>(None, host.infra_env_id.0).await?;
                *unknown.insert(infra_env.is_some_and(|stored| stored.record.cluster_id == Some(cluster)))
            }
        };
        if is_bound {
            deregister(host, journal);
        } else {
            clear_cluster(host, &HostEvent::DeleteCluster, journal);
        }
        host.updated_at = journal.micros();
        draft.write(change)?;
    }
    // Without this requirement, a concurrently bound host could refer to a deleted cluster.
    change.require_none(Filter::all(Kind::Host).of_cluster(cluster.0));
    Ok(())
}
