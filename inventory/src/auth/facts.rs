//! What the check of a token needs to know about the service, as a trait, so that it does not import the inventory.

use chrono::{DateTime, Utc};

use crate::id::InfraEnvId;
use crate::store::Records;

/// The facts about the service that the check of a token reads.
pub trait TokenFacts: Send + Sync {
    /// Returns the records.
    fn records(&self) -> &Records;

    /// Returns the current time.
    fn now(&self) -> DateTime<Utc>;

    /// Returns `true` if the infra-env is known to exist without a query of the database.
    fn is_known_infra_env(&self, id: InfraEnvId) -> bool;
}
