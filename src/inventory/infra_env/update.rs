//! Changes of an infra-env.

use std::sync::Mutex;

use ignition::network::check::Finding;

use super::model::{InfraEnv, InfraEnvUpdateParams, Proxy};
use super::record::{ImageSource, InfraEnvRecord};
use super::register::fresh_key;
use super::rules::PullSecretOf;
use super::{event, static_network};
use crate::api_error::ApiError;
use crate::inventory::id::InfraEnvId;
use crate::inventory::store::{Change, Stored};
use crate::inventory::time::Micros;
use crate::inventory::{Inventory, Secret};

impl Inventory {
    /// Changes an infra-env. One that is as it was is left alone, and so is everything that goes by when it changed.
    ///
    /// # Errors
    ///
    /// When there is no such infra-env, or a value is refused.
    pub async fn update_infra_env(
        &self,
        id: InfraEnvId,
        params: InfraEnvUpdateParams,
    ) -> Result<InfraEnv, ApiError> {
        // What was checked for one attempt need not be checked for the next one, if nothing else moved.
        let checked: Mutex<Option<(ImageSource, Vec<Finding>)>> = Mutex::new(None);
        self.records()
            .change(|| async {
                let mut change = Change::new();
                let stored: Stored<InfraEnvRecord> = self.stored_infra_env(id).await?;
                let before = &stored.record;
                require_same(before, &params)?;
                let mut image = updated(&before.image, &params);
                let known =
                    checked.lock().ok().and_then(|known| known.clone()).filter(|(known, _)| *known == image);
                let warnings = match known {
                    Some((_, warnings)) => warnings,
                    None => self.check_in_background(&image, &before.image, PullSecretOf::Existing).await?,
                };
                if let Ok(mut known) = checked.lock() {
                    *known = Some((image.clone(), warnings.clone()));
                }
                image.static_network_config = static_network::sorted(image.static_network_config);
                if image == before.image {
                    return Ok((change, before.view(self.settings())));
                }
                let os_image = self.os_image(&image.openshift_version, before.cpu_architecture).await?;
                // As long as it has an image, nobody takes that away.
                if os_image.openshift_version != before.image.os_image {
                    self.take_up_os_image(&mut change, &os_image).await?;
                }
                image.os_image = os_image.openshift_version;
                if let Some(cluster) = self.cluster_of_infra_env(before.cluster_id).await? {
                    self.check_fits(&cluster, &image, before.cpu_architecture)?;
                }
                let record = with_image(before, image);
                change.replace(&record, stored.generation);
                change.tell(event::image_updated(&record));
                warnings.iter().for_each(|warning| change.tell(event::network_warning(&record, warning)));
                Ok((change, record.view(self.settings())))
            })
            .await
    }

    /// Gives an infra-env another key for the tokens of its images. Those that were made with the old one are void.
    ///
    /// # Errors
    ///
    /// When there is no such infra-env.
    pub async fn regenerate_signing_key(&self, id: InfraEnvId) -> Result<(), ApiError> {
        let signing_key = fresh_key()?;
        self.records()
            .change(|| async {
                let mut change = Change::new();
                let stored = self.stored_infra_env(id).await?;
                let record = InfraEnvRecord {
                    signing_key: signing_key.clone(),
                    updated_at: Micros::now(),
                    ..stored.record
                };
                change.replace(&record, stored.generation);
                Ok((change, ()))
            })
            .await
    }
}

/// An infra-env with another image.
fn with_image(before: &InfraEnvRecord, image: ImageSource) -> InfraEnvRecord {
    let now = Micros::now();
    InfraEnvRecord {
        image,
        image_generation: before.image_generation + 1,
        image_changed_at: before.image_changed_at.later_than(),
        updated_at: now,
        ..before.clone()
    }
}

/// What cannot change may be in a body, as long as it does not.
fn require_same(before: &InfraEnvRecord, params: &InfraEnvUpdateParams) -> Result<(), ApiError> {
    let same = [
        ("id", params.id.is_none_or(|id| id == before.id)),
        ("name", params.name.as_ref().is_none_or(|name| *name == before.name)),
        ("cluster_id", params.cluster_id.is_none_or(|id| Some(id) == before.cluster_id)),
        ("cpu_architecture", params.cpu_architecture.is_none_or(|one| one == before.cpu_architecture)),
    ];
    match same.into_iter().find(|(_, same)| !same) {
        Some((key, _)) => Err(ApiError::malformed(format!("{key} in body cannot be changed"))),
        None => Ok(()),
    }
}

/// The source of an image with what a body says.
fn updated(before: &ImageSource, params: &InfraEnvUpdateParams) -> ImageSource {
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
    if let Some(secret) = params.pull_secret.as_deref().map(str::trim).filter(|secret| !secret.is_empty()) {
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
        if image_type != crate::images::ImageType::Disconnected {
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

/// Proxies with those that a body says; an empty one is taken away.
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
