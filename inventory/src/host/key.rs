//! Reads hosts by their keys.

use super::record::HostRecord;
use crate::error::Error;
use crate::id::HostKey;
use crate::store::{Key, Kind, Reader, Stored};

impl HostKey {
    /// Returns the host, even if it is deleted.
    pub(crate) async fn find_any(self, reader: &impl Reader) -> Result<Option<Stored<HostRecord>>, Error> {
        Ok(reader.find(Some(self.infra_env_id.0), self.host_id.0).await?)
    }

    /// Returns the host. A deleted host counts as missing.
    pub(crate) async fn find(self, reader: &impl Reader) -> Result<Stored<HostRecord>, Error> {
        let host = self.find_any(reader).await?.filter(|host| host.record.deleted_at.is_none());
        host.ok_or_else(|| self.not_found())
    }

    pub(crate) fn record_key(self) -> Key {
        Key { kind: Kind::Host, parent: Some(self.infra_env_id.0), id: self.host_id.0 }
    }

    /// Returns the error for a host that does not exist.
    pub(crate) fn not_found(self) -> Error {
        let Self { infra_env_id, host_id } = self;
        Error::not_found(format!(
            "failed to get host {host_id} in infra_env {infra_env_id}: record not found"
        ))
    }
}
