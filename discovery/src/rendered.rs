//! The rendered files of an infra-env for one image type.

use bytes::Bytes;
use ignition::discovery::DiscoveryImage;
use ignition::discovery::kernel_arguments::KernelArguments;
use ignition::network::HostNetworkFiles;
use isogen::PackedArchive;

use crate::error::DiscoveryError;
use crate::inputs::Inputs;

/// The rendered files of an infra-env for one image type. They are the same whether this service or an external
/// inventory renders them.
#[derive(Clone, PartialEq, Eq)]
pub struct RenderedConfig {
    /// The Ignition config, as JSON. It contains secrets.
    pub config: Bytes,
    /// The network archive for the initrd. May be empty, and always is for a full ISO.
    pub network: PackedArchive,
    /// The changes to the kernel arguments.
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
    /// Renders the files for an image type.
    ///
    /// # Errors
    ///
    /// Returns an error if the inputs do not result in a valid config.
    pub fn rendered(
        &self,
        image_type: DiscoveryImage,
        networks: &HostNetworkFiles,
    ) -> Result<RenderedConfig, DiscoveryError> {
        let network = match image_type {
            DiscoveryImage::Full => PackedArchive::default(),
            _ => self.initrd(networks)?,
        };
        self.rendered_with(network, image_type, networks)
    }

    /// Renders the files for the initrd of a host that boots over the network: the Ignition config of `image_type`, and
    /// always the network archive.
    ///
    /// # Errors
    ///
    /// Returns an error if the inputs do not result in a valid config.
    pub fn rendered_for_network(
        &self,
        image_type: DiscoveryImage,
        networks: &HostNetworkFiles,
    ) -> Result<RenderedConfig, DiscoveryError> {
        self.rendered_with(self.initrd(networks)?, image_type, networks)
    }

    fn rendered_with(
        &self,
        network: PackedArchive,
        image_type: DiscoveryImage,
        networks: &HostNetworkFiles,
    ) -> Result<RenderedConfig, DiscoveryError> {
        let config = self.config(image_type, networks)?.config.to_json()?.into();
        Ok(RenderedConfig { config, network, kernel_arguments: self.kernel_arguments.clone() })
    }
}
