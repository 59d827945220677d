//! Updates infra-envs.

use assisted::infra_env::{InfraEnvUpdateParams, Proxy};
use chrono::{DateTime, Utc};
use futures_util::future::BoxFuture;
use ignition::network::check::NetworkFinding;
use tokio::sync::Mutex;

use super::check::PullSecretOf;
use super::cluster::cluster_of_infra_env;
use super::queries::stored_infra_env;
use crate::catalogue::ImageType;
use crate::error::Error;
use crate::id::InfraEnvId;
use crate::infra_env::{ImageSource, InfraEnvRecord, event, static_network};
use crate::request_id::RequestId;
use crate::store::{Change, ReadSet, Stored};
use crate::time::Micros;
use crate::{Inventory, Secret};

/// The image source of the last check, and the resulting findings. Reused if the update is attempted again with the
/// same image source.
pub(super) type LastCheck = Mutex<Option<(ImageSource, Vec<NetworkFinding>)>>;

impl Inventory {
    /// Updates an infra-env. If its image source stays the same, nothing is written, so its times and entity tags stay
    /// the same too.
    ///
    /// # Errors
    ///
    /// Returns an error if the infra-env does not exist or a value is invalid. The error is a
    /// [`Conflict`](crate::ErrorKind::Conflict) if a resource [owns](InfraEnvRecord::owner) the infra-env.
    pub fn update_infra_env(
        &self,
        id: InfraEnvId,
        params: InfraEnvUpdateParams,
        request: Option<RequestId>,
    ) -> BoxFuture<'_, Result<InfraEnvRecord, Error>> {
        Box::pin(async move {
            let last_check = LastCheck::default();
            let (params, last_check) = (&params, &last_check);
            let attempt = |reads: ReadSet| async move {
                self.attempt_update(&reads, (id, params), last_check, request).await
            };
            self.records().change(attempt).await
        })
    }

    async fn attempt_update(
        &self,
        reads: &ReadSet,
        (id, params): (InfraEnvId, &InfraEnvUpdateParams),
        last_check: &LastCheck,
        request: Option<RequestId>,
    ) -> Result<(Change, InfraEnvRecord), Error> {
        let stored = stored_infra_env(reads, id).await?;
        stored.record.require_owner(None, "change")?;
        require_same(&stored.record, params)?;
        let mut image = updated_image_source(&stored.record.image, params);
        let warnings = self.check_update(&stored.record, &image, last_check).await?;
        image.static_network_config = static_network::in_stored_order(image.static_network_config);
        if image == stored.record.image {
            return Ok((Change::new(), stored.record));
        }
        self.plan_new_image(reads, stored, image, (&warnings, request)).await
    }

    /// Looks up the base image and the cluster again, because they may have been removed meanwhile. Then plans the
    /// replacement of an image source with a checked one.
    pub(super) async fn plan_new_image(
        &self,
        reads: &ReadSet,
        stored: Stored<InfraEnvRecord>,
        mut image: ImageSource,
        (warnings, request): (&[NetworkFinding], Option<RequestId>),
    ) -> Result<(Change, InfraEnvRecord), Error> {
        let (mut change, before) = (Change::new(), stored.record);
        let os_image = self.os_image(&image.openshift_version, before.cpu_architecture).await?;
        // The current base image of the infra-env cannot be removed. Only another base image could have been removed
        // meanwhile.
        if os_image.openshift_version != before.image.os_image {
            self.start_using_os_image(reads, &mut change, &os_image).await?;
        }
        image.os_image = os_image.openshift_version;
        if let Some(cluster) = cluster_of_infra_env(reads, before.cluster_id).await? {
            self.check_fits_cluster(&cluster, &image, before.cpu_architecture)?;
        }
        let mut journal = self.journal(request);
        let record = with_image(before, image, journal.now())?;
        change.replace(&record, stored.generation)?;
        journal.add(event::image_updated(&record, &journal));
        for warning in warnings {
            journal.add(event::network_warning(&record, warning, &journal));
        }
        journal.write(&mut change)?;
        Ok((change, record))
    }

    /// Checks the changed values of an image source. Returns the network findings that are only warnings.
    pub(super) async fn check_update(
        &self,
        before: &InfraEnvRecord,
        image: &ImageSource,
        last_check: &LastCheck,
    ) -> Result<Vec<NetworkFinding>, Error> {
        image.check_delay()?;
        let mut last_check = last_check.lock().await;
        if let Some((same, warnings)) = &*last_check
            && same == image
        {
            return Ok(warnings.clone());
        }
        let kind = (before.cpu_architecture, PullSecretOf::Existing);
        let warnings = self.check_in_background(image, &before.image, kind).await?;
        *last_check = Some((image.clone(), warnings.clone()));
        Ok(warnings)
    }
}

