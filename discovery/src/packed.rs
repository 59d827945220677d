//! Builds the discovery ISOs and the initrd of an infra-env: from its inputs to a plan over a base image.
//!
//! [`Inputs`](crate::Inputs) become a [`RenderedConfig`] (the files of one image type), which is packed into a
//! [`PackedConfig`] (archives for initrds). Together with a [`BaseContext`], it yields the plan of a full ISO, minimal
//! ISO or initrd. This module does not choose the URL or file name of an image.

use ignition::discovery::HttpUrl;
use ignition::discovery::kernel_arguments::{KernelArgumentOperation, KernelArguments};
use isogen::{BaseImage, Edits, Encoding, KargsEdit, KargsOperations, LayoutStrategy, PackedArchive, Plan};

use crate::error::DiscoveryError;
use crate::form::Form;
use crate::rendered::RenderedConfig;

/// The path of the image with the network archive.
const NETWORK_IMAGE: &str = "assisted_installer_custom.img";
/// The path of the image with `nmstatectl`.
const NMSTATE_IMAGE: &str = "nmstate.img";
/// The path at which Ignition reads its config.
const CONFIG: &str = "config.ign";

/// The base image of a discovery image, with what was extracted from it.
#[derive(Clone, Copy, Debug)]
pub struct BaseContext<'a> {
    /// The base image.
    pub base: &'a BaseImage,
    /// The program `nmstatectl` from its root file system, packed, if the initrd of its version needs it.
    pub nmstatectl: Option<&'a PackedArchive>,
}

/// A [`RenderedConfig`] as archives. With the same base image, it always results in the same bytes.
#[derive(Clone, PartialEq, Eq)]
pub struct PackedConfig {
    /// The archive with the Ignition config. It holds secrets.
    pub config: PackedArchive,
    /// The network archive for the initrd; may be empty.
    pub network: PackedArchive,
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
    /// Packs a config into archives.
    ///
    /// # Errors
    ///
    /// Returns an error if the config cannot be packed.
    pub fn new(rendered: &RenderedConfig) -> Result<Self, DiscoveryError> {
        /// Only root may read the config, because it contains secrets.
        const PRIVATE: u32 = 0o100_600;
        let config = PackedArchive::from_file(CONFIG, PRIVATE, &rendered.config, Encoding::Gzip)?;
        let (network, kernel_arguments) = (rendered.network.clone(), rendered.kernel_arguments.clone());
        Ok(Self { config, network, kernel_arguments })
    }

    /// Returns the plan of an image of a form.
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

    /// Returns the plan of the full ISO: the base image with the config and the kernel arguments.
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

    /// Returns the plan of the initrd of a host that boots over the network: the base image's initrd, followed by the
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
