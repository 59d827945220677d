//! From an infra-env and a base image to the images themselves.

use bytes::Bytes;
use ignition::discovery::ImageType;
use ignition::discovery::kernel_arguments::{KernelArguments, Operation};
use ignition::network::Networks;
use isogen::{BaseImage, Edits, Encoding, KargsEdit, KargsOperations, LayoutStrategy, Packed, Plan};

use super::{DiscoveryError, Form, Inputs};

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

/// What of an infra-env goes into one kind of image, as bytes: the same whoever has rendered it.
#[derive(Clone, PartialEq, Eq)]
pub struct Rendered {
    /// The Ignition config, as JSON. It holds secrets.
    pub config: Bytes,
    /// The archive for the early boot; may be empty. Only a full ISO does without it.
    pub network: Packed,
    /// Changes of the kernel arguments.
    pub kernel_arguments: KernelArguments,
}

impl std::fmt::Debug for Rendered {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Rendered")
            .field("config_len", &self.config.len())
            .field("network_len", &self.network.len())
            .field("kernel_arguments", &self.kernel_arguments)
            .finish()
    }
}

impl Inputs {
    /// What goes into a kind of image.
    ///
    /// # Errors
    ///
    /// When the inputs make no valid config.
    pub fn rendered(&self, image_type: ImageType, networks: &Networks) -> Result<Rendered, DiscoveryError> {
        let network = match image_type {
            ImageType::Full => Packed::default(),
            _ => self.initrd(networks)?,
        };
        self.rendered_with(network, image_type, networks)
    }

    /// What goes into the initrd of a machine that boots over the network: the config of a kind of image, that of the
    /// infra-env, and always the archive for the early boot.
    ///
    /// # Errors
    ///
    /// When the inputs make no valid config.
    pub fn rendered_for_network(
        &self,
        image_type: ImageType,
        networks: &Networks,
    ) -> Result<Rendered, DiscoveryError> {
        self.rendered_with(self.initrd(networks)?, image_type, networks)
    }

    fn rendered_with(
        &self,
        network: Packed,
        image_type: ImageType,
        networks: &Networks,
    ) -> Result<Rendered, DiscoveryError> {
        let config = self.config(image_type, networks)?.config.to_json().into();
        Ok(Rendered { config, network, kernel_arguments: self.kernel_arguments.clone() })
    }
}

impl Rendered {
    /// The same, packed.
    ///
    /// # Errors
    ///
    /// When the config cannot be packed.
    pub fn pack(&self) -> Result<Packing, DiscoveryError> {
        /// Configs hold secrets.
        const PRIVATE: u32 = 0o100_600;
        let config = Packed::of_file(CONFIG, PRIVATE, &self.config, Encoding::Gzip)?;
        let (network, kernel_arguments) = (self.network.clone(), self.kernel_arguments.clone());
        Ok(Packing { config, network, kernel_arguments })
    }
}

/// What of an infra-env goes into one kind of image, as archives: on one live image, they always make the same bytes.
#[derive(Clone, PartialEq, Eq)]
pub struct Packing {
    /// The archive with the Ignition config. It holds secrets.
    pub config: Packed,
    /// The archive for the early boot; may be empty.
    pub network: Packed,
    /// Changes of the kernel arguments.
    pub kernel_arguments: KernelArguments,
}

impl std::fmt::Debug for Packing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Packing")
            .field("config_len", &self.config.len())
            .field("network_len", &self.network.len())
            .field("kernel_arguments", &self.kernel_arguments)
            .finish()
    }
}

impl Packing {
    /// The full ISO: the live image with the config and the kernel arguments.
    ///
    /// # Errors
    ///
    /// Returns an error if the base image has no embed area for the archives.
    pub fn full_iso(&self, ground: Ground<'_>) -> Result<Plan, DiscoveryError> {
        Ok(ground.base.plan(&self.edits())?)
    }

    /// The minimal ISO, which fetches its root file system from a URL.
    ///
    /// # Errors
    ///
    /// Returns an error if the base image has no embed area for the archives.
    pub fn minimal_iso(&self, ground: Ground<'_>, rootfs_url: &str) -> Result<Plan, DiscoveryError> {
        Ok(ground.base.plan(&self.minimal_edits(ground, rootfs_url))?)
    }

    /// The initrd of a machine that boots over the network: that of the live image, with the config, the networks and the
    /// program that sets them up behind it.
    ///
    /// # Errors
    ///
    /// When the base has no initrd.
    pub fn network_initrd(&self, ground: Ground<'_>) -> Result<Plan, DiscoveryError> {
        let mut archives = vec![self.config.clone()];
        if !self.network.is_empty() {
            archives.push(self.network.clone());
            archives.extend(ground.nmstatectl.cloned());
        }
        Ok(ground.base.initrd(archives)?)
    }

    /// Returns the layout strategy of the full or minimal ISO; `None` for an initrd.
    ///
    /// # Errors
    ///
    /// Returns an error if the base image has no embed area for the archives.
    pub fn layout_strategy(
        &self,
        form: &Form,
        ground: Ground<'_>,
    ) -> Result<Option<LayoutStrategy>, DiscoveryError> {
        let edits = match form {
            Form::Full {} => self.edits(),
            Form::Minimal { rootfs_url } => self.minimal_edits(ground, rootfs_url),
            Form::Initrd {} => return Ok(None),
        };
        Ok(Some(ground.base.layout_strategy(&edits)?))
    }

    fn minimal_edits(&self, ground: Ground<'_>, rootfs_url: &str) -> Edits {
        let mut edits = self.edits().minimal(Some(rootfs_url));
        if !self.network.is_empty() {
            edits = edits.initrd_image(NETWORK_IMAGE, &self.network);
            if let Some(program) = ground.nmstatectl {
                edits = edits.initrd_image(NMSTATE_IMAGE, program);
            }
        }
        edits
    }

    fn edits(&self) -> Edits {
        let edits = Edits::new().archive(self.config.clone());
        let operations = self.kargs_operations();
        if operations.is_empty() { edits } else { edits.kargs(KargsEdit::Current(operations)) }
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
