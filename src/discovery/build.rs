//! Builds the discovery ISOs and the initrd of an infra-env: from its inputs to a plan over a base image.
//!
//! [`Inputs`] become a [`RenderedConfig`] (the files of one kind of image), which is packed into a [`PackedConfig`]
//! (archives for initrds). That and a [`BaseContext`] give the plan of a full ISO, minimal ISO or initrd. Which URL or
//! file an image has is not decided here.

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

/// The base image of a discovery image, with what was extracted from it.
#[derive(Clone, Copy, Debug)]
pub struct BaseContext<'a> {
    /// The base image.
    pub base: &'a BaseImage,
    /// The program `nmstatectl` from its root file system, packed, if the initrd of its version needs it.
    pub nmstatectl: Option<&'a Packed>,
}

/// The config of an infra-env for one kind of image. It is the same whether this service or another one rendered it.
#[derive(Clone, PartialEq, Eq)]
pub struct RenderedConfig {
    /// The Ignition config, as JSON. It holds secrets.
    pub config: Bytes,
    /// The archive for the early boot; may be empty. Only a full ISO does without it.
    pub network: Packed,
    /// Changes of the kernel arguments.
    pub kernel_arguments: KernelArguments,
}

impl std::fmt::Debug for RenderedConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RenderedConfig")
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
    pub fn rendered(
        &self,
        image_type: ImageType,
        networks: &Networks,
    ) -> Result<RenderedConfig, DiscoveryError> {
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
    ) -> Result<RenderedConfig, DiscoveryError> {
        self.rendered_with(self.initrd(networks)?, image_type, networks)
    }

    fn rendered_with(
        &self,
        network: Packed,
        image_type: ImageType,
        networks: &Networks,
    ) -> Result<RenderedConfig, DiscoveryError> {
        let config = self.config(image_type, networks)?.config.to_json().into();
        Ok(RenderedConfig { config, network, kernel_arguments: self.kernel_arguments.clone() })
    }
}

impl RenderedConfig {
    /// The same, packed.
    ///
    /// # Errors
    ///
    /// When the config cannot be packed.
    pub fn pack(&self) -> Result<PackedConfig, DiscoveryError> {
        /// Configs hold secrets.
        const PRIVATE: u32 = 0o100_600;
        let config = Packed::of_file(CONFIG, PRIVATE, &self.config, Encoding::Gzip)?;
        let (network, kernel_arguments) = (self.network.clone(), self.kernel_arguments.clone());
        Ok(PackedConfig { config, network, kernel_arguments })
    }
}

/// A [`RenderedConfig`] as archives. With the same base image, they always make the same bytes.
#[derive(Clone, PartialEq, Eq)]
pub struct PackedConfig {
    /// The archive with the Ignition config. It holds secrets.
    pub config: Packed,
    /// The archive for the early boot; may be empty.
    pub network: Packed,
    /// Changes of the kernel arguments.
    pub kernel_arguments: KernelArguments,
}

impl std::fmt::Debug for PackedConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PackedConfig")
            .field("config_len", &self.config.len())
            .field("network_len", &self.network.len())
            .field("kernel_arguments", &self.kernel_arguments)
            .finish()
    }
}

impl PackedConfig {
    /// The full ISO: the live image with the config and the kernel arguments.
    ///
    /// # Errors
    ///
    /// Returns an error if the base image has no embed area for the archives.
    pub fn full_iso(&self, context: BaseContext<'_>) -> Result<Plan, DiscoveryError> {
        Ok(context.base.plan(&self.edits())?)
    }

    /// The minimal ISO, which fetches its root file system from a URL.
    ///
    /// # Errors
    ///
    /// Returns an error if the base image has no embed area for the archives.
    pub fn minimal_iso(&self, context: BaseContext<'_>, rootfs_url: &str) -> Result<Plan, DiscoveryError> {
        Ok(context.base.plan(&self.minimal_edits(context, rootfs_url))?)
    }

    /// The initrd of a machine that boots over the network: that of the live image, with the config, the networks and the
    /// program that sets them up behind it.
    ///
    /// # Errors
    ///
    /// When the base has no initrd.
    pub fn network_initrd(&self, context: BaseContext<'_>) -> Result<Plan, DiscoveryError> {
        let mut archives = vec![self.config.clone()];
        if !self.network.is_empty() {
            archives.push(self.network.clone());
            archives.extend(context.nmstatectl.cloned());
        }
        Ok(context.base.initrd(archives)?)
    }

    /// Returns the layout strategy of the full or minimal ISO; `None` for an initrd.
    ///
    /// # Errors
    ///
    /// Returns an error if the base image has no embed area for the archives.
    pub fn layout_strategy(
        &self,
        form: &Form,
        context: BaseContext<'_>,
    ) -> Result<Option<LayoutStrategy>, DiscoveryError> {
        let edits = match form {
            Form::Full {} => self.edits(),
            Form::Minimal { rootfs_url } => self.minimal_edits(context, rootfs_url),
            Form::Initrd {} => return Ok(None),
        };
        Ok(Some(context.base.layout_strategy(&edits)?))
    }

    fn minimal_edits(&self, context: BaseContext<'_>, rootfs_url: &str) -> Edits {
        let mut edits = self.edits().minimal(Some(rootfs_url));
        if !self.network.is_empty() {
            edits = edits.initrd_image(NETWORK_IMAGE, &self.network);
            if let Some(program) = context.nmstatectl {
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