/// Returns the record with a new image source and the next image generation.
fn with_image(
    before: InfraEnvRecord,
    image: ImageSource,
    now: DateTime<Utc>,
) -> Result<InfraEnvRecord, Error> {
    Ok(InfraEnvRecord {
        image,
        image_generation: before.image_generation + 1,
        image_changed_at: before.time_of_next_change(now)?,
        updated_at: Micros::new(now),
        ..before
    })
}

/// Returns an error if the request changes an immutable value. The request may repeat the current value.
fn require_same(before: &InfraEnvRecord, params: &InfraEnvUpdateParams) -> Result<(), Error> {
    let same = [
        ("id", params.id.is_none_or(|id| id == before.id)),
        ("name", params.name.as_ref().is_none_or(|name| *name == before.name)),
        ("cluster_id", params.cluster_id.is_none_or(|id| Some(id) == before.cluster_id)),
        ("cpu_architecture", params.cpu_architecture.is_none_or(|one| one == before.cpu_architecture)),
    ];
    match same.into_iter().find(|(_, same)| !same) {
        Some((key, _)) => Err(Error::malformed(format!("{key} in body cannot be changed"))),
        None => Ok(()),
    }
}

/// Returns the image source with the values from the request.
fn updated_image_source(before: &ImageSource, params: &InfraEnvUpdateParams) -> ImageSource {
    let mut image = before.clone();
    let set = |place: &mut String, value: &Option<String>| {
        if let Some(value) = value {
            value.trim().clone_into(place);
        }
    };
    set(&mut image.ssh_authorized_key, &params.ssh_authorized_key);
    set(&mut image.additional_ntp_sources, &params.additional_ntp_sources);
    set(&mut image.ntp_sources, &params.ntp_sources);
    set(&mut image.ignition_config_override, &params.ignition_config_override);
    set(&mut image.additional_trust_bundle, &params.additional_trust_bundle);
    set(
        &mut image.openshift_version,
        &params.openshift_version.clone().filter(|version| !version.is_empty()),
    );
    if let Some(secret) =
        params.pull_secret.as_ref().map(|it| it.reveal().trim()).filter(|secret| !secret.is_empty())
    {
        image.pull_secret = Secret::new(secret);
    }
    if let Some(proxy) = &params.proxy {
        image.proxy = updated_proxy(&before.proxy, proxy);
    }
    if let Some(hosts) = &params.static_network_config {
        image.static_network_config.clone_from(hosts);
    }
    if let Some(arguments) = &params.kernel_arguments {
        image.kernel_arguments.clone_from(arguments);
    }
    if let Some(image_type) = params.image_type {
        image.image_type = image_type;
        if image_type != ImageType::Disconnected {
            image.rendezvous_ip = None;
        }
    }
    if let Some(address) = &params.rendezvous_ip {
        image.rendezvous_ip = Some(address.clone()).filter(|address| !address.is_empty());
    }
    if let Some(delay) = params.network_discovery_delay_seconds {
        image.network_discovery_delay_seconds = Some(delay);
    }
    image
}

/// Returns the proxies with the values from the request. An empty value removes a proxy.
fn updated_proxy(before: &Proxy, proxy: &Proxy) -> Proxy {
    let pick = |new: &Option<String>, old: &Option<String>| {
        new.clone().or_else(|| old.clone()).filter(|url| !url.is_empty())
    };
    Proxy {
        http_proxy: pick(&proxy.http_proxy, &before.http_proxy),
        https_proxy: pick(&proxy.https_proxy, &before.https_proxy),
        no_proxy: pick(&proxy.no_proxy, &before.no_proxy),
    }
}
