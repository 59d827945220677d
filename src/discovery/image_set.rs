//! All images of an infra-env on one live image.

use std::fmt;
use std::sync::{Arc, OnceLock};

use ignition::discovery::ImageType;
use ignition::network::{KeyfileCache, MacAddr, Networks, needs_nmstatectl};
use isogen::{BaseImage, Packed, Plan};
use serde::{Deserialize, Serialize};

use super::{BaseContext, DiscoveryError, Inputs, PackedConfig};

/// The form of an image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "form", rename_all = "lowercase", deny_unknown_fields)]
pub enum Form {
    /// The ISO with everything in it.
    Full {},
    /// The ISO that fetches its root file system.
    Minimal {
        /// From where.
        rootfs_url: String,
    },
    /// The initrd of a machine that boots over the network.
    Initrd {},
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Full {} => "full ISO",
            Self::Minimal { .. } => "minimal ISO",
            Self::Initrd {} => "initrd",
        })
    }
}

impl PackedConfig {
    /// The image of a form.
    ///
    /// # Errors
    ///
    /// When the base has no place for what there is.
    pub fn plan(&self, form: &Form, context: BaseContext<'_>) -> Result<Plan, DiscoveryError> {
        match form {
            Form::Full {} => self.full_iso(context),
            Form::Minimal { rootfs_url } => self.minimal_iso(context, rootfs_url),
            Form::Initrd {} => self.network_initrd(context),
        }
    }
}

/// All images of an infra-env on one live image. What they share is made once.
///
/// # Examples
///
/// ```no_run
/// use kindling::discovery::{Form, ImageSet};
/// # fn inputs() -> kindling::discovery::Inputs { unimplemented!() }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let base = isogen::BaseImage::open("rhcos-live.iso")?;
/// let images = ImageSet::new(base.into(), inputs(), &Default::default())?;
/// images.plan(&Form::Full {})?.write_file("discovery.iso")?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct ImageSet {
    base: Arc<BaseImage>,
    inputs: Inputs,
    networks: Networks,
    /// The program from the base's root file system, taken out when an image needs it.
    nmstatectl: Arc<OnceLock<Packed>>,
}

impl ImageSet {
    /// Makes the files of the machines' networks, which is most of the work.
    ///
    /// # Errors
    ///
    /// When the network of a host gives no files.
    pub fn new(base: Arc<BaseImage>, inputs: Inputs, cache: &KeyfileCache) -> Result<Self, DiscoveryError> {
        let networks = inputs.networks(cache)?;
        Ok(Self { base, inputs, networks, nmstatectl: Arc::default() })
    }

    /// The live image.
    #[must_use]
    pub fn base(&self) -> &Arc<BaseImage> {
        &self.base
    }

    /// What the images are made of.
    #[must_use]
    pub fn inputs(&self) -> &Inputs {
        &self.inputs
    }

    /// The same for one machine alone. Nothing if no machine has that address.
    ///
    /// # Errors
    ///
    /// When the network of the host gives no files.
    pub fn of_machine(&self, mac: MacAddr, cache: &KeyfileCache) -> Result<Option<Self>, DiscoveryError> {
        let Some(inputs) = self.inputs.clone().of_machine(mac) else { return Ok(None) };
        self.with(inputs, cache).map(Some)
    }

    /// The same for one of the hosts alone, by its place among the inputs.
    ///
    /// # Errors
    ///
    /// When the network of the host gives no files.
    pub fn of_host(&self, index: usize, cache: &KeyfileCache) -> Result<Option<Self>, DiscoveryError> {
        let Some(host) = self.inputs.hosts.get(index) else { return Ok(None) };
        let inputs = Inputs { hosts: vec![host.clone()], ..self.inputs.clone() };
        self.with(inputs, cache).map(Some)
    }

    fn with(&self, inputs: Inputs, cache: &KeyfileCache) -> Result<Self, DiscoveryError> {
        let networks = inputs.networks(cache)?;
        let (base, nmstatectl) = (Arc::clone(&self.base), Arc::clone(&self.nmstatectl));
        Ok(Self { base, inputs, networks, nmstatectl })
    }

    /// What goes into an image of a form.
    ///
    /// # Errors
    ///
    /// When the inputs make no valid config.
    pub fn packed(&self, form: &Form) -> Result<PackedConfig, DiscoveryError> {
        let rendered = match form {
            Form::Full {} => self.inputs.rendered(ImageType::Full, &self.networks),
            Form::Minimal { .. } => self.inputs.rendered(ImageType::Minimal, &self.networks),
            Form::Initrd {} => {
                self.inputs.rendered_for_network(self.inputs.infra_env.image_type, &self.networks)
            }
        };
        rendered?.pack()
    }

    /// The image of a form.
    ///
    /// # Errors
    ///
    /// When the inputs make no valid config, the base has no place for what there is, or a program that the early boot
    /// needs cannot be taken out of its root file system.
    pub fn plan(&self, form: &Form) -> Result<Plan, DiscoveryError> {
        let packed = self.packed(form)?;
        packed.plan(form, self.context(form, &packed)?)
    }

    /// What an image is made on.
    ///
    /// # Errors
    ///
    /// When `nmstatectl` is needed and cannot be taken out of the base.
    pub fn context(&self, form: &Form, packed: &PackedConfig) -> Result<BaseContext<'_>, DiscoveryError> {
        let is_needed =
            *form != Form::Full {} && !packed.network.is_empty() && needs_nmstatectl(&self.inputs.version);
        let nmstatectl = if is_needed { Some(self.nmstatectl()?) } else { None };
        Ok(BaseContext { base: &self.base, nmstatectl })
    }

    fn nmstatectl(&self) -> Result<&Packed, DiscoveryError> {
        if let Some(packed) = self.nmstatectl.get() {
            return Ok(packed);
        }
        let packed = self.base.root_filesystem()?.pack_nmstatectl()?;
        Ok(self.nmstatectl.get_or_init(|| packed))
    }
}
