//! The images of an infra-env on one base image.

use std::sync::{Arc, OnceLock};

use ignition::discovery::DiscoveryImage;
use ignition::network::{HostNetworkFiles, KeyfileCache, MacAddr, needs_nmstatectl};
use isogen::{BaseImage, PackedArchive, Plan};

use crate::error::DiscoveryError;
use crate::form::Form;
use crate::inputs::Inputs;
use crate::packed::{BaseContext, PackedConfig};

/// The images of an infra-env on one base image. Parts that several images share are computed once.
///
/// # Examples
///
/// ```no_run
/// use discovery::{Form, ImageSet};
/// # fn inputs() -> discovery::Inputs { unimplemented!() }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let base = isogen::BaseImage::open("rhcos-live.iso")?;
/// let images = ImageSet::new(base.into(), inputs(), &Default::default())?;
/// images.plan(&Form::Full)?.write_file("discovery.iso")?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct ImageSet {
    base: Arc<BaseImage>,
    inputs: Inputs,
    networks: HostNetworkFiles,
    /// The program `nmstatectl` from the base image, extracted when an image first needs it.
    nmstatectl: Arc<OnceLock<PackedArchive>>,
}

impl ImageSet {
    /// Creates the images. Generates the network files of the hosts, which takes most of the time.
    ///
    /// # Errors
    ///
    /// Returns an error if the network of a host cannot be converted to files.
    pub fn new(base: Arc<BaseImage>, inputs: Inputs, cache: &KeyfileCache) -> Result<Self, DiscoveryError> {
        let networks = inputs.networks(cache)?;
        Ok(Self { base, inputs, networks, nmstatectl: Arc::default() })
    }

    /// Returns the base image.
    #[must_use]
    pub fn base(&self) -> &Arc<BaseImage> {
        &self.base
    }

    /// Returns the inputs of the images.
    #[must_use]
    pub fn inputs(&self) -> &Inputs {
        &self.inputs
    }

    /// Returns the images for a single host, selected by a MAC address. Returns `None` if no host has the address.
    ///
    /// # Errors
    ///
    /// Returns an error if the network of the host cannot be converted to files.
    pub fn of_machine(&self, mac: MacAddr, cache: &KeyfileCache) -> Result<Option<Self>, DiscoveryError> {
        let Some(inputs) = self.inputs.clone().of_machine(mac) else { return Ok(None) };
        self.with_inputs(inputs, cache).map(Some)
    }

    /// Returns the images for a single host, selected by its index in the inputs. Returns `None` if the index is out of
    /// range.
    ///
    /// # Errors
    ///
    /// Returns an error if the network of the host cannot be converted to files.
    pub fn of_host(&self, index: usize, cache: &KeyfileCache) -> Result<Option<Self>, DiscoveryError> {
        let Some(host) = self.inputs.hosts.get(index) else { return Ok(None) };
        let inputs = Inputs { hosts: vec![host.clone()], ..self.inputs.clone() };
        self.with_inputs(inputs, cache).map(Some)
    }

    fn with_inputs(&self, inputs: Inputs, cache: &KeyfileCache) -> Result<Self, DiscoveryError> {
        let networks = inputs.networks(cache)?;
        let (base, nmstatectl) = (Arc::clone(&self.base), Arc::clone(&self.nmstatectl));
        Ok(Self { base, inputs, networks, nmstatectl })
    }

    /// Returns the packed Ignition config for an image of the given form.
    ///
    /// # Errors
    ///
    /// Returns an error if the inputs do not result in a valid config.
    pub fn packed(&self, form: &Form) -> Result<PackedConfig, DiscoveryError> {
        let rendered = match form {
            Form::Full => self.inputs.rendered(DiscoveryImage::Full, &self.networks),
            Form::Minimal { .. } => self.inputs.rendered(DiscoveryImage::Minimal, &self.networks),
            Form::Initrd => {
                self.inputs.rendered_for_network(self.inputs.infra_env.image_type, &self.networks)
            }
        };
        PackedConfig::new(&rendered?)
    }

    /// Returns the plan of an image of the given form.
    ///
    /// # Errors
    ///
    /// Returns an error if the inputs do not result in a valid config, or if the edits do not fit into the base image.
    /// Returns an error if `nmstatectl` is needed and cannot be extracted from the root file system.
    pub fn plan(&self, form: &Form) -> Result<Plan, DiscoveryError> {
        let packed = self.packed(form)?;
        packed.plan(form, self.context(form, &packed)?)
    }

    /// Returns the base image, together with `nmstatectl` if the image needs that program.
    ///
    /// # Errors
    ///
    /// Returns an error if `nmstatectl` is needed and cannot be extracted from the base image.
    pub fn context(&self, form: &Form, packed: &PackedConfig) -> Result<BaseContext<'_>, DiscoveryError> {
        let version = self.inputs.version.as_str();
        let is_needed = *form != Form::Full && !packed.network.is_empty() && needs_nmstatectl(version);
        let nmstatectl = if is_needed { Some(self.nmstatectl()?) } else { None };
        Ok(BaseContext { base: &self.base, nmstatectl })
    }

    fn nmstatectl(&self) -> Result<&PackedArchive, DiscoveryError> {
        if let Some(packed) = self.nmstatectl.get() {
            return Ok(packed);
        }
        let packed = self.base.root_filesystem()?.pack_nmstatectl()?;
        Ok(self.nmstatectl.get_or_init(|| packed))
    }
}
