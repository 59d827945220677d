//! Packs an infra-env's config, and plans the ISOs and initrds over a base image.
//!
//! [`Inputs`](crate::Inputs) are rendered to a [`RenderedConfig`], the files of one image type. They are packed into a
//! [`PackedConfig`], the archives for initrds. With a [`BaseContext`], this becomes the plan of a full ISO, minimal ISO
//! or initrd. Other modules choose the URLs and file names of images.

use ignition::discovery::HttpUrl;
use ignition::discovery::kernel_arguments::{KernelArgumentOperation, KernelArguments};
use isogen::{BaseImage, Edits, Encoding, KargsEdit, KargsOperations, LayoutStrategy, PackedArchive, Plan};

use crate::error::DiscoveryError;
use crate::form::Form;
use crate::rendered::RenderedConfig;

/// The path of the network archive in the ISO.
const NETWORK_IMAGE: &str = "assisted_installer_custom.img";
/// The path of the `nmstatectl` archive in the ISO.
const NMSTATE_IMAGE: &str = "nmstate.img";
/// The path in the config archive that Ignition reads.
const CONFIG: &str = "config.ign";

/// A base image, with the program `nmstatectl` extracted from it.
#[derive(Clone, Copy, Debug)]
pub struct BaseContext<'a> {
    /// The base image.
    pub base: &'a BaseImage,
    /// The archive with `nmstatectl` from the root file system. `None` if the live system of this version does not need
    /// it in the initrd.
    pub nmstatectl: Option<&'a PackedArchive>,
}

/// The files of a [`RenderedConfig`], packed as archives. The same archives and base image always result in the same
/// image.
#[derive(Clone, PartialEq, Eq)]
pub struct PackedConfig {
    /// The archive with the Ignition config. It contains secrets.
    pub config: PackedArchive,
    /// The network archive for the initrd. May be empty.
    pub network: PackedArchive,
    /// The changes to the kernel arguments.
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
    /// Packs the rendered files into archives.
    ///
    /// # Errors
    ///
    /// Returns an error if the files cannot be packed.
    pub fn new(rendered: &RenderedConfig) -> Result<Self, DiscoveryError> {
        /// The file mode of the config: only root may read it, because it contains secrets.
        const PRIVATE: u32 = 0o100_600;
        let config = PackedArchive::from_file(CONFIG, PRIVATE, &rendered.config, Encoding::Gzip)?;
        let (network, kernel_arguments) = (rendered.network.clone(), rendered.kernel_arguments.clone());
        Ok(Self { config, network, kernel_arguments })
    }

    /// Returns the plan of an image of the given form.
    ///
    /// # Errors
    ///
    /// Returns an error if the edits do not fit into the base image.
    pub fn plan(&self, form: &Form, context: BaseContext<'_>) -> Result<Plan, DiscoveryError> {
        match form {
            Form::Full => self.full_iso(context),
            Form::Minimal { rootfs_url } => self.minimal_iso(context, rootfs_url),
            Form::Initrd => self.network_initrd(context),
        }
    }

    /// Returns the plan of the full ISO: the base image with the config and the changed kernel arguments.
    ///
    /// # Errors
    ///
    /// Returns an error if the base image has no embed area for the archives.
    pub fn full_iso(&self, context: BaseContext<'_>) -> Result<Plan, DiscoveryError> {
        Ok(context.base.plan(&self.edits())?)
    }

    /// Returns the plan of the minimal ISO, which downloads its root file system from a URL.
    ///
    /// # Errors
    ///
    /// Returns an error if the base image has no embed area for the archives.
    pub fn minimal_iso(
        &self,
        context: BaseContext<'_>,
        rootfs_url: &HttpUrl,
    ) -> Result<Plan, DiscoveryError> {
        Ok(context.base.plan(&self.minimal_edits(context, rootfs_url))?)
    }

    /// Returns the plan of the initrd for hosts that boot over the network. It consists of the base image's initrd, the
    /// config, the network archive and `nmstatectl`.
    ///
    /// # Errors
    ///
    /// Returns an error if the base image has no initrd.
    pub fn network_initrd(&self, context: BaseContext<'_>) -> Result<Plan, DiscoveryError> {
        let mut archives = vec![self.config.clone()];
        if !self.network.is_empty() {
            archives.push(self.network.clone());
            archives.extend(context.nmstatectl.cloned());
        }
        Ok(context.base.initrd(archives)?)
    }

    /// Returns the layout strategy of the full or minimal ISO, or `None` for an initrd.
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
            Form::Full => self.edits(),
            Form::Minimal { rootfs_url } => self.minimal_edits(context, rootfs_url),
            Form::Initrd => return Ok(None),
        };
        Ok(Some(context.base.layout_strategy(&edits)?))
    }

    fn minimal_edits(&self, context: BaseContext<'_>, rootfs_url: &HttpUrl) -> Edits {
        let mut edits = self.edits().minimal(Some(rootfs_url.as_str()));
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

    pub(crate) fn kargs_operations(&self) -> KargsOperations {
        let mut operations = KargsOperations::default();
        for change in self.kernel_arguments.changes() {
            let value = change.value().to_owned();
            match change.operation() {
                KernelArgumentOperation::Replace => operations.replace.push(value),
                KernelArgumentOperation::Delete => operations.delete.push(value),
                _ => operations.append.push(value),
            }
        }
        operations
    }
}
