//! CPU architectures that each OpenShift version supports.

use assisted::version::Support;
use serde::Serialize;
use utoipa::ToSchema;

use crate::catalogue::Version;

/// CPU architectures that a version supports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = supported_architectures)]
pub(super) struct SupportedArchitectures {
    /// Support levels, by CPU architecture.
    pub architectures: ArchitectureSupport,
}

/// Support level of each CPU architecture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = architecture_support)]
pub(super) struct ArchitectureSupport {
    /// 64-bit Intel and AMD.
    #[serde(rename = "X86_64_ARCHITECTURE")]
    pub x86_64: Support,
    /// 64-bit ARM.
    #[serde(rename = "ARM64_ARCHITECTURE")]
    pub arm64: Support,
    /// POWER, little-endian.
    #[serde(rename = "PPC64LE_ARCHITECTURE")]
    pub ppc64le: Support,
    /// IBM Z.
    #[serde(rename = "S390X_ARCHITECTURE")]
    pub s390x: Support,
    /// Several architectures in one cluster.
    #[serde(rename = "MULTIARCH_RELEASE_IMAGE")]
    pub multi: Support,
}

impl SupportedArchitectures {
    /// Returns the support levels of a version.
    #[must_use]
    pub(super) fn new(version: &Version) -> Self {
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
