//! Creates or changes an infra-env with a given id, so that it equals its definition.

use std::fmt::Display;

use assisted::infra_env::InfraEnvCreateParams;
use futures_util::future::BoxFuture;

use super::update::LastCheck;
use crate::Inventory;
use crate::error::Error;
use crate::id::InfraEnvId;
use crate::infra_env::{ImageSource, InfraEnvDefinition, InfraEnvRecord, static_network};
use crate::request_id::RequestId;
use crate::store::{Change, ReadSet, Reader as _, Stored};
use crate::time::Micros;

/// A resource that equals its definition, with the action that was necessary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ensured<T> {
    /// The resource did not exist, and was created.
    Created(T),
    /// The resource existed, and was changed.
    Updated(T),
    /// The resource existed, and already equaled its definition.
    Unchanged(T),
}

impl<T> Ensured<T> {
    /// Returns the resource, regardless of the action.
    pub fn into_inner(self) -> T {
        match self {
            Self::Created(resource) | Self::Updated(resource) | Self::Unchanged(resource) => resource,
        }
    }

    /// Returns `true` if the resource was created or changed.
    pub fn is_changed(&self) -> bool {
        !matches!(self, Self::Unchanged(_))
    }
}

/// The arguments of a call to [`ensure_infra_env`](Inventory::ensure_infra_env).
#[derive(Debug)]
struct EnsuredInfraEnv {
    id: InfraEnvId,
    definition: InfraEnvDefinition,
    request: Option<RequestId>,
    last_check: LastCheck,
}

