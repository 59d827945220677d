//! What `iso customize` and `pxe customize` put into an image, made from options and files already read.
//!
//! A [`Customization`] holds the options. [`Customization::build`] turns it into a [`Customized`]: one Ignition
//! config for the live system and a set of `NetworkManager` keyfiles. Nothing here opens a file or an image;
//! the caller packs the result into the image's embed area and edits live kernel arguments itself.
//!
//! The generated files are those of `coreos-installer`: the same paths, modes, units, numbering and order, so
//! that an image customised by either program boots alike.

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

pub use capability::{Capabilities, Needs, Unsupported};
pub use console::Console;
pub use error::Error;
pub use image::{capabilities, initrd_capabilities};
pub use input::InputFile;

use assembly::Assembly;

/// The options of a customisation, each in the order in which it was given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Customization {
    /// Ignition configs for the installed system.
    pub dest_ignition: Vec<InputFile>,
    /// The disk to install to, overwritten without a question.
    pub dest_device: Option<String>,
    /// Consoles of the installed system.
    pub dest_console: Vec<Console>,
    /// Kernel arguments to add to the installed system.
    pub dest_karg_append: Vec<String>,
    /// Kernel arguments to take from the installed system.
    pub dest_karg_delete: Vec<String>,
    /// `NetworkManager` keyfiles for the live system, and for the installed one if the installer runs.
    pub network_keyfiles: Vec<InputFile>,
    /// nmstate documents, YAML or JSON, to be turned into keyfiles.
    pub network_nmstate: Vec<InputFile>,
    /// PEM bundles of certificate authorities for Ignition.
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

/// What a customisation adds to an image.
#[derive(Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Customized {
    /// The Ignition config of the live system, if there is anything in it.
    pub live_config: Option<Vec<u8>>,
    /// The keyfiles for the live system by file name, without a directory.
    pub network_files: BTreeMap<String, Vec<u8>>,
    /// Remarks for the user, to be printed to the error stream one after the other.
    pub notices: Vec<String>,
    /// Whether the booted image installs without being asked.
    pub runs_installer: bool,
}

/// Shows lengths and names: configs and keyfiles hold secrets.
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
    /// What the options need of an image; live kernel arguments are the caller's to add.
    #[must_use]
    pub fn needs(&self) -> Needs {
        Needs {
            destination_console: !self.dest_console.is_empty(),
            network: self.sets_network(),
            installer_config: self.runs_installer(),
            live_kargs: false,
        }
    }

    /// Whether the booted image is going to install. Hooks, network settings, certificate authorities and live
    /// configs alone do not make it so.
    #[must_use]
    pub fn runs_installer(&self) -> bool {
        !self.dest_ignition.is_empty()
            || self.dest_device.is_some()
            || !self.dest_console.is_empty()
            || !self.dest_karg_append.is_empty()
            || !self.dest_karg_delete.is_empty()
            || !self.installer_config.is_empty()
    }

    fn sets_network(&self) -> bool {
        !self.network_keyfiles.is_empty() || !self.network_nmstate.is_empty()
    }

    /// Makes everything that goes into the image.
    ///
    /// # Errors
    ///
    /// When the image lacks a feature, when a file does not parse, and when two files would get one name.
    pub fn build(&self, image: &Capabilities) -> Result<Customized, Error> {
        self.needs().check(image)?;
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
