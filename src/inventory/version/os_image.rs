//! Live images that somebody adds while the service runs, beside those of its configuration.
//!
//! They are records, so that all services on one database have them.

use axum::http::StatusCode;
use ignition::discovery::HttpUrl;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use utoipa::ToSchema;
use uuid::{Builder, Uuid};

use crate::api_error::ApiError;
use crate::images::{Catalogue, CpuArchitecture, ImageType, OsImage, Version};
use crate::inventory::Inventory;
use crate::inventory::infra_env::{InfraEnvRecord, NOT_FOUND};
use crate::inventory::request::request_bodies;
use crate::inventory::store::{Change, Filter, Kind, Record, Stored};

/// A live image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = os_image)]
pub struct OsImageView {
    /// The version of OpenShift that it is for.
    pub openshift_version: String,
    /// The machines that it is for.
    #[schema(value_type = String)]
    pub cpu_architecture: CpuArchitecture,
    /// Where it comes from.
    pub url: String,
    /// Its own version.
    pub version: String,
    /// What it is a base of: full and minimal images, or disconnected ones.
    #[serde(rename = "type")]
    pub image_type: ImageType,
    /// Whether it is part of the configuration of the service, and so cannot be taken away.
    pub configured: bool,
}

/// A live image to add.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = os_image_create_params)]
pub struct OsImageParams {
    /// The version of OpenShift that it is for: `4.14`, say.
    #[schema(min_length = 1, max_length = 64)]
    pub openshift_version: String,
    /// The machines that it is for.
    #[schema(value_type = Architecture)]
    pub cpu_architecture: CpuArchitecture,
    /// Where it comes from.
    pub url: String,
    /// Its own version.
    #[schema(min_length = 1, max_length = 64)]
    pub version: String,
}

/// The processor of a machine, under all its names.
#[derive(Debug, ToSchema)]
#[schema(as = os_image_cpu_architecture)]
#[expect(dead_code, reason = "the type describes values; it is never made")]
enum Architecture {
    /// Intel and AMD, 64 bits.
    #[schema(rename = "x86_64")]
    X86_64,
    /// ARM, 64 bits.
    #[schema(rename = "aarch64")]
    Aarch64,
    /// ARM, 64 bits.
    #[schema(rename = "arm64")]
    Arm64,
    /// POWER, little-endian.
    #[schema(rename = "ppc64le")]
    Ppc64le,
    /// IBM Z.
    #[schema(rename = "s390x")]
    S390x,
}

request_bodies! {
    OsImageParams: "newOsImageParams";
}

/// A live image that was added.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct OsImageRecord(OsImage);

impl Record for OsImageRecord {
    const KIND: Kind = Kind::OsImage;

    fn id(&self) -> Uuid {
        id_of(&self.0.openshift_version, self.0.cpu_architecture)
    }
}

/// There is one image of a version and a kind of machine: its id is made from the two.
fn id_of(version: &str, architecture: CpuArchitecture) -> Uuid {
    let digest = Sha256::digest(format!("os-image/{version}/{architecture}"));
    let mut bytes = [0; 16];
    for (byte, found) in bytes.iter_mut().zip(digest) {
        *byte = found;
    }
    Builder::from_custom_bytes(bytes).into_uuid()
}

fn view(image: OsImage, configured: bool) -> OsImageView {
    let OsImage { openshift_version, cpu_architecture, url, version, image_type, sha256: _ } = image;
    OsImageView { openshift_version, cpu_architecture, url, version, image_type, configured }
}

impl Inventory {
    /// The images and releases that there are: those of the configuration, and the images that were added.
    ///
    /// # Errors
    ///
    /// When the database fails.
    pub async fn present_catalogue(&self) -> Result<Catalogue, ApiError> {
        Ok(self.catalogue().clone().with_os_images(self.added_images().await?))
    }

    async fn added_images(&self) -> Result<Vec<OsImage>, ApiError> {
        let stored: Vec<Stored<OsImageRecord>> = self.records().list(Filter::all(Kind::OsImage)).await?;
        Ok(stored.into_iter().map(|stored| stored.record.0).collect())
    }

    /// All live images.
    ///
    /// # Errors
    ///
    /// When the database fails.
    pub async fn os_images(&self) -> Result<Vec<OsImageView>, ApiError> {
        let configured = self.catalogue().os_images().iter().map(|image| view(image.clone(), true));
        let added = self.added_images().await?.into_iter().map(|image| view(image, false));
        Ok(configured.chain(added).collect())
    }

