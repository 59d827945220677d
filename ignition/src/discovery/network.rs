//! The seam to the static network: files that somebody else has made, and the unit that applies them.

use std::fmt;

use super::input::InputError;
use super::parts::Parts;
use crate::builder::{FileMode, UnitState};

/// The script that chooses among the configurations of all machines the one of this machine.
pub const NETWORK_SCRIPT: &str = "/usr/local/bin/pre-network-manager-config.sh";
/// The unit that runs it.
pub const NETWORK_UNIT: &str = "pre-network-manager-config.service";

/// In which form the configurations are, and so when they are applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetworkForm {
    /// Keyfiles, before `NetworkManager` starts.
    Keyfiles,
    /// nmstate documents, before `nmstate.service` does its work.
    Nmstate,
}

/// A file of the static network.
#[derive(Clone, PartialEq, Eq)]
pub struct NetworkFile {
    /// Where it goes.
    pub path: String,
    /// Who may read and run it.
    pub mode: FileMode,
    /// What is in it.
    pub contents: Vec<u8>,
}

/// Keyfiles may hold passwords.
impl fmt::Debug for NetworkFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({:o}, {} bytes)", self.path, self.mode.bits(), self.contents.len())
    }
}

/// The network configurations of all machines that may boot the image, with the script that chooses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StaticNetwork {
    form: NetworkForm,
    files: Vec<NetworkFile>,
}

impl StaticNetwork {
    /// Takes the files, [`NETWORK_SCRIPT`] among them.
    ///
    /// # Errors
    ///
    /// When the script is not among the files.
    pub fn new(form: NetworkForm, files: Vec<NetworkFile>) -> Result<Self, InputError> {
        if !files.iter().any(|file| file.path == NETWORK_SCRIPT) {
            let reason = format!("has no file {NETWORK_SCRIPT}");
            return Err(InputError::secret("static_network_config", reason));
        }
        Ok(Self { form, files })
    }

    pub(super) fn add(&self, parts: &mut Parts) {
        for file in &self.files {
            parts.file(&file.path, file.mode, &file.contents);
        }
        let unit = match self.form {
            NetworkForm::Keyfiles => include_str!("content/network-keyfiles.service"),
            NetworkForm::Nmstate => include_str!("content/network-nmstate.service"),
        };
        parts.unit(NETWORK_UNIT, UnitState::Enabled, unit);
    }
}
