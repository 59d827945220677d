//! The API as a whole: all areas' routes, what answers where there is none, and the document that describes them.

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request};
use axum::http::{StatusCode, header};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use tower::Layer;
use utoipa::OpenApi;
use utoipa_axum::router::OpenApiRouter;

use super::error::EitherError;
use super::{
    GateError, Inventory, OperationError, Refusal, Settings, cluster, event, host, infra_env, logs,
    not_implemented, version,
};

/// The largest body, in bytes, of all operations but the upload of logs. A static network of thousands of hosts fits.
const MOST_BODY: usize = 32 << 20;

/// What the document says of the API as a whole.
#[derive(OpenApi)]
#[openapi(
    info(title = "Kindling", description = "Clusters, infra-envs and hosts, and the images they boot"),
    components(schemas(EitherError, OperationError, GateError))
)]
struct Document;

impl Inventory {
    /// The API, under its path.
    pub fn router(&self) -> Router {
        let (router, document) = routes().split_for_parts();
        let text = document.to_json().unwrap_or_default();
        let served = move || {
            let text = text.clone();
            async move { ([(header::CONTENT_TYPE, "application/json")], text) }
        };
        let api = router
            .route("/openapi", axum::routing::get(served.clone()))
            .route("/v2/openapi", axum::routing::get(served.clone()))
            .layer(DefaultBodyLimit::max(MOST_BODY))
            .with_state(self.clone());
        let all = Router::new().nest(Settings::API, api).route("/openapi.json", axum::routing::get(served));
        // A layer of the router itself would not see which methods a path has: that is added behind it.
        Router::new().fallback_service(from_fn(shape_errors_of_router).layer(all))
    }

    /// The document that describes the API.
    #[must_use]
    pub fn openapi() -> utoipa::openapi::OpenApi {
        routes().split_for_parts().1
    }
}

fn routes() -> OpenApiRouter<Inventory> {
    let router = OpenApiRouter::with_openapi(Document::openapi())
        .merge(cluster::routes())
        .merge(infra_env::routes())
        .merge(host::routes())
        .merge(event::routes())
        .merge(logs::routes())
        .merge(version::routes());
    not_implemented::add_to(router)
}

/// Gives the refusals of the router the form that those of the API have.
async fn shape_errors_of_router(request: Request, next: Next) -> Response {
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let response = next.run(request).await;
    let is_routers = !response.headers().contains_key(header::CONTENT_TYPE);
    match response.status() {
        StatusCode::NOT_FOUND if is_routers => {
            Refusal::at_gate(StatusCode::NOT_FOUND, format!("path {path} was not found")).into_response()
        }
        StatusCode::METHOD_NOT_ALLOWED if is_routers => {
            let allow = response.headers().get(header::ALLOW).cloned();
            let allowed = allow.as_ref().and_then(|value| value.to_str().ok()).unwrap_or_default();
            let message = format!("method {method} is not allowed, but [{allowed}] are");
            let mut refusal = Refusal::at_gate(StatusCode::METHOD_NOT_ALLOWED, message).into_response();
            if let Some(allow) = allow {
                refusal.headers_mut().insert(header::ALLOW, allow);
            }
            refusal
        }
        _ => response,
    }
}
