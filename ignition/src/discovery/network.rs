//! The seam to the static network: files that somebody else has made, and the unit that applies them.

use std::fmt;

use super::input::InputError;
use super::parts::Parts;
use crate::builder::{FileMode, UnitState};

/// The script that chooses among the configurations of all machines the one of this machine.
pub const NETWORK_SCRIPT: &str = "/usr/local/bin/pre-network-manager-config.sh";
/// The unit that runs it.
pub const NETWORK_UNIT: &str = "pre-network-manager-config.service";

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
    files: Vec<NetworkFile>,
    unit: String,
}

impl StaticNetwork {
    /// Takes the files, [`NETWORK_SCRIPT`] among them, and the text of the unit that runs it. When that is depends on the form of
    /// the configurations.
    ///
    /// # Errors
    ///
    /// When the script is not among the files.
    pub fn new(files: Vec<NetworkFile>, unit: impl Into<String>) -> Result<Self, InputError> {
        if !files.iter().any(|file| file.path == NETWORK_SCRIPT) {
            let reason = format!("has no file {NETWORK_SCRIPT}");
            return Err(InputError::secret("static_network_config", reason));
        }
        Ok(Self { files, unit: unit.into() })
    }

    pub(super) fn add(&self, parts: &mut Parts) {
        for file in &self.files {
            parts.file(&file.path, file.mode, &file.contents);
        }
        parts.unit(NETWORK_UNIT, UnitState::Enabled, &self.unit);
    }
}
