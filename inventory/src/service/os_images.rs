//! Lists, adds and removes base images.

use assisted::version::OsImageParams;
use futures_util::TryStreamExt;
use futures_util::future::BoxFuture;
use ignition::discovery::{HttpUrl, masked_url};
use isogen::Digest;

use crate::Inventory;
use crate::catalogue::{
    Catalogue, CatalogueError, CpuArchitecture, ImageType, MAX_IMAGE_VERSION_LEN, OsImage, Version,
    os_image_in_url,
};
use crate::error::Error;
use crate::infra_env::InfraEnvRecord;
use crate::os_image::{OsImageList, OsImageRecord, id_of};
use crate::store::{Change, Filter, Kind, ReadSet, Reader as _, Record as _, Stored};

/// Maximum number of base images that users can add.
const MAX_ADDED: usize = 100;

/// A base image that infra-envs can use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CatalogueOsImage {
    /// The versions, architecture and URL of the base image.
    pub image: OsImage,
    /// Whether the base image is part of the configuration, so that users cannot remove it.
    pub is_configured: bool,
}

impl Inventory {
    /// Returns the complete catalogue: the configured releases and base images, and the base images that users have
    /// added.
    ///
    /// # Errors
    ///
    /// Returns an error if the database fails.
    pub(crate) async fn present_catalogue(&self) -> Result<Catalogue, Error> {
        Ok(self.catalogue().clone().with_os_images(self.added_images().await?))
    }

