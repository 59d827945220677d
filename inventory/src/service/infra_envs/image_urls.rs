//! The URLs of an infra-env's image and files, and the revision of its image.

use discovery::{Form, ImageRevision, PackedConfig};
use futures_util::future::BoxFuture;

use super::check::config_error;
use super::download::{FileName, IpxeScript};
use crate::catalogue::ImageType;
use crate::error::{Error, ErrorKind};
use crate::infra_env::revisions::ImageRevisions;
use crate::infra_env::{InfraEnvRecord, urls};
use crate::{Inventory, Secret, in_background};

/// The URLs of an infra-env's image and files.
///
/// The URLs of the ISO and the initrd contain a revision, which changes if and only if the bytes of the image change.
/// The iPXE script contains the URL of the initrd without a revision, because users save scripts, and a saved script
/// must boot the current image.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ImageUrls {
    /// Revision of the ISO, which is part of its URL.
    pub revision: ImageRevision,
    /// URL of the full or minimal ISO, as selected by the infra-env.
    pub iso: Secret,
    /// URL of the kernel for network boot.
    pub kernel: String,
    /// URL of the root file system for network boot.
    pub rootfs: String,
    /// URL of the initrd for network boot.
    pub initrd: Secret,
    /// URL of the Ignition config.
    pub discovery_ignition: Secret,
    /// URL of the infra-env's events, with its token.
    pub events: Secret,
    /// URL of the tar archive with the network files of all hosts.
    pub static_network: Secret,
    ipxe_script: Secret,
    boot_order_script: Secret,
}

impl ImageUrls {
    /// Returns the URL of an iPXE script.
    #[must_use]
    pub fn ipxe_script(&self, kind: IpxeScript) -> &Secret {
        match kind {
            IpxeScript::DiscoveryImageAlways => &self.ipxe_script,
            IpxeScript::BootOrderControl => &self.boot_order_script,
        }
    }
}

impl Inventory {
    /// Returns the URLs of an infra-env's image and files. Renders the image if its revision is not cached.
    ///
    /// # Errors
    ///
    /// Returns an error if the image cannot be rendered, or if its base image does not exist.
    pub fn image_urls<'a>(&'a self, record: &'a InfraEnvRecord) -> BoxFuture<'a, Result<ImageUrls, Error>> {
        Box::pin(async move {
            let (revision, iso) = self.iso_url(record).await?;
            let initrd = self.revisions(record).await?.initrd;
            let boot = self.network_boot(record)?;
            let files = boot.files();
            let settings = self.settings();
            let file = |file: FileName, script| urls::file(record, file.as_str(), script, settings);
            let boot_order = Some(IpxeScript::BootOrderControl.as_str());
            Ok(ImageUrls {
                revision,
                iso: Secret::new(iso),
                kernel: files.kernel,
                rootfs: files.rootfs,
                initrd: Secret::new(boot.initrd_url_at_revision(initrd)),
                discovery_ignition: Secret::new(file(FileName::DiscoveryIgnition, None)),
                events: Secret::new(urls::events(record, settings)),
                static_network: Secret::new(file(FileName::StaticNetworkConfig, None)),
                ipxe_script: Secret::new(file(FileName::IpxeScript, None)),
                boot_order_script: Secret::new(file(FileName::IpxeScript, boot_order)),
            })
        })
    }

    /// Returns the revision and the URL of an infra-env's ISO.
    pub(crate) async fn iso_url(&self, record: &InfraEnvRecord) -> Result<(ImageRevision, String), Error> {
        let unimplemented = || Error::unimplemented("disconnected images are not made by this service yet");
        let revision = self.revisions(record).await?.iso.ok_or_else(unimplemented)?;
        Ok((revision, urls::image(record, Some(revision), self.settings())))
    }

    /// Returns the URL of an infra-env's ISO for API responses. If the image cannot be rendered, the URL contains no
    /// revision. The infra-env must stay visible, so that its user can correct or delete it.
    pub(crate) async fn shown_iso_url(&self, record: &InfraEnvRecord) -> Result<String, Error> {
        match self.iso_url(record).await {
            Ok((_, url)) => Ok(url),
            Err(error) if error.kind() == ErrorKind::Unavailable => Err(error),
            Err(error) => {
                if error.kind() != ErrorKind::Unimplemented {
                    tracing::debug!(infra_env = %record.id, %error, "image URL has no revision");
                }
                Ok(urls::image(record, None, self.settings()))
            }
        }
    }

    async fn revisions(&self, record: &InfraEnvRecord) -> Result<ImageRevisions, Error> {
        if let Some(revisions) = self.image_revisions().find(record) {
            return Ok(revisions);
        }
        let of_url = (record.image.os_image.as_str(), record.cpu_architecture);
        let base = self.os_image_in_url(of_url, ImageType::Full).await?;
        let iso = match record.image.image_type {
            ImageType::Full => Some(Form::Full),
            ImageType::Minimal => {
                Some(Form::Minimal { rootfs_url: base.rootfs_url(&self.settings().image_service_base_url)? })
            }
            ImageType::Disconnected => None,
        };
        let (inventory, source) = (self.clone(), record.clone());
        let revisions = in_background(move |cancel| {
            // The config for network boot contains all parts of the ISO, too.
            let rendered = inventory.render_now(&source, (None, None), cancel)?;
            let packed = PackedConfig::new(&rendered).map_err(config_error)?;
            let base = base.revision_entry();
            let iso = iso.map(|form| packed.revision(&form, &base));
            Ok::<_, Error>(ImageRevisions { iso, initrd: packed.revision(&Form::Initrd, &base) })
        });
        let revisions = revisions.await?;
        self.image_revisions().add(record, revisions);
        Ok(revisions)
    }
}
