//! Which processors OpenShift supports, version by version.

use serde::Serialize;
use utoipa::ToSchema;

use crate::images::Version;

/// How far something is supported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
#[schema(as = feature_support_level)]
pub enum Support {
    /// In full.
    Supported,
    /// It may be tried.
    TechPreview,
    /// It is not there.
    Unavailable,
}

/// How far a version supports processors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = supported_architectures)]
pub struct SupportedArchitectures {
    /// Processor by processor.
    pub architectures: ArchitectureSupport,
}

/// How far each processor is supported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = architecture_support)]
pub struct ArchitectureSupport {
    /// Intel and AMD, 64 bits.
    #[serde(rename = "X86_64_ARCHITECTURE")]
    pub x86_64: Support,
    /// ARM, 64 bits.
    #[serde(rename = "ARM64_ARCHITECTURE")]
    pub arm64: Support,
    /// POWER, little-endian.
    #[serde(rename = "PPC64LE_ARCHITECTURE")]
    pub ppc64le: Support,
    /// IBM Z.
    #[serde(rename = "S390X_ARCHITECTURE")]
    pub s390x: Support,
    /// Several of them in one cluster.
    #[serde(rename = "MULTIARCH_RELEASE_IMAGE")]
    pub multi: Support,
}

impl SupportedArchitectures {
    /// Those of a version.
    #[must_use]
    pub fn of(version: &Version) -> Self {
        let since = |minor: u64, first: Support, later: Support| match version.minor() {
            found if found < (4, minor) => Support::Unavailable,
            found if found == (4, minor) => first,
            _ => later,
        };
        let large = since(12, Support::TechPreview, Support::Supported);
        let architectures = ArchitectureSupport {
            x86_64: Support::Supported,
            arm64: since(10, Support::Supported, Support::Supported),
            ppc64le: large,
            s390x: large,
            multi: since(11, Support::TechPreview, Support::TechPreview),
        };
        Self { architectures }
    }
}
