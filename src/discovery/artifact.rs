//! From inputs and a base image to the images themselves.

use ignition::discovery::ImageType;
use ignition::discovery::kernel_arguments::Operation;
use ignition::network::Networks;
use isogen::{BaseImage, Edits, Encoding, KargsEdit, KargsOperations, Packed, Plan};

use super::{DiscoveryError, Inputs};

/// Where the early boot finds the networks of machines.
const NETWORK_IMAGE: &str = "assisted_installer_custom.img";
/// Where it finds the program that sets them up.
const NMSTATE_IMAGE: &str = "nmstate.img";
/// Where Ignition looks for its config.
const CONFIG: &str = "config.ign";

/// What an image is made on.
#[derive(Clone, Copy, Debug)]
pub struct Ground<'a> {
    /// The live image.
    pub base: &'a BaseImage,
    /// The program `nmstatectl` from its root file system, packed, where its version sets networks up with it.
    pub nmstatectl: Option<&'a Packed>,
}

impl Inputs {
    /// The full ISO: the live image with the config and the kernel arguments.
    ///
    /// # Errors
    ///
    /// When the inputs make no valid config, or the base has no place for what there is.
    pub fn full_iso(&self, ground: Ground<'_>, networks: &Networks) -> Result<Plan, DiscoveryError> {
        let edits = self.edits(ImageType::Full, networks)?;
        Ok(ground.base.plan(&edits)?)
    }

    /// The minimal ISO, which fetches its root file system from a URL.
    ///
    /// # Errors
    ///
    /// As [`full_iso`](Self::full_iso).
    pub fn minimal_iso(
        &self,
        ground: Ground<'_>,
        networks: &Networks,
        rootfs_url: &str,
    ) -> Result<Plan, DiscoveryError> {
        let mut edits = self.edits(ImageType::Minimal, networks)?.minimal(Some(rootfs_url));
        let network = self.initrd(networks)?;
        if !network.is_empty() {
            edits = edits.initrd_image(NETWORK_IMAGE, &network);
            if let Some(program) = ground.nmstatectl {
                edits = edits.initrd_image(NMSTATE_IMAGE, program);
            }
        }
        Ok(ground.base.plan(&edits)?)
    }

    /// The initrd of a machine that boots over the network: that of the live image, with the config, the networks and the
    /// program that sets them up behind it.
    ///
    /// # Errors
    ///
    /// As [`full_iso`](Self::full_iso).
    pub fn network_initrd(&self, ground: Ground<'_>, networks: &Networks) -> Result<Plan, DiscoveryError> {
        let mut archives = vec![self.packed_config(ImageType::Minimal, networks)?];
        let network = self.initrd(networks)?;
        if !network.is_empty() {
            archives.push(network);
            archives.extend(ground.nmstatectl.cloned());
        }
        Ok(ground.base.initrd(archives)?)
    }

    fn edits(&self, image_type: ImageType, networks: &Networks) -> Result<Edits, DiscoveryError> {
        let edits = Edits::new().archive(self.packed_config(image_type, networks)?);
        let operations = self.kargs_operations();
        Ok(if operations.is_empty() { edits } else { edits.kargs(KargsEdit::Current(operations)) })
    }

    fn packed_config(&self, image_type: ImageType, networks: &Networks) -> Result<Packed, DiscoveryError> {
        let config = self.config(image_type, networks)?.config.to_string();
        /// Configs hold secrets.
        const PRIVATE: u32 = 0o100_600;
        Ok(Packed::of_file(CONFIG, PRIVATE, config.as_bytes(), Encoding::Gzip)?)
    }

    fn kargs_operations(&self) -> KargsOperations {
        let mut operations = KargsOperations::default();
        for change in self.kernel_arguments.changes() {
            let value = change.value().to_owned();
            match change.operation() {
                Operation::Replace => operations.replace.push(value),
                Operation::Delete => operations.delete.push(value),
                _ => operations.append.push(value),
            }
        }
        operations
    }
}
