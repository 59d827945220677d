//! Endpoints that report the health of the server, for supervisors.

mod dependencies;
mod shared_check;

use axum::extract::State as Extracted;
use axum::http::StatusCode;
use axum::response::Response;
use serde::Serialize;
use utoipa::{OpenApi, ToSchema};

use super::controllers::ControllerHealth;
use super::images::{ImageServer, SourceStatus};
use crate::images::library::{BaseImageState, ImageState, Library};
use inventory::api::auth::{GuardedRouter, RouteAccess};
use inventory::api::{add_access, json, only_reads};
use inventory::catalogue::CpuArchitecture;
use inventory::service::MonitorHealth;
use inventory::{AddressFinding, Inventory};

use dependencies::{DependencyChecks, DependencyState};

const PATHS: [&str; 3] = ["/health", "/ready", "/live"];

/// The parts of a server that its health depends on.
#[derive(Clone, Debug)]
struct HealthSources {
    inventory: Option<DependencyChecks>,
    images: Option<ImageServer>,
}

/// Returns the routes `/health`, `/ready` and `/live` of a server with an inventory.
pub(super) fn routes(inventory: &Inventory, images: Option<&ImageServer>) -> GuardedRouter {
    let sources =
        HealthSources { inventory: Some(DependencyChecks::new(inventory)), images: images.cloned() };
    guarded_router(sources)
}

/// Returns the routes `/health`, `/ready` and `/live` of a server without an inventory.
pub(super) fn image_routes(images: &ImageServer) -> GuardedRouter {
    let sources = HealthSources { inventory: None, images: Some(images.clone()) };
    guarded_router(sources)
}

fn guarded_router(sources: HealthSources) -> GuardedRouter {
    let [health_path, ready_path, live_path] = PATHS.map(RouteAccess::open);
    GuardedRouter::new()
        .route(health_path, health)
        .route(ready_path, ready)
        .route(live_path, always_ok)
        .method_not_allowed_fallback(only_reads)
        .with_state(sources)
}

/// The OpenAPI document of these routes.
#[derive(OpenApi)]
#[openapi(
    paths(health, ready, always_ok),
    tags((name = "service", description = "Health, metrics and documentation of the service"))
)]
struct Document;

pub(super) fn document() -> utoipa::openapi::OpenApi {
    let mut document = Document::openapi();
    add_access(&mut document, &PATHS.map(RouteAccess::open));
    document
}

/// Returns 200 if the process handles requests
#[utoipa::path(
    get,
    path = "/live",
    operation_id = "GetLiveness",
    tag = "service",
    responses((status = OK, description = "The process handles requests."))
)]
async fn always_ok() -> StatusCode {
    StatusCode::OK
}

/// Whether a server can serve images. It accepts connections only after the database has its tables.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = readiness)]
struct Readiness {
    ready: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    database: Option<DependencyState>,
    /// The bucket of uploaded files. The server stays ready without it, because images do not need it.
    #[serde(skip_serializing_if = "Option::is_none")]
    files: Option<DependencyState>,
    /// The external inventory.
    #[serde(skip_serializing_if = "Option::is_none")]
    inventory: Option<Reachability>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = reachability)]
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

/// Returns 200 if the service can serve images, otherwise 503
///
/// During an outage of the database or of the external inventory, the service stays ready while it can serve images
/// from its cache. If the database responds but cannot be used, the service is not ready.
#[utoipa::path(
    get,
    path = "/ready",
    operation_id = "GetReadiness",
    tag = "service",
    responses(
        (status = OK, description = "The service is ready.", body = Readiness),
        (status = SERVICE_UNAVAILABLE, description = "The service is not ready.", body = Readiness)
    )
)]
async fn ready(Extracted(sources): Extracted<HealthSources>) -> Response {
    let readiness = match (&sources.inventory, &sources.images) {
        (Some(checks), _) => readiness_with_database(checks).await,
        (None, Some(images)) => {
            let SourceStatus { is_reachable, serves_known_images } = images.source_status().await;
            let inventory = Some(Reachability::new(is_reachable));
            Readiness { ready: serves_known_images, database: None, files: None, inventory }
        }
        (None, None) => Readiness { ready: true, database: None, files: None, inventory: None },
    };
    json(ready_status(readiness.ready), &readiness)
}

