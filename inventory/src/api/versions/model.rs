//! Versions and base images in responses.

use std::collections::BTreeMap;

use serde::Serialize;
use utoipa::ToSchema;

use crate::catalogue::{CpuArchitecture, ImageType};

/// Versions of the components of an installation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = list_versions)]
pub(super) struct ComponentVersions {
    /// Versions, by component.
    pub versions: BTreeMap<&'static str, String>,
    /// Release of all components.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub release_tag: String,
}

/// A base image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = os_image)]
pub(super) struct OsImageView {
    /// OpenShift version.
    pub openshift_version: String,
    /// CPU architecture.
    #[schema(value_type = String)]
    pub cpu_architecture: CpuArchitecture,
    /// URL of the base image. The user, password and query are masked.
    pub url: String,
    /// Version of the base image.
    pub version: String,
    /// Type of the discovery images that can be made from it: full and minimal ISOs, or disconnected ISOs.
    #[serde(rename = "type")]
    pub image_type: ImageType,
    /// Whether the base image is part of the service's configuration and cannot be removed.
    pub configured: bool,
}
