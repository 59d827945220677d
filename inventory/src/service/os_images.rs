//! Base images that clients add while the service runs, in addition to the configured ones.
//!
//! They are stored in the database, so that all replicas have them.

use futures_util::TryStreamExt;
use ignition::discovery::{HttpUrl, masked_url};
use isogen::Digest;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use utoipa::ToSchema;
use uuid::{Builder, Uuid};

use crate::Inventory;
use crate::api::request_bodies;
use crate::catalogue::{
    Catalogue, CpuArchitecture, ImageType, MAX_IMAGE_VERSION_LEN, OsImage, Version, read_digest,
};
use crate::error::Error;
use crate::infra_env::InfraEnvRecord;
use crate::service::infra_envs::NOT_FOUND;
use crate::store::{Change, Filter, Kind, ReadSet, Reader as _, Record, Stored};

/// The most base images that users can add.
const MAX_ADDED: usize = 100;

/// A base image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = os_image)]
pub struct OsImageView {
    /// OpenShift version.
    pub openshift_version: String,
    /// CPU architecture.
    #[schema(value_type = String)]
    pub cpu_architecture: CpuArchitecture,
    /// URL of the base image. The user, password and query are masked.
    pub url: String,
    /// Version of the base image.
    pub version: String,
    /// Type of the discovery images that can be made from it: full and minimal ISOs, or disconnected ISOs.
    #[serde(rename = "type")]
    pub image_type: ImageType,
    /// Whether the base image is part of the service's configuration and cannot be removed.
    pub configured: bool,
}

/// Parameters of a base image to add.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = os_image_create_params)]
pub(crate) struct OsImageParams {
    /// OpenShift version, such as `4.14`.
    #[schema(min_length = 1, max_length = 64)]
    pub openshift_version: String,
    /// CPU architecture.
    #[schema(value_type = Architecture)]
    pub cpu_architecture: CpuArchitecture,
    /// URL of the base image.
    pub url: String,
    /// Version of the base image.
    #[schema(min_length = 1, max_length = 64)]
    pub version: String,
    /// SHA-256 digest of the base image, in hexadecimal. A file with another digest is not used.
    #[serde(default, deserialize_with = "read_digest")]
    #[schema(value_type = Option<String>, pattern = "^[0-9A-Fa-f]{64}$")]
    pub sha256: Option<Digest>,
}

/// CPU architecture, with all accepted names.
#[derive(Debug, ToSchema)]
#[schema(as = os_image_cpu_architecture)]
#[expect(dead_code, reason = "the type only documents the schema; it is never constructed")]
enum Architecture {
    /// 64-bit Intel and AMD.
    #[schema(rename = "x86_64")]
    X86_64,
    /// 64-bit ARM.
    #[schema(rename = "aarch64")]
    Aarch64,
    /// 64-bit ARM.
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

/// A stored base image that a client added.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct OsImageRecord(OsImage);

impl Record for OsImageRecord {
    const KIND: Kind = Kind::OsImage;

    fn id(&self) -> Uuid {
        id_of(&self.0.openshift_version, self.0.cpu_architecture)
    }
}

/// The list of added base images. Each addition writes it, so that two additions cannot both rest on a list without the
/// other image.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct OsImageList {}

impl Record for OsImageList {
    const KIND: Kind = Kind::OsImageList;

    fn id(&self) -> Uuid {
        Uuid::nil()
    }
}

impl OsImageList {
    /// Reads the added base images, and records in `change` that one is added.
    async fn extend(reads: &ReadSet, change: &mut Change) -> Result<Vec<OsImage>, Error> {
        // The list is read before its images: an image that is added in the meantime changes the list.
        let list = Self {};
        match reads.find::<Self>(None, list.id()).await? {
            Some(stored) => {
                change.replace(&list, stored.generation)?;
            }
            None => change.insert(&list)?,
        }
        let added: Vec<Stored<OsImageRecord>> = reads.list(Filter::all(Kind::OsImage)).await?;
        Ok(added.into_iter().map(|stored| stored.record.0).collect())
    }
}

/// Returns the id, made from version and architecture. So each pair has at most one base image.
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
    let url = masked_url(&url);
    OsImageView { openshift_version, cpu_architecture, url, version, image_type, configured }
}

