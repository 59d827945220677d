//! Marks a cluster as deleted.

use ignition::discovery::masked_url;
use rules::cluster::state::ClusterOperation;

use super::record::{ClusterRecord, ClusterSpec};
use crate::Secret;
use crate::error::Error;
use crate::time::Micros;

/// Returns the record of the deleted cluster. The record has no networks, VIPs or operators, as in upstream, and no
/// secrets.
///
/// # Errors
///
/// Returns an error if the cluster is being installed.
pub(crate) fn delete(mut record: ClusterRecord, now: Micros) -> Result<ClusterRecord, Error> {
    if !ClusterOperation::Delete.is_allowed(record.status()) {
        let reason = format!("cluster {} can not be removed while being installed", record.id);
        return Err(Error::conflict(reason));
    }
    record.spec = ClusterSpec {
        cluster_networks: Vec::new(),
        service_networks: Vec::new(),
        machine_networks: Vec::new(),
        api_vips: Vec::new(),
        ingress_vips: Vec::new(),
        olm_operators: Vec::new(),
        http_proxy: masked_url(&record.spec.http_proxy),
        https_proxy: masked_url(&record.spec.https_proxy),
        pull_secret: Secret::default(),
        ..record.spec
    };
    (record.updated_at, record.deleted_at) = (now, Some(now));
    Ok(record)
}
