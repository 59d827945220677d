//! Versions as clients see them.

use std::collections::BTreeMap;

use serde::Serialize;
use utoipa::ToSchema;

/// The versions of the parts of an installation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = list_versions)]
pub struct ComponentVersions {
    /// Part by part.
    pub versions: BTreeMap<&'static str, String>,
    /// The release of all parts.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub release_tag: String,
}