impl Inventory {
    /// Returns the catalogue: the configured releases and base images, and the added base images.
    ///
    /// # Errors
    ///
    /// Returns an error if the database fails.
    pub(crate) async fn present_catalogue(&self) -> Result<Catalogue, Error> {
        Ok(self.catalogue().clone().with_os_images(self.added_images().await?))
    }

    /// Returns the base images that users added, without those of the configuration.
    ///
    /// # Errors
    ///
    /// Returns an error if the database fails.
    pub async fn added_images(&self) -> Result<Vec<OsImage>, Error> {
        let stored: Vec<Stored<OsImageRecord>> = self.records().list(Filter::all(Kind::OsImage)).await?;
        Ok(stored.into_iter().map(|stored| stored.record.0).collect())
    }

    /// Returns all base images.
    ///
    /// # Errors
    ///
    /// Returns an error if the database fails.
    pub async fn os_images(&self) -> Result<Vec<OsImageView>, Error> {
        let configured = self.catalogue().os_images().iter().map(|image| view(image.clone(), true));
        let added = self.added_images().await?.into_iter().map(|image| view(image, false));
        Ok(configured.chain(added).collect())
    }

    /// Adds a base image.
    ///
    /// # Errors
    ///
    /// Returns an error if a value is invalid, or if a base image for this version and architecture exists.
    pub(crate) async fn add_os_image(&self, params: OsImageParams) -> Result<OsImageView, Error> {
        let OsImageParams { openshift_version, cpu_architecture, url, version, sha256 } = params;
        if Version::parse(&openshift_version).is_none() {
            let reason = format!("openshift_version {openshift_version:?} is not valid");
            return Err(Error::invalid(reason));
        }
        let url = self.added_image_url(&url)?;
        let image_type = ImageType::Full;
        let image = OsImage { openshift_version, cpu_architecture, url, version, image_type, sha256 };
        if !image.has_safe_version() {
            return Err(Error::invalid(format!(
                "version {:?} is not valid: it is a part of a file name, of at most {MAX_IMAGE_VERSION_LEN} letters, \
                 digits and . _ - + ~",
                image.version
            )));
        }
        let record = OsImageRecord(image.clone());
        let (wanted, record) = (&image, &record);
        self.records()
            .change(|reads: ReadSet| async move {
                let there = reads.find::<OsImageRecord>(None, record.id()).await?;
                if there.is_some() || self.is_configured(&wanted.openshift_version, cpu_architecture) {
                    return Err(Error::conflict(format!(
                        "an OS image for version {} and architecture {cpu_architecture} already exists",
                        wanted.openshift_version
                    )));
                }
                let mut change = Change::new();
                let added = OsImageList::extend(&reads, &mut change).await?;
                self.require_new_version(wanted, &added)?;
                change.insert(record)?;
                Ok((change, ()))
            })
            .await?;
        Ok(view(image, false))
    }

    /// Returns the URL of a base image to add without the white space around it, if an image can be downloaded from it.
    fn added_image_url(&self, text: &str) -> Result<String, Error> {
        let url = HttpUrl::parse("url", text).map_err(|error| Error::invalid(error.to_string()))?;
        let refusal = |reason| Error::invalid(format!("url {:?}: {reason}", masked_url(url.as_str())));
        self.settings().added_image_rule.check(url.as_str()).map_err(refusal)?;
        Ok(url.as_str().to_owned())
    }

