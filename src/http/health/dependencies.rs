//! Checks of the services that requests depend on, for `/ready` and `/health`: the database and the bucket of uploaded
//! files.

use std::error::Error;
use std::time::Duration;

use serde::Serialize;
use utoipa::ToSchema;

use inventory::Inventory;
use inventory::store::Contact;

use super::shared_check::SharedCheck;

/// How long the result of a check of the database is reused.
const DATABASE_FRESH: Duration = Duration::from_secs(1);
/// How long the result of a check of the bucket is reused. It is longer, because providers charge for each request.
const FILES_FRESH: Duration = Duration::from_secs(10);

/// The state of a service that requests need.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = dependency_state)]
#[serde(rename_all = "snake_case")]
pub(super) enum DependencyState {
    /// Requests can use the service.
    Reachable,
    /// The service responds, but requests to it fail. For example, tables of the database are missing or locked, the
    /// database is read-only, the bucket is missing, or it refuses the credentials.
    Unusable,
    /// The service does not respond.
    Unreachable,
}

/// The checks of an inventory's database and bucket. Clones share them.
#[derive(Clone, Debug)]
pub(super) struct DependencyChecks {
    inventory: Inventory,
    database: SharedCheck<DependencyState>,
    files: SharedCheck<DependencyState>,
}

impl DependencyChecks {
    pub(super) fn new(inventory: &Inventory) -> Self {
        Self {
            inventory: inventory.clone(),
            database: SharedCheck::new(DATABASE_FRESH),
            files: SharedCheck::new(FILES_FRESH),
        }
    }

    pub(super) fn inventory(&self) -> &Inventory {
        &self.inventory
    }

    /// Returns the state of the database.
    pub(super) async fn database(&self) -> DependencyState {
        if self.contact() == Some(Contact::Unreachable) {
            return DependencyState::Unreachable;
        }
        let inventory = self.inventory.clone();
        let check = |before| async move {
            let checked = inventory.records().store().check_usable().await;
            state_from("database", before, checked.map_err(|error| (error.is_outage(), error)))
        };
        self.database.result(check).await.unwrap_or_else(|| match self.contact() {
            // The check timed out although the server can be reached, or the database is a file. This happens while
            // tables are locked.
            None | Some(Contact::Unusable) => DependencyState::Unusable,
            Some(_) => DependencyState::Unreachable,
        })
    }

    /// Returns the state of the connection to a database server. Returns `None` if the database is a file of this
    /// process.
    fn contact(&self) -> Option<Contact> {
        let store = self.inventory.records().store();
        (!store.is_alone()).then(|| store.feed().contact())
    }

    /// Returns the state of the bucket of uploaded files. Returns `None` if the files are stored in a directory.
    pub(super) async fn files(&self) -> Option<DependencyState> {
        let files = self.inventory.files().clone();
        if !files.is_in_bucket() {
            return None;
        }
        let check = |before| async move {
            let checked = files.check().await;
            state_from("bucket", before, checked.map_err(|error| (error.is_outage(), error)))
        };
        Some(self.files.result(check).await.unwrap_or(DependencyState::Unreachable))
    }
}

/// Converts the result of a check to a state. The `bool` of an error is `true` for an outage. Logs the state only if it
/// has changed, because checks are frequent.
fn state_from<E: Error + 'static>(
    dependency: &'static str,
    before: Option<DependencyState>,
    checked: Result<(), (bool, E)>,
) -> DependencyState {
    let (state, error) = match &checked {
        Ok(()) => (DependencyState::Reachable, None),
        Err((true, error)) => (DependencyState::Unreachable, Some(error)),
        Err((false, error)) => (DependencyState::Unusable, Some(error)),
    };
    match error {
        Some(error) if before != Some(state) => {
            let error = error as &(dyn Error + 'static);
            tracing::error!(error, ?state, "the {dependency} cannot be used");
        }
        None if before.is_some_and(|before| before != state) => {
            tracing::info!("the {dependency} can be used again");
        }
        _ => {}
    }
    state
}
