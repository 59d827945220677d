//! Deletes infra-envs.

use futures_util::future::BoxFuture;

use super::queries::stored_infra_env;
use crate::Inventory;
use crate::error::{Error, ErrorKind};
use crate::id::InfraEnvId;
use crate::infra_env::{InfraEnvRecord, ResourceOwner, event};
use crate::request_id::RequestId;
use crate::store::{Change, Filter, Kind, ReadSet, Reader as _};

impl Inventory {
    /// Deletes an infra-env without hosts.
    ///
    /// # Errors
    ///
    /// Returns an error if the infra-env does not exist or still has hosts. The error is a
    /// [`Conflict`](ErrorKind::Conflict) if a resource [owns](InfraEnvRecord::owner) the infra-env.
    pub fn deregister_infra_env(
        &self,
        id: InfraEnvId,
        request: Option<RequestId>,
    ) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(async move {
            let attempt =
                |reads: ReadSet| async move { self.attempt_deregistration(&reads, id, None, request).await };
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

    /// Deletes an infra-env for the operator of its owner. The hosts of the infra-env must have been deleted. Returns
    /// `true` if the infra-env existed. A refusal adds no event, because the operator repeats the call until it
    /// succeeds.
    ///
    /// # Errors
    ///
    /// Returns an error if the infra-env has hosts, or if it has another owner.
    pub fn deregister_owned_infra_env(
        &self,
        id: InfraEnvId,
        owner: ResourceOwner,
        request: Option<RequestId>,
    ) -> BoxFuture<'_, Result<bool, Error>> {
        Box::pin(async move {
            let owner = &owner;
            let attempt = |reads: ReadSet| async move {
                if reads.find::<InfraEnvRecord>(None, id.0).await?.is_none() {
                    return Ok((Change::new(), false));
                }
                let (change, ()) = self.attempt_deregistration(&reads, id, Some(owner), request).await?;
                Ok((change, true))
            };
            self.records().change(attempt).await
        })
    }

    async fn attempt_deregistration(
        &self,
        reads: &ReadSet,
        id: InfraEnvId,
        owner: Option<&ResourceOwner>,
        request: Option<RequestId>,
    ) -> Result<(Change, ()), Error> {
        let (mut change, mut journal) = (Change::new(), self.journal(request));
        let stored = stored_infra_env(reads, id).await?;
        stored.record.require_owner(owner, "delete")?;
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
