//! Generates the content that `iso customize` and `pxe customize` add to an image, from options and input files.
//!
//! A [`Customization`] contains the options. [`Customization::build`] returns a [`Customized`]: an Ignition config for
//! the live system and a set of `NetworkManager` keyfiles. This module opens neither files nor images. The caller packs
//! the result into the image's embed area and edits the live kernel arguments.
//!
//! The generated files have the same paths, modes, units, numbers and order as the files of `coreos-installer`. The
//! images of both programs therefore boot in the same way.

mod assembly;
pub mod capability;
pub mod console;
mod error;
mod from_text;
mod hook;
mod image;
mod input;
pub mod installer_config;
#[cfg(test)]
mod oracle;

use std::collections::BTreeMap;
use std::fmt;

pub use capability::{Capabilities, RequiredFeatures, UnsupportedFeature};
pub use console::Console;
pub use error::CustomizeError;
pub use image::{capabilities, initrd_capabilities};
pub use input::InputFile;

use assembly::Assembly;

/// The options of a customisation. Lists keep the order of the command line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Customization {
    /// Ignition configs for the installed system.
    pub dest_ignition: Vec<InputFile>,
    /// Path of the disk to install to. The installer overwrites it without confirmation.
    pub dest_device: Option<String>,
    /// Consoles of the installed system.
    pub dest_console: Vec<Console>,
    /// Kernel arguments to append for the installed system.
    pub dest_karg_append: Vec<String>,
    /// Kernel arguments to delete for the installed system.
    pub dest_karg_delete: Vec<String>,
    /// `NetworkManager` keyfiles for the live system, and for the installed system if the installer runs.
    pub network_keyfiles: Vec<InputFile>,
    /// nmstate documents, in YAML or JSON, to convert to keyfiles.
    pub network_nmstate: Vec<InputFile>,
    /// PEM bundles of certificate authorities that Ignition trusts.
    pub ignition_ca: Vec<InputFile>,
    /// Scripts to run before the installer.
    pub pre_install: Vec<InputFile>,
    /// Scripts to run after the installer.
    pub post_install: Vec<InputFile>,
    /// Config files for the installer.
    pub installer_config: Vec<InputFile>,
    /// Ignition configs for the live system.
    pub live_ignition: Vec<InputFile>,
}

/// The content that a customisation adds to an image.
#[derive(Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Customized {
    /// The Ignition config of the live system, as JSON. `None` if it would be empty.
    pub live_config: Option<Vec<u8>>,
    /// The keyfiles for the live system. The keys are file names without a directory.
    pub network_files: BTreeMap<String, Vec<u8>>,
    /// Messages for the user. The caller prints them to stderr in this order.
    pub notices: Vec<String>,
    /// Whether the booted image runs the installer automatically.
    pub runs_installer: bool,
}

/// Omits the contents, because configs and keyfiles contain secrets.
impl fmt::Debug for Customized {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Customized")
            .field("live_config_len", &self.live_config.as_ref().map(Vec::len))
            .field("network_files", &self.network_files.keys())
            .field("notices", &self.notices)
            .field("runs_installer", &self.runs_installer)
            .finish()
    }
}

impl Customization {
    /// Returns the features that the options need. The caller sets `live_kargs`.
    #[must_use]
    pub fn required_features(&self) -> RequiredFeatures {
        RequiredFeatures {
            destination_console: !self.dest_console.is_empty(),
            network: self.configures_network(),
            installer_config: self.runs_installer(),
            live_kargs: false,
        }
    }

    /// Returns `true` if the booted image runs the installer automatically. Options for the installer or for the
    /// installed system cause that, but not hooks, network settings, certificate authorities or live configs alone.
    #[must_use]
    pub fn runs_installer(&self) -> bool {
        !self.dest_ignition.is_empty()
            || self.dest_device.is_some()
            || !self.dest_console.is_empty()
            || !self.dest_karg_append.is_empty()
            || !self.dest_karg_delete.is_empty()
            || !self.installer_config.is_empty()
    }

    fn configures_network(&self) -> bool {
        !self.network_keyfiles.is_empty() || !self.network_nmstate.is_empty()
    }

    /// Generates the content to add to an image with these capabilities.
    ///
    /// # Errors
    ///
    /// Returns an error if the image lacks a feature, a file cannot be parsed, or two files would have the same name.
    pub fn build(&self, image: &Capabilities) -> Result<Customized, CustomizeError> {
        self.required_features().check(image)?;
        let mut assembly = Assembly::default();
        assembly.read_destination(self)?;
        assembly.add_network(self)?;
        assembly.add_authorities(self);
        assembly.add_hooks(self)?;
        assembly.add_installer_configs(self)?;
        assembly.add_live_configs(self)?;
        assembly.finish(self)
    }
}
