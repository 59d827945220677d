//! One image on an axum server, with ranges.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use axum::routing::get;
use discovery::representation::{HeaderError, Representation};
use isogen::Plan;

/// Returns a router that serves a plan at `/image.iso`.
pub fn router(plan: Plan) -> Result<Router, HeaderError> {
    let etag = format!("\"{}\"", plan.identity().map(|identity| identity.to_string()).unwrap_or_default());
    let name = Some("discovery.iso".to_owned());
    let image = Representation::new(Arc::new(plan), etag, None, "application/x-iso9660-image", name)?;
    let respond = move |request: Request| {
        let response: Response =
            image.respond(request.method(), request.headers(), request.version()).map(Body::new);
        std::future::ready(response)
    };
    Ok(Router::new().route("/image.iso", get(respond)))
}
