//! What a supervisor asks.

use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;

use crate::inventory::Inventory;

/// How long the database may take to answer that it is there.
const PATIENCE: Duration = Duration::from_secs(2);

/// `/health`, `/ready` and `/live`.
pub(super) fn routes() -> Router<Inventory> {
    // Nobody connects before the tables are there: who gets an answer at all finds the service ready.
    Router::new()
        .route("/health", get(health))
        .route("/ready", get(|| async { StatusCode::OK }))
        .route("/live", get(|| async { StatusCode::OK }))
}

/// Whether the database answers.
async fn health(State(inventory): State<Inventory>) -> StatusCode {
    match tokio::time::timeout(PATIENCE, inventory.records().store().ping()).await {
        Ok(Ok(())) => StatusCode::OK,
        Ok(Err(error)) => {
            tracing::warn!(error = &error as &dyn std::error::Error, "the database does not answer");
            StatusCode::SERVICE_UNAVAILABLE
        }
        Err(_) => {
            tracing::warn!(patience = ?PATIENCE, "the database does not answer in time");
            StatusCode::SERVICE_UNAVAILABLE
        }
    }
}
