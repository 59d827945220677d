//! CORS: allows pages of other origins to call the API.

use std::time::Duration;

use axum::http::{HeaderName, HeaderValue, Method, header};
use tower_http::cors::{AllowOrigin, CorsLayer};

/// How long a browser may cache the response to a preflight request.
const MAX_AGE: Duration = Duration::from_secs(600);

/// The `Vary` header for responses if pages of other origins are allowed. The CORS layer sets the same value.
pub(super) const VARIES: HeaderValue =
    HeaderValue::from_static("origin, access-control-request-method, access-control-request-headers");

/// Response headers that contain the counts of a list of events.
const EVENT_COUNTS: [HeaderName; 5] = [
    HeaderName::from_static("severity-count-info"),
    HeaderName::from_static("severity-count-warning"),
    HeaderName::from_static("severity-count-error"),
    HeaderName::from_static("severity-count-critical"),
    HeaderName::from_static("event-count"),
];

/// Returns the CORS layer that allows pages of these origins to call the API. Returns `None` if there are no origins.
pub(super) fn api_cors_layer(origins: &[String]) -> Option<CorsLayer> {
    let methods = [
        Method::DELETE,
        Method::GET,
        Method::PATCH,
        Method::POST,
        Method::PUT,
        Method::HEAD,
        Method::OPTIONS,
    ];
    Some(
        cors_layer(origins)?
            .allow_methods(methods)
            .allow_headers(allowed_headers(&EVENT_COUNTS))
            .expose_headers(EVENT_COUNTS),
    )
}

/// Returns the CORS layer that allows pages of these origins to download images. Returns `None` if there are no
/// origins.
pub(super) fn image_cors_layer(origins: &[String]) -> Option<CorsLayer> {
    Some(cors_layer(origins)?.allow_methods([Method::GET, Method::HEAD]).allow_headers(allowed_headers(&[])))
}

fn allowed_headers(more: &[HeaderName]) -> Vec<HeaderName> {
    [&[header::AUTHORIZATION, header::CONTENT_TYPE], more].concat()
}

fn cors_layer(origins: &[String]) -> Option<CorsLayer> {
    if origins.is_empty() {
        return None;
    }
    let origins = origins.to_vec();
    let is_allowed = move |origin: &HeaderValue| {
        origin.to_str().is_ok_and(|origin| origins.iter().any(|pattern| matches_pattern(pattern, origin)))
    };
    let origin = AllowOrigin::predicate(move |origin, _| is_allowed(origin));
    Some(CorsLayer::new().allow_origin(origin).max_age(MAX_AGE))
}

/// Returns `true` if an origin or a host matches a pattern, ignoring case. The first `*` in the pattern matches any
/// text.
pub(super) fn matches_pattern(pattern: &str, origin: &str) -> bool {
    let (pattern, origin) = (pattern.to_ascii_lowercase(), origin.to_ascii_lowercase());
    match pattern.split_once('*') {
        None => pattern == origin,
        Some((start, end)) => {
            origin.strip_prefix(start).is_some_and(|rest| rest.len() >= end.len() && rest.ends_with(end))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn star_matches_any_text_of_an_origin() {
        assert!(matches_pattern("https://ui.example.com", "https://UI.example.com"));
        assert!(matches_pattern("https://*.example.com", "https://a.b.example.com"));
        assert!(matches_pattern("*", "null"));
        for (pattern, origin) in [
            ("https://ui.example.com", "https://ui.example.com.evil.org"),
            ("https://ui.example.com", "http://ui.example.com"),
            ("https://*.example.com", "https://evil.org"),
            ("https://*.example.com", "https://.example.co"),
            ("a*a", "a"),
        ] {
            assert!(!matches_pattern(pattern, origin), "{pattern} {origin}");
        }
    }
}
