//! The health endpoints for supervisors.

use std::time::Duration;

use axum::extract::State as Extracted;
use axum::http::StatusCode;
use axum::response::Response;
use serde::Serialize;

use super::images::{ImageServer, SourceStatus};
use crate::images::library::{BaseImageState, ImageState, Library};
use inventory::Inventory;
use inventory::api::json;
use inventory::api::only_reads;
use inventory::auth::{GuardedRouter, RouteAccess};
use inventory::catalogue::CpuArchitecture;
use inventory::infra_env::DatabaseStatus;
use inventory::monitor::MonitorHealth;

/// The time limit for a reply of the database.
const PATIENCE: Duration = Duration::from_secs(2);

/// The sources of a server that its health depends on.
#[derive(Clone, Debug)]
struct HealthSources {
    inventory: Option<Inventory>,
    images: Option<ImageServer>,
}

/// Returns `/health`, `/ready` and `/live` of a server with an inventory.
pub(super) fn routes(inventory: &Inventory, images: Option<&ImageServer>) -> GuardedRouter {
    let sources = HealthSources { inventory: Some(inventory.clone()), images: images.cloned() };
    guarded_router(sources)
}

/// Returns `/health`, `/ready` and `/live` of a server without an inventory.
pub(super) fn image_routes(images: &ImageServer) -> GuardedRouter {
    let sources = HealthSources { inventory: None, images: Some(images.clone()) };
    guarded_router(sources)
}

fn guarded_router(sources: HealthSources) -> GuardedRouter {
    GuardedRouter::new()
        .route(RouteAccess::open("/health"), health)
        .route(RouteAccess::open("/ready"), ready)
        .route(RouteAccess::open("/live"), always_ok)
        .method_not_allowed_fallback(only_reads)
        .with_state(sources)
}

/// Answers `/live`.
async fn always_ok() -> StatusCode {
    StatusCode::OK
}

/// Whether a server can serve images. It accepts connections only after the database has its tables.
#[derive(Debug, Serialize)]
struct Readiness {
    ready: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    database: Option<Reachability>,
    /// The external inventory.
    #[serde(skip_serializing_if = "Option::is_none")]
    inventory: Option<Reachability>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Reachability {
    Reachable,
    Unreachable,
}

impl Reachability {
    fn new(is_reachable: bool) -> Self {
        if is_reachable { Self::Reachable } else { Self::Unreachable }
    }
}

/// Answers `/ready`. During an outage of the database or of the external inventory, the server stays ready while it
/// serves images that it knows.
async fn ready(Extracted(sources): Extracted<HealthSources>) -> Response {
    let readiness = match (&sources.inventory, &sources.images) {
        (Some(inventory), _) => {
            let DatabaseStatus { mut is_reachable, mut serves_known_images, .. } =
                inventory.database_status();
            if inventory.records().store().is_alone() {
                // No connection watches the file of this process.
                is_reachable = database_health(inventory).await == DatabaseHealth::Ready;
                serves_known_images = is_reachable;
            }
            let database = Some(Reachability::new(is_reachable));
            Readiness { ready: serves_known_images, database, inventory: None }
        }
        (None, Some(images)) => {
            let SourceStatus { is_reachable, serves_known_images } = images.source_status().await;
            let inventory = Some(Reachability::new(is_reachable));
            Readiness { ready: serves_known_images, database: None, inventory }
        }
        (None, None) => Readiness { ready: true, database: None, inventory: None },
    };
    json(ready_status(readiness.ready), &readiness)
}

fn ready_status(is_ready: bool) -> StatusCode {
    if is_ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE }
}

/// The health of a server.
#[derive(Debug, Serialize)]
struct HealthReport {
    /// Whether the database replies, the monitor is not stuck, and all base images that are fetched at start are ready.
    /// A ready image is served even if others are not.
    ready: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    database: Option<DatabaseHealth>,
    #[serde(skip_serializing_if = "Option::is_none")]
    monitor: Option<MonitorHealth>,
    images: Vec<BaseImageHealth>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum DatabaseHealth {
    Ready,
    Failed,
}

/// A base image and its state. The reason of a failure names its source without credentials.
#[derive(Debug, Serialize)]
struct BaseImageHealth {
    name: String,
    openshift_version: String,
    version: String,
    cpu_architecture: CpuArchitecture,
    /// Whether a user added the image while the service runs. Such images do not count for `ready`.
    added: bool,
    #[serde(flatten)]
    state: BaseImageState,
}

impl From<ImageState> for BaseImageHealth {
    fn from(ImageState { image, name, state, is_added, .. }: ImageState) -> Self {
        Self {
            name,
            openshift_version: image.openshift_version,
            version: image.version,
            cpu_architecture: image.cpu_architecture,
            added: is_added,
            state,
        }
    }
}

async fn health(Extracted(sources): Extracted<HealthSources>) -> Response {
    let database = match &sources.inventory {
        Some(inventory) => Some(database_health(inventory).await),
        None => None,
    };
    let timeout = |inventory: &Inventory| inventory.settings().monitor_timeout;
    let monitor = sources.inventory.as_ref().and_then(|it| it.monitor().health(timeout(it)));
    let live_images = sources.images.as_ref().map(ImageServer::library);
    let report = HealthReport {
        ready: database != Some(DatabaseHealth::Failed)
            && monitor != Some(MonitorHealth::Stuck)
            && live_images.is_none_or(Library::is_ready),
        database,
        monitor,
        images: live_images
            .map(Library::states)
            .unwrap_or_default()
            .into_iter()
            .map(BaseImageHealth::from)
            .collect(),
    };
    json(ready_status(report.ready), &report)
}

async fn database_health(inventory: &Inventory) -> DatabaseHealth {
    match tokio::time::timeout(PATIENCE, inventory.records().store().ping()).await {
        Ok(Ok(())) => DatabaseHealth::Ready,
        Ok(Err(error)) => {
            tracing::warn!(error = &error as &dyn std::error::Error, "the database does not answer");
            DatabaseHealth::Failed
        }
        Err(_) => {
            tracing::warn!(patience = ?PATIENCE, "the database does not answer in time");
            DatabaseHealth::Failed
        }
    }
}
