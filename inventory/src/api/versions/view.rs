//! Conversion of versions and base images into their API representation.

use std::collections::BTreeMap;

use assisted::version::{ComponentVersions, ListedOsImage};
use ignition::discovery::masked_url;

use crate::Settings;
use crate::service::os_images::CatalogueOsImage;

/// Returns the versions of the components of an installation.
pub(super) fn component_versions(settings: &Settings) -> ComponentVersions {
    let versions = [
        ("assisted-installer-service", &settings.self_version),
        ("discovery-agent", &settings.agent_image),
        ("assisted-installer", &settings.installer_image),
        ("assisted-installer-controller", &settings.controller_image),
    ];
    let versions = versions.map(|(component, version)| (component.to_owned(), version.clone()));
    ComponentVersions { versions: BTreeMap::from(versions), release_tag: settings.release_tag.clone() }
}

/// Converts a base image into its API representation.
pub(super) fn listed_os_image(CatalogueOsImage { image, is_configured }: CatalogueOsImage) -> ListedOsImage {
    ListedOsImage {
        openshift_version: image.openshift_version,
        cpu_architecture: image.cpu_architecture.into(),
        url: masked_url(&image.url),
        version: image.version,
        image_type: image.image_type.into(),
        configured: is_configured,
    }
}
