//! Deletion of infra-envs.

use futures_util::future::BoxFuture;

use super::queries::stored_infra_env;
use crate::Inventory;
use crate::error::{Error, ErrorKind};
use crate::id::InfraEnvId;
use crate::infra_env::event;
use crate::request_id::RequestId;
use crate::store::{Change, Filter, Kind, ReadSet};

impl Inventory {
    /// Deletes an infra-env.
    ///
    /// # Errors
    ///
    /// Returns an error if the infra-env does not exist or still has hosts.
    pub fn deregister_infra_env(
        &self,
        id: InfraEnvId,
        request: Option<RequestId>,
    ) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(async move {
            let attempt =
                |reads: ReadSet| async move { self.attempt_deregistration(&reads, id, request).await };
            let done = self.records().change(attempt).await;
            if let Err(refusal) = &done
                && refusal.kind() != ErrorKind::Unavailable
            {
                let event = event::deregister_failed(id, refusal, &self.journal(request));
                self.records().add_event(event).await?;
            }
            done
        })
    }

    async fn attempt_deregistration(
        &self,
        reads: &ReadSet,
        id: InfraEnvId,
        request: Option<RequestId>,
    ) -> Result<(Change, ()), Error> {
        let (mut change, mut journal) = (Change::new(), self.journal(request));
        let stored = stored_infra_env(reads, id).await?;
        let hosts = Filter::all(Kind::Host).within(id.0);
        let count = self.records().store().count(hosts).await?;
        if count > 0 {
            return Err(Error::invalid(format!(
                "failed to deregister infraEnv {id}, {count} hosts are still associated"
            )));
        }
        change.remove(&stored);
        change.require_none(hosts);
        journal.add(event::deregistered(&stored.record, &journal));
        journal.write(&mut change)?;
        Ok((change, ()))
    }
}