    /// Refuses a base image if there is another one of its version and architecture, from another URL: their files
    /// have the same name.
    fn require_new_version(&self, image: &OsImage, added: &[OsImage]) -> Result<(), Error> {
        if added.len() >= MAX_ADDED {
            return Err(Error::conflict(format!("at most {MAX_ADDED} OS images can be added")));
        }
        let is_confused = |it: &&OsImage| {
            it.cpu_architecture == image.cpu_architecture
                && (it.version == image.openshift_version || it.openshift_version == image.version)
        };
        if let Some(other) = self.catalogue().os_images().iter().chain(added).find(is_confused) {
            return Err(Error::conflict(format!(
                "the OS image for version {} has the version {}; URLs could mean either image",
                other.openshift_version, other.version
            )));
        }
        let is_other = |it: &&OsImage| {
            it.version == image.version
                && it.cpu_architecture == image.cpu_architecture
                && it.image_type == image.image_type
                && (&it.url, it.sha256) != (&image.url, image.sha256)
        };
        match self.catalogue().os_images().iter().chain(added).find(is_other) {
            Some(other) => Err(Error::conflict(format!(
                "the OS image for version {} and architecture {} has the version {} too, but another url or sha256",
                other.openshift_version, other.cpu_architecture, other.version
            ))),
            None => Ok(()),
        }
    }

    /// Removes a base image that was added.
    ///
    /// # Errors
    ///
    /// Returns an error if the base image does not exist, is configured, or is used by an infra-env.
    pub async fn remove_os_image(&self, version: &str, architecture: CpuArchitecture) -> Result<(), Error> {
        if self.is_configured(version, architecture) {
            return Err(Error::conflict("the OS image is part of the configuration of this service"));
        }
        self.records()
            .change(|reads: ReadSet| async move {
                let found = reads.find::<OsImageRecord>(None, id_of(version, architecture)).await?;
                let stored = found.ok_or_else(|| Error::not_found(NOT_FOUND))?;
                let mut infra_envs = self.records().stream::<InfraEnvRecord>(Filter::all(Kind::InfraEnv));
                // An infra-env that begins to use the image in the meantime changes the image's record.
                while let Some(Stored { record, .. }) = infra_envs.try_next().await? {
                    if record.cpu_architecture == architecture && record.image.os_image == version {
                        return Err(Error::conflict(format!("infra-env {} uses the OS image", record.id)));
                    }
                }
                let mut change = Change::new();
                change.remove(&stored);
                Ok((change, ()))
            })
            .await
    }

    /// Records in `change` that an infra-env begins to use a base image. The commit fails if another client removes the
    /// base image first. It also changes the record's generation, so a concurrent removal is attempted again and then
    /// finds the infra-env.
    pub(crate) async fn take_up_os_image(
        &self,
        reads: &ReadSet,
        change: &mut Change,
        image: &OsImage,
    ) -> Result<(), Error> {
        if self.is_configured(&image.openshift_version, image.cpu_architecture) {
            return Ok(());
        }
        let record = OsImageRecord(image.clone());
        match reads.find::<OsImageRecord>(None, record.id()).await? {
            Some(stored) => {
                change.replace(&stored.record, stored.generation)?;
            }
            // The base image was just removed: the commit fails, and the change is planned again.
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

/// Parses the CPU architecture in a path.
pub(crate) fn architecture_in_path(name: &str) -> Result<CpuArchitecture, Error> {
    CpuArchitecture::from_name(name).ok_or_else(|| {
        let message = "cpu_architecture in path should be one of [x86_64 aarch64 arm64 ppc64le s390x]";
        Error::malformed(message)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn image_id_is_the_same_on_all_replicas() {
        let id = id_of("4.14", CpuArchitecture::X86_64);
        assert_eq!(id.to_string(), "4032c5b1-749c-8384-b20a-b1b60f5c2560");
        assert_ne!(id, id_of("4.14", CpuArchitecture::Arm64));
        assert_ne!(id, id_of("4.15", CpuArchitecture::X86_64));
    }
}
