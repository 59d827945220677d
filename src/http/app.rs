//! The router of the server: the API, the images, and the layers around all requests.

use std::any::Any;

use axum::Router;
use axum::body::{Body, HttpBody};
use axum::extract::Request;
use axum::http::{Extensions, HeaderMap, HeaderValue, Method, StatusCode, Version, header};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use tower::Layer;
use tower::util::option_layer;
use tower_http::CompressionLevel;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::compression::CompressionLayer;
use tower_http::compression::predicate::{Predicate, SizeAbove};
use tower_http::cors::CorsLayer;

use super::app_service::App;
use super::content::AnswerBody;
use super::cross_site::{AllowedSites, refuse_other_sites};
use super::event_streams::{OpenStreams, limit_event_streams};
use super::first_boot::plain_http_allowlist;
use super::images::ImageServer;
use super::request_log::{RequestLog, log_request};
use super::{api_docs, api_document, cors, health, network_files, page};
use inventory::Inventory;
use inventory::api::ApiError;
use inventory::api::auth::GuardedRouter;

/// Minimum length of a response to compress. A shorter one fits into one packet.
const MIN_COMPRESSED: u64 = 1400;
/// The gzip compression level. Compared to level 1, a list of 1,000 hosts with long reports is 27 % shorter, and
/// compression takes 1.4 times the CPU time. Compared to level 2, the list would be 9 % shorter with level 3, and
/// compression would take 1.2 times the CPU time.
const GZIP_LEVEL: CompressionLevel = CompressionLevel::Precise(2);

/// Returns the API of an inventory, with images (if any), health endpoints, and pages for browsers.
///
/// Each request gets an id and a log line. Responses are compressed for clients that accept gzip, and pages of the
/// allowed origins may call the API (CORS). A panic in a handler results in an error response.
pub fn app(inventory: &Inventory, images: Option<&ImageServer>) -> App {
    if let Some(images) = images {
        images.metrics().add_inventory(inventory);
    }
    let routes = routes(inventory, images).into_parts().0;
    with_common_layers(routes, cors::api_cors_layer(&inventory.settings().allowed_origins), images)
}

/// Returns all routes of [`app`] with their access rules.
pub(super) fn routes(inventory: &Inventory, images: Option<&ImageServer>) -> GuardedRouter {
    let compression = CompressionLayer::new()
        .gzip(true)
        .quality(GZIP_LEVEL)
        .compress_when(SizeAbove::new(MIN_COMPRESSED).and(is_compressible));
    let api = inventory.guarded_router([network_files::operation()], api_document::outside_of_api());
    let mut for_browsers = page::routes().merge(api_docs::routes()).merge(api);
    if let Some(sites) = AllowedSites::from_inventory(inventory) {
        let layer = from_fn_with_state(sites, refuse_other_sites);
        for_browsers = for_browsers.layer(layer);
    }
    let documents = health::routes(inventory, images).merge(for_browsers);
    let streams = from_fn_with_state(OpenStreams::default(), limit_event_streams);
    let documents = documents.layer((streams, from_fn(negotiate_gzip), compression));
    // Image responses bypass these layers, which inspect the response.
    images.map_or_else(GuardedRouter::new, ImageServer::guarded_router).merge(documents)
}

/// Returns the images of a server without an inventory, with health endpoints. There is no page for browsers, because
/// it would show an inventory. Pages of the allowed origins may download images.
pub fn image_app(images: &ImageServer, allowed_origins: &[String]) -> App {
    let routes = images.guarded_router().merge(health::image_routes(images)).refuse_unknown_paths();
    with_common_layers(routes.into_parts().0, cors::image_cors_layer(allowed_origins), Some(images))
}

fn with_common_layers(app: Router, cors: Option<CorsLayer>, images: Option<&ImageServer>) -> App {
    let catch = CatchPanicLayer::custom(|cause: Box<dyn Any + Send>| panic_response(cause.as_ref()));
    let varies = cors.as_ref().map(|_| cors::VARIES);
    let app = app.layer((from_fn(plain_http_allowlist), option_layer(cors), catch));
    let metrics = images.map(|images| images.metrics().clone()).unwrap_or_default();
    let log = from_fn_with_state(RequestLog::new(metrics), log_request);
    // Put the log layer around the router, because layers of routes are cloned for each request.
    App::new(images, log.layer(app), varies)
}