async fn readiness_with_database(checks: &DependencyChecks) -> Readiness {
    let (database, files) = tokio::join!(checks.database(), checks.files());
    let inventory = checks.inventory();
    let ready = match database {
        DependencyState::Reachable => true,
        DependencyState::Unusable => false,
        // During an outage of a database server, the service stays ready while it can serve cached images. If the
        // database is a file of this process, it is not ready, because no other process can make the file available
        // again.
        DependencyState::Unreachable => {
            !inventory.records().store().is_alone() && inventory.database_status().serves_known_images
        }
    };
    Readiness { ready, database: Some(database), files, inventory: None }
}

fn ready_status(is_ready: bool) -> StatusCode {
    if is_ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE }
}

/// The health of a server.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = health)]
struct HealthReport {
    /// Whether the database can be used, the monitor is not stuck, and all base images downloaded at start are ready. A
    /// ready image is served even if others are not.
    ready: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    database: Option<DatabaseHealth>,
    /// State of the bucket of uploaded files. It does not affect `ready`.
    #[serde(skip_serializing_if = "Option::is_none")]
    files: Option<DependencyState>,
    #[serde(skip_serializing_if = "Option::is_none")]
    monitor: Option<MonitorHealth>,
    /// State of the controllers of custom resources, if they run. It does not affect `ready`, because images and hosts
    /// do not need them.
    #[serde(skip_serializing_if = "Option::is_none")]
    kubernetes: Option<ControllerHealth>,
    /// Base URLs that machines cannot reach. They do not affect `ready`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<Object>)]
    addresses: Vec<AddressFinding>,
    images: Vec<BaseImageHealth>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = database_health)]
#[serde(rename_all = "snake_case")]
enum DatabaseHealth {
    Ready,
    Failed,
}

impl From<DependencyState> for DatabaseHealth {
    fn from(state: DependencyState) -> Self {
        match state {
            DependencyState::Reachable => Self::Ready,
            DependencyState::Unusable | DependencyState::Unreachable => Self::Failed,
        }
    }
}

/// A base image and its state. The reason for a failure names the source without credentials.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = base_image_health)]
struct BaseImageHealth {
    name: String,
    openshift_version: String,
    version: String,
    #[schema(value_type = String)]
    cpu_architecture: CpuArchitecture,
    /// Whether a user added the image while the service runs. Such images do not affect `ready`.
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

/// Returns the health of the service and of its base images
#[utoipa::path(
    get,
    path = "/health",
    operation_id = "GetHealth",
    tag = "service",
    responses(
        (status = OK, description = "All parts of the service work.", body = HealthReport),
        (status = SERVICE_UNAVAILABLE, description = "A part of the service does not work, or a base image is not ready yet.", body = HealthReport)
    )
)]
async fn health(Extracted(sources): Extracted<HealthSources>) -> Response {
    let (database, files, monitor, addresses) = match &sources.inventory {
        Some(checks) => {
            let (database, files) = tokio::join!(checks.database(), checks.files());
            let inventory = checks.inventory();
            let settings = inventory.settings();
            let monitor = inventory.tasks().monitor_health(settings.monitor_timeout);
            (Some(DatabaseHealth::from(database)), files, monitor, settings.address_findings())
        }
        None => (None, None, None, Vec::new()),
    };
    let live_images = sources.images.as_ref().map(ImageServer::library);
    let report = HealthReport {
        ready: database != Some(DatabaseHealth::Failed)
            && monitor != Some(MonitorHealth::Stuck)
            && live_images.is_none_or(Library::is_ready),
        database,
        files,
        monitor,
        kubernetes: sources.images.as_ref().and_then(|images| images.metrics().controller_health()),
        addresses,
        images: live_images
            .map(Library::states)
            .unwrap_or_default()
            .into_iter()
            .map(BaseImageHealth::from)
            .collect(),
    };
    json(ready_status(report.ready), &report)
}
