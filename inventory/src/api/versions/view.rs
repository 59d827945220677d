//! Versions and base images as clients see them.

use std::collections::BTreeMap;

use ignition::discovery::masked_url;

use super::model::{ComponentVersions, OsImageView};
use crate::Settings;
use crate::service::os_images::ListedOsImage;

impl ComponentVersions {
    pub(super) fn from_settings(settings: &Settings) -> Self {
        let versions = BTreeMap::from([
            ("assisted-installer-service", settings.self_version.clone()),
            ("discovery-agent", settings.agent_image.clone()),
            ("assisted-installer", settings.installer_image.clone()),
            ("assisted-installer-controller", settings.controller_image.clone()),
        ]);
        Self { versions, release_tag: settings.release_tag.clone() }
    }
}

impl From<ListedOsImage> for OsImageView {
    fn from(ListedOsImage { image, is_configured }: ListedOsImage) -> Self {
        Self {
            openshift_version: image.openshift_version,
            cpu_architecture: image.cpu_architecture,
            url: masked_url(&image.url),
            version: image.version,
            image_type: image.image_type,
            configured: is_configured,
        }
    }
}
