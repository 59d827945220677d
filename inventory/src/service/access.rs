//! Implements [`TokenFacts`] for the inventory, so that token checks can look up records.

use chrono::{DateTime, Utc};

use crate::Inventory;
use crate::auth::TokenFacts;
use crate::id::InfraEnvId;
use crate::store::Records;

impl TokenFacts for Inventory {
    fn records(&self) -> &Records {
        Self::records(self)
    }

    fn now(&self) -> DateTime<Utc> {
        Self::now(self)
    }

    fn is_known_infra_env(&self, id: InfraEnvId) -> bool {
        self.has_current_infra_env(id)
    }
}