    /// Adds a live image.
    ///
    /// # Errors
    ///
    /// When a value is refused, or there is an image of this version for these machines.
    pub async fn add_os_image(&self, params: OsImageParams) -> Result<OsImageView, ApiError> {
        let OsImageParams { openshift_version, cpu_architecture, url, version } = params;
        if Version::parse(&openshift_version).is_none() {
            let reason = format!("openshift_version {openshift_version:?} is not valid");
            return Err(ApiError::bad(reason));
        }
        HttpUrl::parse("url", &url).map_err(|error| ApiError::bad(error.to_string()))?;
        let image_type = ImageType::Full;
        let image = OsImage { openshift_version, cpu_architecture, url, version, image_type, sha256: None };
        let record = OsImageRecord(image.clone());
        self.records()
            .change(|| async {
                let there = self.records().find::<OsImageRecord>(None, record.id()).await?;
                if there.is_some() || self.is_configured(&image.openshift_version, cpu_architecture) {
                    return Err(ApiError::conflict(format!(
                        "there is an OS image for version {} and architecture {cpu_architecture}",
                        image.openshift_version
                    )));
                }
                let mut change = Change::new();
                change.insert(&record);
                Ok((change, ()))
            })
            .await?;
        Ok(view(image, false))
    }

    /// Takes an image away that was added.
    ///
    /// # Errors
    ///
    /// When there is no such image, it is part of the configuration, or infra-envs have it.
    pub async fn remove_os_image(
        &self,
        version: &str,
        architecture: CpuArchitecture,
    ) -> Result<(), ApiError> {
        if self.is_configured(version, architecture) {
            return Err(ApiError::conflict("the OS image is part of the configuration of this service"));
        }
        self.records()
            .change(|| async {
                let found = self.records().find::<OsImageRecord>(None, id_of(version, architecture)).await?;
                let stored = found.ok_or_else(|| ApiError::not_found(NOT_FOUND))?;
                let infra_envs: Vec<Stored<InfraEnvRecord>> =
                    self.records().list(Filter::all(Kind::InfraEnv)).await?;
                let has_it = |stored: &&Stored<InfraEnvRecord>| {
                    let record = &stored.record;
                    record.cpu_architecture == architecture && record.image.os_image == version
                };
                if let Some(Stored { record, .. }) = infra_envs.iter().find(has_it) {
                    return Err(ApiError::conflict(format!("infra-env {} has the OS image", record.id)));
                }
                let mut change = Change::new();
                change.remove(&stored);
                Ok((change, ()))
            })
            .await
    }

    /// Notes with a change that an infra-env begins to use an image. It fails if somebody takes the image away meanwhile,
    /// and who takes it away then looks for infra-envs once more: the record is another one afterwards.
    pub(in crate::inventory) async fn take_up_os_image(
        &self,
        change: &mut Change,
        image: &OsImage,
    ) -> Result<(), ApiError> {
        if self.is_configured(&image.openshift_version, image.cpu_architecture) {
            return Ok(());
        }
        let record = OsImageRecord(image.clone());
        match self.records().find::<OsImageRecord>(None, record.id()).await? {
            Some(stored) => {
                change.replace(&stored.record, stored.generation);
            }
            // It went just now: the change is to be planned anew.
            None => change.require(&record),
        }
        Ok(())
    }

    fn is_configured(&self, version: &str, architecture: CpuArchitecture) -> bool {
        let images = self.catalogue().os_images();
        images
            .iter()
            .any(|image| image.openshift_version == version && image.cpu_architecture == architecture)
    }
}

/// Reads the processor in a path.
pub(super) fn architecture_in_path(name: &str) -> Result<CpuArchitecture, ApiError> {
    CpuArchitecture::from_name(name).ok_or_else(|| {
        let message = "cpu_architecture in path should be one of [x86_64 aarch64 arm64 ppc64le s390x]";
        ApiError::at_gate(StatusCode::BAD_REQUEST, message)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_has_the_same_id_everywhere() {
        let id = id_of("4.14", CpuArchitecture::X86_64);
        assert_eq!(id.to_string(), "4032c5b1-749c-8384-b20a-b1b60f5c2560");
        assert_ne!(id, id_of("4.14", CpuArchitecture::Arm64));
        assert_ne!(id, id_of("4.15", CpuArchitecture::X86_64));
    }
}
