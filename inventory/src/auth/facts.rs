//! The service data that a token check needs, as a trait, so that the check does not depend on the inventory.

use chrono::{DateTime, Utc};

use crate::id::InfraEnvId;
use crate::store::Records;

/// The service data that a token check reads.
pub trait TokenFacts: Send + Sync {
    /// Returns the stored records, which the check searches for the token's infra-env or cluster.
    fn records(&self) -> &Records;

    /// Returns the current time.
    fn now(&self) -> DateTime<Utc>;

    /// Returns `true` if a cache shows that the infra-env exists, so that no database query is needed.
    fn is_known_infra_env(&self, id: InfraEnvId) -> bool;
}