    /// Returns the base images that users have added, without the configured base images.
    ///
    /// # Errors
    ///
    /// Returns an error if the database fails.
    pub fn added_images(&self) -> BoxFuture<'_, Result<Vec<OsImage>, Error>> {
        Box::pin(async move {
            let stored: Vec<Stored<OsImageRecord>> = self.records().list(Filter::all(Kind::OsImage)).await?;
            Ok(stored.into_iter().map(|stored| stored.record.0).collect())
        })
    }

    /// Returns the base image for an OpenShift version. An empty version selects the newest one.
    pub(crate) async fn os_image(
        &self,
        version: &str,
        architecture: CpuArchitecture,
    ) -> Result<OsImage, Error> {
        let version = Some(version).filter(|version| !version.is_empty());
        let catalogue = self.present_catalogue().await?;
        catalogue.os_image(version, architecture).cloned().map_err(|error| match error {
            // A catalogue from a list or from the database contains only valid versions.
            CatalogueError::InvalidVersion { .. } => Error::broken(error),
            error => Error::invalid(error.to_string()),
        })
    }

    /// Returns the base image for the version in an image URL.
    ///
    /// # Errors
    ///
    /// Returns an error if no base image has this version, or if the database fails.
    pub(crate) async fn os_image_in_url(
        &self,
        version: (&str, CpuArchitecture),
        image_type: ImageType,
    ) -> Result<OsImage, Error> {
        // Configured base images take precedence over added ones.
        if let Some(image) = os_image_in_url(self.catalogue().os_images(), version, image_type) {
            return Ok(image.clone());
        }
        let added = self.added_images().await?;
        os_image_in_url(&added, version, image_type).cloned().ok_or_else(|| {
            let (version, architecture) = version;
            Error::not_found(format!("no base image of version {version} for architecture {architecture}"))
        })
    }

    /// Returns all base images, configured and added.
    ///
    /// # Errors
    ///
    /// Returns an error if the database fails.
    pub fn os_images(&self) -> BoxFuture<'_, Result<Vec<CatalogueOsImage>, Error>> {
        Box::pin(async move {
            let configured = self.catalogue().os_images().iter().cloned();
            let configured = configured.map(|image| CatalogueOsImage { image, is_configured: true });
            let added = self.added_images().await?.into_iter();
            let added = added.map(|image| CatalogueOsImage { image, is_configured: false });
            Ok(configured.chain(added).collect())
        })
    }

    /// Adds a base image that infra-envs can use.
    ///
    /// # Errors
    ///
    /// Returns an error if a value is invalid, or if a base image for this version and architecture exists.
    pub fn add_os_image(&self, params: OsImageParams) -> BoxFuture<'_, Result<CatalogueOsImage, Error>> {
        Box::pin(self.add_checked_os_image(params))
    }

    async fn add_checked_os_image(&self, params: OsImageParams) -> Result<CatalogueOsImage, Error> {
        let OsImageParams { openshift_version, cpu_architecture, url, version, sha256 } = params;
        if Version::parse(&openshift_version).is_none() {
            let reason = format!("openshift_version {openshift_version:?} is not valid");
            return Err(Error::invalid(reason));
        }
        let url = self.added_image_url(&url)?;
        let sha256 = sha256.map(|digest| digest.parse::<Digest>()).transpose();
        let sha256 = sha256.map_err(|error| Error::invalid(format!("sha256: {error}")))?;
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
        let (new_image, record) = (&image, &record);
        self.records()
            .change(|reads: ReadSet| async move {
                let existing = reads.find::<OsImageRecord>(None, record.id()).await?;
                if existing.is_some() || self.is_configured(&new_image.openshift_version, cpu_architecture) {
                    return Err(Error::conflict(format!(
                        "an OS image for version {} and architecture {cpu_architecture} already exists",
                        new_image.openshift_version
                    )));
                }
                let mut change = Change::new();
                let added = OsImageList::extend(&reads, &mut change).await?;
                self.require_new_version(new_image, &added)?;
                change.insert(record)?;
                Ok((change, ()))
            })
            .await?;
        Ok(CatalogueOsImage { image, is_configured: false })
    }

    /// Returns the URL of a base image without surrounding white space. Returns an error if images cannot be downloaded
    /// from it.
    fn added_image_url(&self, text: &str) -> Result<String, Error> {
        let url = HttpUrl::parse("url", text).map_err(|error| Error::invalid(error.to_string()))?;
        let refusal = |reason| Error::invalid(format!("url {:?}: {reason}", masked_url(url.as_str())));
        self.settings().added_image_rule.check(url.as_str()).map_err(refusal)?;
        Ok(url.as_str().to_owned())
    }

    /// Returns an error if the maximum number of added base images is reached, or if `image` conflicts with another
    /// base image. Two images conflict if a version in a URL could mean either. They also conflict if their files would
    /// have the same name, but their URLs or checksums differ.
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

    /// Removes a base image that a user has added.
    ///
    /// # Errors
    ///
    /// Returns an error if the base image does not exist, is part of the configuration, or is used by an infra-env.
    pub fn remove_os_image<'a>(
        &'a self,
        version: &'a str,
        architecture: CpuArchitecture,
    ) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(self.remove_unused_os_image(version, architecture))
    }

    async fn remove_unused_os_image(
        &self,
        version: &str,
        architecture: CpuArchitecture,
    ) -> Result<(), Error> {
        if self.is_configured(version, architecture) {
            return Err(Error::conflict("the OS image is part of the configuration of this service"));
        }
        self.records()
            .change(|reads: ReadSet| async move {
                let stored = reads.find::<OsImageRecord>(None, id_of(version, architecture)).await?;
                let stored = stored.ok_or_else(Error::record_not_found)?;
                let mut infra_envs = self.records().stream::<InfraEnvRecord>(Filter::all(Kind::InfraEnv));
                // An infra-env that starts to use the image meanwhile changes the image's record, so this change
                // conflicts.
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

    /// Records in `change` that an infra-env starts to use a base image. The commit fails if another client removes the
    /// base image first. The commit also increases the generation of the base image's record, so a concurrent removal
    /// is planned again and then finds the infra-env.
    pub(crate) async fn start_using_os_image(
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
            // The base image has just been removed. The commit fails, and the change is planned again.
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
