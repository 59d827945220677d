//! Versions: components of the service, OpenShift releases, and base images.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::architecture::{CpuArchitecture, ImageType};
use crate::extensible::Extensible;
use crate::wire::{is_default, null_as_default};

/// Versions of the components of an installation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = list_versions))]
pub struct ComponentVersions {
    /// Versions, by component.
    #[serde(default, deserialize_with = "null_as_default")]
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub versions: BTreeMap<String, String>,
    /// Release of all components.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub release_tag: String,
}

/// The support level of a release.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = support_level))]
pub enum SupportLevel {
    /// A pre-release for evaluation.
    Beta,
    /// Fully supported.
    Production,
    /// Receives only fixes.
    Maintenance,
    /// No longer supported.
    EndOfLife,
}

/// An OpenShift version that clusters can be created with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = openshift_version))]
pub struct OpenshiftVersion {
    /// The version, as clients show it.
    pub display_name: String,
    /// The support level of the version.
    #[cfg_attr(feature = "openapi", schema(value_type = SupportLevel))]
    pub support_level: Extensible<SupportLevel>,
    /// The CPU architectures that the version supports.
    #[serde(default, deserialize_with = "null_as_default")]
    #[cfg_attr(feature = "openapi", schema(value_type = Vec<String>, required = true))]
    pub cpu_architectures: Vec<Extensible<CpuArchitecture>>,
    /// Whether clients should offer this version first.
    #[serde(default, skip_serializing_if = "is_default")]
    pub default: bool,
}

/// Support level of a feature.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = feature_support_level))]
pub enum Support {
    /// Fully supported.
    Supported,
    /// Technology preview.
    TechPreview,
    /// Not available.
    Unavailable,
}

/// CPU architectures that a version supports.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = supported_architectures))]
pub struct SupportedArchitectures {
    /// Support levels, by CPU architecture.
    pub architectures: ArchitectureSupport,
}

/// Support level of each CPU architecture.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = architecture_support))]
pub struct ArchitectureSupport {
    /// 64-bit Intel and AMD.
    #[serde(rename = "X86_64_ARCHITECTURE")]
    #[cfg_attr(feature = "openapi", schema(value_type = Support))]
    pub x86_64: Extensible<Support>,
    /// 64-bit ARM.
    #[serde(rename = "ARM64_ARCHITECTURE")]
    #[cfg_attr(feature = "openapi", schema(value_type = Support))]
    pub arm64: Extensible<Support>,
    /// POWER, little-endian.
    #[serde(rename = "PPC64LE_ARCHITECTURE")]
    #[cfg_attr(feature = "openapi", schema(value_type = Support))]
    pub ppc64le: Extensible<Support>,
    /// IBM Z.
    #[serde(rename = "S390X_ARCHITECTURE")]
    #[cfg_attr(feature = "openapi", schema(value_type = Support))]
    pub s390x: Extensible<Support>,
    /// Several architectures in one cluster.
    #[serde(rename = "MULTIARCH_RELEASE_IMAGE")]
    #[cfg_attr(feature = "openapi", schema(value_type = Support))]
    pub multi: Extensible<Support>,
}

/// A base image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = os_image))]
pub struct ListedOsImage {
    /// OpenShift version.
    pub openshift_version: String,
    /// CPU architecture.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub cpu_architecture: Extensible<CpuArchitecture>,
    /// URL of the base image. The user, password and query are masked.
    pub url: String,
    /// Version of the base image.
    pub version: String,
    /// Type of the discovery images that can be made from it: full and minimal ISOs, or disconnected ISOs.
    #[serde(rename = "type")]
    #[cfg_attr(feature = "openapi", schema(value_type = ImageType))]
    pub image_type: Extensible<ImageType>,
    /// Whether the base image is part of the service's configuration and cannot be removed.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub configured: bool,
}

/// Parameters of a base image to add.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = os_image_create_params))]
pub struct OsImageParams {
    /// OpenShift version, such as `4.14`.
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 64))]
    pub openshift_version: String,
    /// CPU architecture.
    #[cfg_attr(feature = "openapi", schema(value_type = crate::architecture::OsImageArchitecture))]
    pub cpu_architecture: CpuArchitecture,
    /// URL of the base image.
    pub url: String,
    /// Version of the base image.
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 64))]
    pub version: String,
    /// SHA-256 digest of the base image, in hexadecimal. A file with another digest is not used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(pattern = "^[0-9A-Fa-f]{64}$"))]
    pub sha256: Option<String>,
}
