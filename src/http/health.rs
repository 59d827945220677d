//! The health endpoints for supervisors.

use std::time::Duration;

use axum::extract::State as Extracted;
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::get;
use serde::Serialize;

use super::images::ImageServer;
use crate::api_error::json;
use crate::api_error::only_reads;
use crate::images::CpuArchitecture;
use crate::images::library::{ImageState, Library, State};
use crate::inventory::Inventory;
use crate::inventory::auth::{GuardedRouter, RouteAccess};

/// The time limit for a reply of the database.
const PATIENCE: Duration = Duration::from_secs(2);

/// The sources of a server that its health depends on.
#[derive(Clone, Debug)]
struct HealthSources {
    inventory: Option<Inventory>,
    live_images: Option<Library>,
}

/// Returns `/health`, `/ready` and `/live` of a server with an inventory.
pub(super) fn routes(inventory: &Inventory, images: Option<&ImageServer>) -> GuardedRouter {
    let live_images = images.map(ImageServer::live_images).cloned();
    let sources = HealthSources { inventory: Some(inventory.clone()), live_images };
    guarded_router(sources)
}

/// Returns `/health`, `/ready` and `/live` of a server without an inventory.
pub(super) fn image_routes(images: &ImageServer) -> GuardedRouter {
    let sources = HealthSources { inventory: None, live_images: Some(images.live_images().clone()) };
    guarded_router(sources)
}

fn guarded_router(sources: HealthSources) -> GuardedRouter {
    GuardedRouter::new()
        .route(RouteAccess::open("/health"), get(health))
        .route(RouteAccess::open("/ready"), get(ok))
        .route(RouteAccess::open("/live"), get(ok))
        .map(|router| router.method_not_allowed_fallback(only_reads).with_state(sources))
}

/// Answers `/ready` and `/live`. The server is ready once it accepts connections, because it listens only after the
/// database has its tables.
async fn ok() -> StatusCode {
    StatusCode::OK
}

/// The health of a server.
#[derive(Debug, Serialize)]
struct Report {
    /// Whether the database replies and all base images that are fetched at start are ready. A ready image is served
    /// even if others are not.
    ready: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    database: Option<Database>,
    images: Vec<Image>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Database {
    Ready,
    Failed,
}

/// A base image and its state. The reason of a failure names its source without credentials.
#[derive(Debug, Serialize)]
struct Image {
    name: String,
    openshift_version: String,
    version: String,
    cpu_architecture: CpuArchitecture,
    #[serde(flatten)]
    state: State,
}

impl From<ImageState> for Image {
    fn from(ImageState { image, name, state, .. }: ImageState) -> Self {
        let (openshift_version, version) = (image.openshift_version, image.version);
        Self { name, openshift_version, version, cpu_architecture: image.cpu_architecture, state }
    }
}

async fn health(Extracted(sources): Extracted<HealthSources>) -> Response {
    let database = match &sources.inventory {
        Some(inventory) => Some(database(inventory).await),
        None => None,
    };
    let live_images = sources.live_images.as_ref();
    let report = Report {
        ready: database != Some(Database::Failed) && live_images.is_none_or(Library::is_ready),
        database,
        images: live_images.map(Library::states).unwrap_or_default().into_iter().map(Image::from).collect(),
    };
    let status = if report.ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    json(status, &report)
}

async fn database(inventory: &Inventory) -> Database {
    match tokio::time::timeout(PATIENCE, inventory.records().store().ping()).await {
        Ok(Ok(())) => Database::Ready,
        Ok(Err(error)) => {
            tracing::warn!(error = &error as &dyn std::error::Error, "the database does not answer");
            Database::Failed
        }
        Err(_) => {
            tracing::warn!(patience = ?PATIENCE, "the database does not answer in time");
            Database::Failed
        }
    }
}
