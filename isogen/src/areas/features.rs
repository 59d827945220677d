//! The feature list of the live system: `features.json`, which is on the ISO and in its initrd.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::description::{DescribedImage, FEATURES};
use crate::error::Result;

/// The features that a live system supports. A feature that `features.json` does not list is not supported.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
#[non_exhaustive]
pub struct Features {
    /// `true` if the installer reads `/etc/coreos/installer.d`.
    pub installer_config: bool,
    /// The directives that the installer supports in its config files.
    pub installer_config_directives: BTreeMap<String, bool>,
    /// `true` if the initrd reads network settings from `/etc/coreos-firstboot-network`.
    pub live_initrd_network: bool,
}

impl Features {
    /// The path of `features.json` in an initrd.
    pub const INITRD_PATH: &'static str = "etc/coreos/features.json";

    /// Parses a `features.json`.
    ///
    /// # Errors
    ///
    /// Returns an error if the input is not JSON or a field has the wrong type.
    pub fn parse(json: &[u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(json)
    }

    pub(crate) fn read(image: DescribedImage<'_>) -> Result<Self> {
        Ok(image.read_description(FEATURES)?.unwrap_or_default())
    }
}
