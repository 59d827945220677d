//! The facts about the service that decide about a token.

use chrono::{DateTime, Utc};

use crate::id::InfraEnvId;
use crate::store::Records;

/// The facts about the service that decide about a token.
pub trait TokenFacts: Send + Sync {
    /// Returns the records.
    fn records(&self) -> &Records;

    /// Returns the current time.
    fn now(&self) -> DateTime<Utc>;

    /// Returns `true` if the infra-env is known to exist without a query of the database.
    fn is_known_infra_env(&self, id: InfraEnvId) -> bool;
}