impl Inventory {
    /// Creates the infra-env `id`, or changes it so that it equals its definition. The result is the same as if the
    /// infra-env had just been created with the definition. So a field that the parameters omit gets its default.
    /// Without a version, the infra-env gets the newest base image of the catalogue.
    ///
    /// The caller chooses the id: an operator uses the UID of the resource that it reconciles. The call can be repeated
    /// at any time, also by several callers concurrently. If nothing differs, nothing is written. A refusal adds no
    /// event, because callers repeat the call until it succeeds.
    ///
    /// An operator sets `owner` to the resource that it reconciles. After that, the API and callers with another owner
    /// cannot change or delete the infra-env. If an existing infra-env has no owner, it gets this one. `mirrors` can
    /// only be set by a definition, and the API does not show them.
    ///
    /// An infra-env whose record was lost can be created again with its old id. The URL of its image stays the same if
    /// the URL has no token, or if the definition has the old [`url_token`](InfraEnvDefinition::url_token). Otherwise
    /// the URL gets a new token. The old token stays valid, so that running agents continue to work. The events, the
    /// creation time, the image generation, which restarts at 1, and the [signing key](InfraEnvRecord::signing_key) are
    /// not restored.
    ///
    /// # Errors
    ///
    /// Returns an error if a value is invalid, or if the cluster or a base image for the version does not exist. The
    /// error is a [`Conflict`](crate::ErrorKind::Conflict) if the infra-env has another name, CPU architecture or
    /// cluster, which cannot be changed, or if it has another owner. It is also a conflict if
    /// [`Settings::infra_env_id`](crate::Settings::infra_env_id) requires another id.
    ///
    /// # Examples
    ///
    /// ```
    /// # use assisted::infra_env::InfraEnvCreateParams;
    /// # use inventory::id::InfraEnvId;
    /// # use inventory::infra_env::{InfraEnvDefinition, ResourceOwner};
    /// # use inventory::service::Ensured;
    /// # async fn reconcile(
    /// #     inventory: inventory::Inventory,
    /// #     uid: InfraEnvId,
    /// #     params: InfraEnvCreateParams,
    /// # ) -> Result<(), inventory::Error> {
    /// let owner = ResourceOwner::new("InfraEnv", "rack-1", "demo");
    /// let definition = InfraEnvDefinition { owner: Some(owner), ..params.into() };
    /// match inventory.ensure_infra_env(uid, definition, None).await? {
    ///     Ensured::Created(record) => println!("created {}", record.id),
    ///     Ensured::Updated(record) => println!("image generation {}", record.image_generation),
    ///     Ensured::Unchanged(_) => {}
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn ensure_infra_env(
        &self,
        id: InfraEnvId,
        definition: InfraEnvDefinition,
        request: Option<RequestId>,
    ) -> BoxFuture<'_, Result<Ensured<InfraEnvRecord>, Error>> {
        Box::pin(async move {
            if let Some(only) = self.settings().infra_env_id.filter(|only| *only != id) {
                return Err(Error::conflict(format!("infra-env {id} cannot exist: the only one is {only}")));
            }
            let target = &EnsuredInfraEnv { id, definition, request, last_check: LastCheck::default() };
            let attempt = |reads: ReadSet| async move { self.attempt_ensure(&reads, target).await };
            self.records().change(attempt).await
        })
    }

    async fn attempt_ensure(
        &self,
        reads: &ReadSet,
        target: &EnsuredInfraEnv,
    ) -> Result<(Change, Ensured<InfraEnvRecord>), Error> {
        let EnsuredInfraEnv { id, definition, request, last_check } = target;
        let owner = &definition.owner;
        let Some(mut stored) = reads.find::<InfraEnvRecord>(None, id.0).await? else {
            let (record, warnings) = self.new_infra_env(*id, definition.clone()).await?;
            let (change, record) = self.plan_registration(reads, record, &warnings, *request).await?;
            return Ok((change, Ensured::Created(record)));
        };
        stored.record.require_owner(owner.as_ref(), "change")?;
        require_same(&stored.record, &definition.params)?;
        let (image, in_stored_order) = self.ensured_image(&stored.record, definition).await?;
        let has_owner = stored.record.owner == *owner;
        stored.record.owner.clone_from(owner);
        if in_stored_order == stored.record.image {
            return self.plan_owner(stored, has_owner);
        }
        let warnings = self.check_update(&stored.record, &image, last_check).await?;
        let planned = self.plan_new_image(reads, stored, in_stored_order, (&warnings, *request)).await?;
        let (change, record) = planned;
        Ok((change, Ensured::Updated(record)))
    }

    /// Plans the change to an infra-env whose images stay the same. Only its owner may be new.
    fn plan_owner(
        &self,
        stored: Stored<InfraEnvRecord>,
        has_owner: bool,
    ) -> Result<(Change, Ensured<InfraEnvRecord>), Error> {
        let mut change = Change::new();
        if has_owner {
            return Ok((change, Ensured::Unchanged(stored.record)));
        }
        let record = InfraEnvRecord { updated_at: Micros::new(self.now()), ..stored.record };
        change.replace(&record, stored.generation)?;
        Ok((change, Ensured::Updated(record)))
    }

    /// Returns two forms of the new image source of an existing infra-env. The first form is for the check, with the
    /// networks in the order of the definition. The second form is for storage.
    async fn ensured_image(
        &self,
        before: &InfraEnvRecord,
        definition: &InfraEnvDefinition,
    ) -> Result<(ImageSource, ImageSource), Error> {
        let architecture = before.cpu_architecture;
        let mut image = self.new_image_source(definition.clone(), architecture);
        let os_image = self.os_image(&image.openshift_version, architecture).await?;
        image.openshift_version.clone_from(&os_image.openshift_version);
        image.os_image = os_image.openshift_version;
        let mut to_store = image.clone();
        to_store.static_network_config = static_network::in_stored_order(to_store.static_network_config);
        // Networks that differ only in their order need no check.
        if to_store.static_network_config == before.image.static_network_config {
            image.static_network_config.clone_from(&to_store.static_network_config);
        }
        Ok((image, to_store))
    }
}

/// Returns an error that lists all immutable fields with a different value.
fn require_same(before: &InfraEnvRecord, params: &InfraEnvCreateParams) -> Result<(), Error> {
    let cluster = |id: Option<_>| id.map_or_else(|| "null".to_owned(), |id| format!("{id}"));
    let (old, new) = (before.cpu_architecture, params.cpu_architecture.unwrap_or_default());
    let differences = [
        difference("name", &format_args!("{:?}", before.name), &format_args!("{:?}", params.name)),
        difference("cpu_architecture", &old, &new),
        difference("cluster_id", &cluster(before.cluster_id), &cluster(params.cluster_id)),
    ];
    let differences: Vec<_> = differences.into_iter().flatten().collect();
    if differences.is_empty() {
        return Ok(());
    }
    let differences = differences.join("; ");
    Err(Error::conflict(format!("infra-env {}: {differences}", before.id)))
}

fn difference(field: &str, before: &impl Display, after: &impl Display) -> Option<String> {
    let (before, after) = (before.to_string(), after.to_string());
    (before != after).then(|| format!("{field} cannot change from {before} to {after}"))
}

#[cfg(test)]
mod tests;
