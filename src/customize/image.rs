//! Customising an image or an initrd that is at hand.

use isogen::initrd::{ArchiveError, IGNITION_CONFIG};
use isogen::{Archive, BaseImage, Edits, Encoding, Features, KargsEdit, KargsOperations};

use super::{Capabilities, Customized};

/// What a live image can be asked to do.
#[must_use]
pub fn capabilities(image: &BaseImage) -> Capabilities {
    Capabilities { live_kargs: image.kargs().is_some(), ..initrd_capabilities(image.features()) }
}

/// What a live initrd with these features can be asked to do.
#[must_use]
pub fn initrd_capabilities(features: &Features) -> Capabilities {
    let directives = features.installer_config_directives.iter();
    Capabilities {
        installer_config: features.installer_config,
        installer_directives: directives.filter(|(_, known)| **known).map(|(name, _)| name.clone()).collect(),
        live_initrd_network: features.live_initrd_network,
        live_kargs: false,
    }
}

impl Customized {
    /// The members that the customisation adds to the live initrd.
    #[must_use]
    pub fn to_archive(&self) -> Archive {
        let mut archive = Archive::new();
        if let Some(config) = &self.live_config {
            archive.insert(IGNITION_CONFIG, config.clone());
        }
        for (name, contents) in &self.network_files {
            archive.insert_network(name, contents.clone());
        }
        archive
    }

    /// The edits that customise a live image. They replace all that its Ignition area holds; its kernel arguments are
    /// made from the default ones, or left alone where there are no operations.
    ///
    /// # Errors
    ///
    /// Fails where the archive cannot be packed.
    pub fn to_edits(&self, live_kargs: KargsOperations) -> Result<Edits, ArchiveError> {
        let edits = Edits::new().archive(self.to_archive().pack(Encoding::Xz)?);
        Ok(if live_kargs.is_empty() { edits } else { edits.kargs(KargsEdit::Default(live_kargs)) })
    }
}
