//! Pages of other origins that may call the API.

use std::time::Duration;

use axum::http::{HeaderName, HeaderValue, Method, header};
use tower_http::cors::{AllowOrigin, CorsLayer};

/// How long a browser may remember what it was told.
const MAX_AGE: Duration = Duration::from_secs(600);

/// What answers depend on where pages of other origins are let in: the same as the layer says.
pub(super) const VARIES: HeaderValue =
    HeaderValue::from_static("origin, access-control-request-method, access-control-request-headers");

/// What a list of events has in its headers.
const EVENT_COUNTS: [HeaderName; 5] = [
    HeaderName::from_static("severity-count-info"),
    HeaderName::from_static("severity-count-warning"),
    HeaderName::from_static("severity-count-error"),
    HeaderName::from_static("severity-count-critical"),
    HeaderName::from_static("event-count"),
];

/// Lets pages of these origins call the API; none where there are none.
pub(super) fn allow(origins: &[String]) -> Option<CorsLayer> {
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
        layer(origins)?
            .allow_methods(methods)
            .allow_headers(headers(&EVENT_COUNTS))
            .expose_headers(EVENT_COUNTS),
    )
}

/// Lets pages of these origins fetch images.
pub(super) fn allow_images(origins: &[String]) -> Option<CorsLayer> {
    Some(layer(origins)?.allow_methods([Method::GET, Method::HEAD]).allow_headers(headers(&[])))
}

fn headers(more: &[HeaderName]) -> Vec<HeaderName> {
    [&[header::AUTHORIZATION, header::CONTENT_TYPE], more].concat()
}

fn layer(origins: &[String]) -> Option<CorsLayer> {
    if origins.is_empty() {
        return None;
    }
    let origins = origins.to_vec();
    let is_allowed = move |origin: &HeaderValue| {
        origin.to_str().is_ok_and(|origin| origins.iter().any(|pattern| fits(pattern, origin)))
    };
    let origin = AllowOrigin::predicate(move |origin, _| is_allowed(origin));
    Some(CorsLayer::new().allow_origin(origin).max_age(MAX_AGE))
}

/// Whether an origin or a host matches a pattern, in which `*` stands for any text. Case does not count.
pub(super) fn fits(pattern: &str, origin: &str) -> bool {
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
    fn a_star_is_any_part_of_an_origin() {
        assert!(fits("https://ui.example.com", "https://UI.example.com"));
        assert!(fits("https://*.example.com", "https://a.b.example.com"));
        assert!(fits("*", "null"));
        for (pattern, origin) in [
            ("https://ui.example.com", "https://ui.example.com.evil.org"),
            ("https://ui.example.com", "http://ui.example.com"),
            ("https://*.example.com", "https://evil.org"),
            ("https://*.example.com", "https://.example.co"),
            ("a*a", "a"),
        ] {
            assert!(!fits(pattern, origin), "{pattern} {origin}");
        }
    }
}