/// Changes the request so that the compression layer compresses with gzip or not at all. A client that accepts neither
/// gzip nor plain responses gets a plain one, because the operation was already performed. The response to HEAD has a
/// length only if the response to GET has one.
async fn negotiate_gzip(mut request: Request, next: Next) -> Response {
    let accepts_gzip = request.headers().get_all(header::ACCEPT_ENCODING).iter().any(accepts_gzip);
    let is_head = request.method() == Method::HEAD;
    // Do not compress the response to HEAD, because its body is not sent.
    if !accepts_gzip || is_head {
        request.headers_mut().remove(header::ACCEPT_ENCODING);
    }
    let response = next.run(request).await;
    let is_json =
        is_compressible(response.status(), response.version(), response.headers(), response.extensions());
    if !is_head || !is_json {
        return response;
    }
    let len = response_len(&response);
    let is_compressed = accepts_gzip && len.is_none_or(|len| len >= MIN_COMPRESSED);
    if !is_compressed && len.is_some() {
        return response;
    }
    let (mut parts, _) = response.into_parts();
    parts.headers.remove(header::CONTENT_LENGTH);
    Response::from_parts(parts, Body::new(AnswerBody::EmptyWithoutLength))
}

fn accepts_gzip(value: &HeaderValue) -> bool {
    let mut codings = value.to_str().unwrap_or_default().split(',');
    codings.any(|coding| {
        let mut parts = coding.split(';').map(str::trim);
        let is_gzip =
            parts.next().is_some_and(|name| ["gzip", "x-gzip", "*"].contains(&&*name.to_ascii_lowercase()));
        let is_refused =
            parts.any(|part| part.to_ascii_lowercase().strip_prefix("q=").is_some_and(is_zero_quality));
        is_gzip && !is_refused
    })
}

fn is_zero_quality(quality: &str) -> bool {
    quality.parse().is_ok_and(|quality: f32| quality <= 0.0)
}

/// Returns the `Content-Length` that the response to HEAD gets from the response to GET. Returns `None` for a long
/// list, which has no known length.
fn response_len(response: &Response) -> Option<u64> {
    let header = response.headers().get(header::CONTENT_LENGTH);
    let header = header.and_then(|len| len.to_str().ok()?.parse().ok());
    // A length of 0 means that the body was already removed, because no JSON document is empty.
    header.or_else(|| response.body().size_hint().exact().filter(|len| *len > 0))
}

/// Returns `true` if a response may be compressed. Files are never compressed here: most of them already are, and
/// clients that download a file need its length.
fn is_compressible(_: StatusCode, _: Version, headers: &HeaderMap, _: &Extensions) -> bool {
    let media_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    media_type.is_some_and(|media_type| media_type.starts_with("application/json"))
        && !headers.contains_key(header::CONTENT_DISPOSITION)
}

/// Returns the error response after a panic in a handler. The cause is only logged.
fn panic_response(cause: &(dyn Any + Send)) -> Response<Body> {
    let text = cause.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| cause.downcast_ref::<&str>().copied()).unwrap_or("unknown");
    tracing::error!(cause = text, "request handler panicked");
    ApiError::internal("internal error while processing the request; see the service's log").into_response()
}

#[cfg(test)]
mod tests {
    use axum::body::to_bytes;
    use axum::routing::get;
    use tower::ServiceExt;

    use super::*;

    #[test]
    fn gzip_is_accepted_by_name_or_wildcard() {
        for value in ["gzip", "br, GZIP;q=0.1", "*", "gzip;q=1.0, identity;q=0", "x-gzip"] {
            assert!(accepts_gzip(&HeaderValue::from_str(value).unwrap()), "{value}");
        }
        for value in ["", "br", "gzip;q=0", "*; q=0.000", "identity;q=0", "gzipped"] {
            assert!(!accepts_gzip(&HeaderValue::from_str(value).unwrap()), "{value}");
        }
    }

    #[tokio::test]
    async fn panic_returns_a_json_error() {
        async fn panicking_handler() -> StatusCode {
            panic!("of no use to clients")
        }
        let catch = CatchPanicLayer::custom(|cause: Box<dyn Any + Send>| panic_response(cause.as_ref()));
        let app = Router::new().route("/", get(panicking_handler)).layer(catch);
        let request = Request::builder().uri("/").body(Body::empty()).unwrap();
        let response = app.oneshot(request).await.unwrap();
        assert_eq!(response.status(), StatusCode::INTERNAL_SERVER_ERROR);
        let body = to_bytes(response.into_body(), 1000).await.unwrap();
        let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(body["code"], "500");
        assert_eq!(body["reason"], "internal error while processing the request; see the service's log");
    }
}
