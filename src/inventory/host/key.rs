//! The key of a host, and how the host is read and changed.

use utoipa::IntoParams;

use super::bounds::require_room;
use super::journal::Journal;
use super::record::HostRecord;
use crate::api_error::ApiError;
use crate::inventory::Inventory;
use crate::inventory::id::{HostId, InfraEnvId};
use crate::inventory::request::RequestId;
use crate::inventory::store::{Change, Records, Stored};

/// The key of a host. Its id alone is not enough: the same machine may be a host of several infra-envs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct HostKey {
    /// The infra-env whose image it booted.
    #[param(value_type = String, format = Uuid)]
    pub(crate) infra_env_id: InfraEnvId,
    /// Its id.
    #[param(value_type = String, format = Uuid)]
    pub(crate) host_id: HostId,
}

impl HostKey {
    /// The host that is there, also if it is deleted.
    pub(super) async fn find_any(self, records: &Records) -> Result<Option<Stored<HostRecord>>, ApiError> {
        Ok(records.find(Some(self.infra_env_id.0), self.host_id.0).await?)
    }

    /// The host that is there.
    pub(super) async fn find(self, records: &Records) -> Result<Stored<HostRecord>, ApiError> {
        let found = self.find_any(records).await?.filter(|host| host.record.deleted_at.is_none());
        found.ok_or_else(|| {
            let Self { infra_env_id, host_id } = self;
            let reason =
                format!("failed to get host {host_id} in infra_env {infra_env_id}: record not found");
            ApiError::not_found(reason)
        })
    }

    /// Changes the host that is there. The step may be asked again, of a host that another changed meanwhile.
    pub(super) async fn change<T>(
        self,
        inventory: &Inventory,
        request: RequestId,
        step: impl Fn(&mut HostRecord, &mut Journal) -> Result<T, ApiError> + Send + Sync,
    ) -> Result<(HostRecord, T), ApiError> {
        let records = inventory.records();
        records
            .change(|| async {
                let mut change = Change::new();
                let Stored { record: mut host, generation, size } = self.find(records).await?;
                let mut journal = Journal::of(request);
                let value = step(&mut host, &mut journal)?;
                host.updated_at = journal.micros();
                if change.replace(&host, generation) > size {
                    require_room(&mut change, self.infra_env_id, &inventory.settings().host_limits);
                }
                journal.write(&mut change);
                Ok((change, (host, value)))
            })
            .await
    }
}
