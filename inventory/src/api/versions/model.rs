//! Versions as clients see them.

use std::collections::BTreeMap;

use serde::Serialize;
use utoipa::ToSchema;

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
