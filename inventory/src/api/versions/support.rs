//! The CPU architectures that each OpenShift version supports.

use assisted::version::{ArchitectureSupport, Support, SupportedArchitectures};

use crate::catalogue::Version;

/// Returns the support levels of a version.
pub(super) fn supported_architectures(version: &Version) -> SupportedArchitectures {
    let since = |minor: u64, first: Support, later: Support| match version.minor() {
        found if found < (4, minor) => Support::Unavailable,
        found if found == (4, minor) => first,
        _ => later,
    };
    let large = since(12, Support::TechPreview, Support::Supported);
    let architectures = ArchitectureSupport {
        x86_64: Support::Supported.into(),
        arm64: since(10, Support::Supported, Support::Supported).into(),
        ppc64le: large.into(),
        s390x: large.into(),
        multi: since(11, Support::TechPreview, Support::TechPreview).into(),
    };
    SupportedArchitectures { architectures }
}
