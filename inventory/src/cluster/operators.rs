//! The operators that every installation includes.

use super::parts::ClusterKind;
use super::record::ClusterRecord;
use crate::Settings;

/// Time limit for a built-in operator to become available.
pub(crate) const BUILT_IN_TIMEOUT_SECONDS: i64 = 3600;

/// Returns the names of the built-in operators for this kind of cluster. A deleted cluster has none.
pub(crate) fn built_in_operators(record: &ClusterRecord, settings: &Settings) -> &'static [&'static str] {
    match record.kind {
        ClusterKind::Cluster if !record.is_deleted() => match settings.check_cluster_version {
            true => &["console", "cvo"],
            false => &["console"],
        },
        _ => &[],
    }
}
