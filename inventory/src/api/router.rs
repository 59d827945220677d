//! The complete API: the routes of all areas, the errors of the router, and the OpenAPI document.

use assisted::error::{EitherError, InfraError, OperationError};
use axum::Router;
use axum::extract::{DefaultBodyLimit, Request};
use axum::http::header;
use axum::middleware::{Next, from_fn};
use axum::response::Response;
use bytes::Bytes;
use utoipa::OpenApi;

use super::work_room::RequestMemory;
use super::{
    ApiError, ApiState, add_access, clusters, events, examples, hosts, infra_envs, logs, not_implemented,
    versions,
};
use crate::api::auth::{GuardedRouter, Operation, Operations, RouteAccess};
use crate::{Inventory, Settings};

/// Maximum length of a request body, in bytes, except for uploads of logs. The static network config of thousands of
/// hosts is shorter.
const MAX_BODY: usize = 32 << 20;

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Kindling",
        description = "Clusters, infra-envs and hosts, and the images they boot.\n\n\
            Operations need a token only under the policy `local` (`--auth-type local`). GET operations also accept HEAD. \
            An operation with `x-not-implemented` always fails: the response to an accepted request is 501."
    ),
    servers((url = "/api/assisted-install")),
    tags(
        (name = "clusters", description = "Clusters to install, with their networks and settings"),
        (name = "infra-envs", description = "Infra-envs: the descriptions of discovery images"),
        (name = "hosts", description = "Hosts, and the requests of their agents"),
        (name = "versions", description = "Versions of OpenShift, base images, and what they support"),
        (name = "events", description = "Events, and the stream of changes"),
        (name = "logs", description = "Logs of clusters and hosts"),
        (name = "not implemented", description = "Operations of the Assisted Installer that this service lacks"),
    ),
    components(schemas(EitherError, OperationError, InfraError))
)]
struct Document;

impl Inventory {
    /// Returns the routes of the API, under its path prefix. Each call creates its own memory limits for request
    /// bodies, so call this function once and clone the router.
    pub fn router(&self) -> Router {
        self.guarded_router([], Document::openapi()).into_parts().0
    }

    /// Returns the routes of the API, under its path prefix, with their access rules. `more` contains operations that
    /// the program adds. `others` describes the program's routes outside the API. Call this function once, like
    /// [`router`](Self::router).
    pub fn guarded_router(
        &self,
        more: impl IntoIterator<Item = Operation>,
        others: utoipa::openapi::OpenApi,
    ) -> GuardedRouter {
        let (router, document) = operations(more).into_parts();
        let text = document.merge_from(others).to_json().map(Bytes::from);
        let text =
            text.map_err(|error| ApiError::internal(format!("cannot write the API document: {error}")));
        let served = move || {
            let text = text.clone();
            async move { text.map(|text| ([(header::CONTENT_TYPE, "application/json")], text)) }
        };
        let in_api = ["/openapi", "/v2/openapi"].map(|path| format!("{}{path}", Settings::API));
        let documents = in_api.iter().map(String::as_str).chain(["/openapi.json"]);
        let documents = documents
            .fold(GuardedRouter::new(), |router, path| router.route(RouteAccess::open(path), served.clone()));
        router
            .merge(documents)
            .layer((from_fn(run_operation), DefaultBodyLimit::max(MAX_BODY)))
            .refuse_other_methods()
            .refuse_unknown_paths()
            .with_state(ApiState::new(self.clone()))
    }
}

/// Returns the OpenAPI document of the API. `more` contains operations that the program adds. `others` describes the
/// program's routes outside the API.
#[must_use]
pub fn openapi(
    more: impl IntoIterator<Item = Operation>,
    others: utoipa::openapi::OpenApi,
) -> utoipa::openapi::OpenApi {
    operations(more).into_parts().1.merge_from(others)
}

/// Returns all operations of the API, and the operations in `more`, which the program adds.
pub fn operations(more: impl IntoIterator<Item = Operation>) -> Operations {
    let areas = [
        clusters::routes(),
        infra_envs::routes(),
        hosts::routes(),
        events::routes(),
        logs::routes(),
        versions::routes(),
    ];
    let operations = areas.into_iter().flatten().chain(more);
    let operations = operations.fold(Operations::new(Document::openapi()), Operations::with);
    let mut operations = not_implemented::add_to(operations);
    examples::add_to(operations.router.get_openapi_mut());
    let access = operations.access().to_vec();
    add_access(operations.router.get_openapi_mut(), &access);
    operations
}

/// Keeps the memory for the work on a body reserved until the response is built.
async fn run_operation(mut request: Request, next: Next) -> Response {
    let _memory = RequestMemory::attach_to(&mut request);
    next.run(request).await
}
