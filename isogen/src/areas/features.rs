//! What the live system of an image understands: `features.json`, on the ISO and in its initrd.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::description::{self, FEATURES};
use crate::error::Result;
use crate::source::Source;
use crate::volume::Volume;

/// Features of a live system. What is not named is not understood.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct Features {
    /// The installer reads `/etc/coreos/installer.d`.
    pub installer_config: bool,
    /// The directives that the installer knows there.
    pub installer_config_directives: BTreeMap<String, bool>,
    /// The initrd takes network settings from `/etc/coreos-firstboot-network`.
    pub live_initrd_network: bool,
}

impl Features {
    /// Where an initrd keeps its copy.
    pub const INITRD_PATH: &'static str = "etc/coreos/features.json";

    /// Reads a `features.json`.
    ///
    /// # Errors
    ///
    /// Fails where it is not JSON of that shape.
    pub fn parse(json: &[u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(json)
    }

    pub(crate) fn read(source: &Source, volume: &Volume) -> Result<Self> {
        Ok(description::read(source, volume, FEATURES)?.unwrap_or_default())
    }
}
