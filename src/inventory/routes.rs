//! The API as a whole: all areas' routes, what answers where there is none, and the document that describes them.

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request};
use axum::http::{StatusCode, header};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use bytes::Bytes;
use tower::Layer;
use utoipa::OpenApi;

use super::auth::{GuardedRouter, Operations, RouteAccess};
use super::{Inventory, Settings, cluster, event, examples, host, infra_env, logs, not_implemented, version};
use crate::api_error::EitherError;
use crate::api_error::{ApiError, GateError, OperationError};

/// The largest body, in bytes, of all operations but the upload of logs. A static network of thousands of hosts fits.
const MOST_BODY: usize = 32 << 20;

/// What the document says of the API as a whole.
#[derive(OpenApi)]
#[openapi(
    info(title = "Kindling", description = "Clusters, infra-envs and hosts, and the images they boot"),
    servers((url = "/api/assisted-install")),
    components(schemas(EitherError, OperationError, GateError))
)]
struct Document;

impl Inventory {
    /// The API, under its path.
    pub fn router(&self) -> Router {
        self.guarded_router().into_parts().0
    }

    /// The API, under its path, with the access to each route.
    pub(crate) fn guarded_router(&self) -> GuardedRouter {
        let Operations { router, access } = operations();
        let (router, document) = router.split_for_parts();
        let text = document.to_json().map(Bytes::from);
        let text =
            text.map_err(|error| ApiError::internal(format!("cannot write the API document: {error}")));
        let served = move || {
            let text = text.clone();
            async move { text.map(|text| ([(header::CONTENT_TYPE, "application/json")], text)) }
        };
        let documents = ["/openapi", "/v2/openapi"].into_iter().fold(GuardedRouter::new(), |router, path| {
            router.route(RouteAccess::open(path), get(served.clone()))
        });
        let api = GuardedRouter::of_operations(router, access)
            .merge(documents)
            .map(|router| router.layer(DefaultBodyLimit::max(MOST_BODY)).with_state(self.clone()));
        let all: GuardedRouter =
            api.under(Settings::API).route(RouteAccess::open("/openapi.json"), get(served));
        // A layer of the router itself would not see which methods a path has: that is added after it.
        all.map(|router: Router| {
            Router::new().fallback_service(from_fn(shape_errors_of_router).layer(router))
        })
    }

    /// The document that describes the API.
    #[must_use]
    pub fn openapi() -> utoipa::openapi::OpenApi {
        operations().router.into_openapi()
    }
}

/// All operations of the API.
pub(crate) fn operations() -> Operations {
    let areas = [
        cluster::routes(),
        infra_env::routes(),
        host::routes(),
        event::routes(),
        logs::routes(),
        version::routes(),
    ];
    let operations = areas.into_iter().flatten();
    let operations = operations.fold(Operations::new(Document::openapi()), Operations::with);
    let mut operations = not_implemented::add_to(operations);
    examples::add_to(operations.router.get_openapi_mut());
    operations
}

/// Gives the refusals of the router the form that those of the API have.
async fn shape_errors_of_router(request: Request, next: Next) -> Response {
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let response = next.run(request).await;
    let is_routers = !response.headers().contains_key(header::CONTENT_TYPE);
    match response.status() {
        StatusCode::NOT_FOUND if is_routers => {
            ApiError::at_gate(StatusCode::NOT_FOUND, format!("path {path} was not found")).into_response()
        }
        StatusCode::METHOD_NOT_ALLOWED if is_routers => {
            let allow = response.headers().get(header::ALLOW).cloned();
            let allowed = allow.as_ref().and_then(|value| value.to_str().ok()).unwrap_or_default();
            let message = format!("method {method} is not allowed, but [{allowed}] are");
            let mut refusal = ApiError::at_gate(StatusCode::METHOD_NOT_ALLOWED, message).into_response();
            if let Some(allow) = allow {
                refusal.headers_mut().insert(header::ALLOW, allow);
            }
            refusal
        }
        _ => response,
    }
}
