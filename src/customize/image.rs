//! The features of an open image or initrd, and the edits that customise it.

use isogen::initrd::{ArchiveError, IGNITION_CONFIG};
use isogen::{Archive, BaseImage, Edits, Encoding, Features, KargsEdit, KargsOperations};

use super::{Capabilities, Customized};

/// Returns the features of an ISO image.
#[must_use]
pub fn capabilities(image: &BaseImage) -> Capabilities {
    Capabilities { live_kargs: image.kargs().is_some(), ..initrd_capabilities(image.features()) }
}

/// Returns the features of a live initrd.
#[must_use]
pub fn initrd_capabilities(features: &Features) -> Capabilities {
    let directives = features.installer_config_directives.iter();
    Capabilities {
        installer_config: features.installer_config,
        installer_directives: directives
            .filter(|(_, is_supported)| **is_supported)
            .map(|(name, _)| name.clone())
            .collect(),
        live_initrd_network: features.live_initrd_network,
        live_kargs: false,
    }
}

impl Customized {
    /// Returns the members that the customisation adds to the live initrd.
    #[must_use]
    pub fn to_archive(&self) -> Archive {
        let mut archive = Archive::new();
        if let Some(config) = &self.live_config {
            archive.insert(IGNITION_CONFIG, config.clone());
        }
        for (name, contents) in &self.network_files {
            archive.insert_network_file(name, contents.clone());
        }
        archive
    }

    /// Returns the edits that customise an ISO image. They replace the content of the Ignition area. If `live_kargs` is
    /// not empty, the operations are applied to the default kernel arguments. Otherwise, the kernel arguments remain
    /// unchanged.
    ///
    /// # Errors
    ///
    /// Returns an error if the archive cannot be packed.
    pub fn to_edits(&self, live_kargs: KargsOperations) -> Result<Edits, ArchiveError> {
        let edits = Edits::new().archive(self.to_archive().pack(Encoding::Xz)?);
        Ok(if live_kargs.is_empty() { edits } else { edits.kargs(KargsEdit::Default(live_kargs)) })
    }
}
